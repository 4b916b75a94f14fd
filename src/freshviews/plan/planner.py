"""Chooses the strategy of a block: the strategy that the user names, or else the first one whose condition holds.

``plan.registry`` lists the strategies with their conditions, in order of preference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from freshviews.catalog.definitions import TableDef, ViewDef
from freshviews.errors import PlanError
from freshviews.expr.nodes import Column
from freshviews.plan.delta.keyed import with_key
from freshviews.plan.delta.range_sums.ranges import with_ranges
from freshviews.plan.registry import NECESSITIES, PREFERENCES, STRATEGIES
from freshviews.plan.strategy import Plan, Request, Strategy, TooLarge, checked_keys, declared_keys
from freshviews.plan.trie.key_order import ROWS
from freshviews.query.block import Block
from freshviews.query.dependencies import from_keys
from freshviews.query.query import Query
from freshviews.query.query_class import classify
from freshviews.records import dataclass

NAMED = "named by the user"


def plan_block(view: ViewDef, block: Block, inputs: Mapping[str, TableDef | ViewDef]) -> Plan:
    """The plan of a block, by the strategy that the view names, or by the planner's choice.

    ``inputs`` are the relations that the view reads, by name. Raises PlanError if an option cannot be read, or if the
    named strategy does not accept the block.
    """
    request = request_of(view, block, inputs)
    choice = _choice(request)
    groups = block.query.free if block.kind == "groups" and block.results else ()
    program = with_ranges(choice.strategy.plan(request), groups, request.dependencies)
    key = _key_of(view, block)
    program = program if key is None else with_key(program, key)
    # The strategies that a note names join ordinary atoms alone.
    note = choice.note(request.query) if choice.note is not None and not request.kinds else ()
    program = replace(program, bounds=(*program.bounds, *note, *choice.passed))
    keys, expected = checked_keys(inputs), declared_keys(inputs)
    return Plan(program, request.kind, choice.strategy, choice.reason, keys, expected)


def _key_of(view: ViewDef, block: Block) -> tuple[str, ...] | None:
    """The free variables of a bag that are the key of the view's rows, in the key's order; None without such a key."""
    if not view.group or view.blocks != (block,) or block.kind != "bag" or block.limit is not None:
        return None
    names = {output.name: output.expr.name for output in block.outputs if isinstance(output.expr, Column)}
    found = tuple(names.get(column, "") for column in view.group)
    return found if set(found) <= set(block.free) else None


def strategy_of(view: ViewDef, block: Block, inputs: Mapping[str, TableDef | ViewDef]) -> Strategy:
    """The strategy of the plan of a block. See ``plan_block``."""
    return _choice(request_of(view, block, inputs)).strategy


@dataclass(frozen=True)
class Choice:
    """A strategy and the reason for it. EXPLAIN also shows the ``note`` about the query, and the strategies that were
    ``passed`` over because of the size of their programs."""

    strategy: Strategy
    reason: str
    note: Callable[[Query], tuple[tuple[str, str], ...]] | None = None
    passed: tuple[tuple[str, str], ...] = ()


def _choice(request: Request) -> Choice:
    for strategy in STRATEGIES.values():
        strategy.check(request)
    return _necessary(request) or _named_strategy(request) or _preferred_strategy(request)


def request_of(view: ViewDef, block: Block, inputs: Mapping[str, TableDef | ViewDef]) -> Request:
    """The request for a block: its class, and the declarations of its inputs."""
    dependencies = from_keys(block.query, checked_keys(inputs))
    return Request(
        view,
        block,
        inputs,
        dependencies,
        from_keys(block.query, declared_keys(inputs)),
        classify(block.query, dependencies),
        {name: _rows(relation) for name, relation in inputs.items()},
        tuple(sorted(name for name, relation in inputs.items() if may_be_negative(relation))),
        dict(view.properties),
        STRATEGIES,
    )


def _necessary(request: Request) -> Choice | None:
    """The only strategy that can maintain a block; None if several can."""
    for one in NECESSITIES:
        reason = one.condition(request)
        if reason is not None:
            other = _other_than(one.strategy, request)
            if one.refusal and other is not None:
                raise PlanError(f"view {request.view.name}: {one.refusal.format(other=other)}")
            reason = NAMED if request.view.strategy == one.strategy.name else reason
            return Choice(one.strategy, reason)
    return None


def _other_than(strategy: Strategy, request: Request) -> str | None:
    """A strategy other than this one that the view names, or a property that this strategy does not read."""
    if request.view.strategy is not None:
        return request.view.strategy if request.view.strategy != strategy.name else None
    known = frozenset[str]().union(*(one.properties for one in STRATEGIES.values()))
    unread = sorted(known.intersection(request.options) - strategy.properties)
    return f"a strategy that reads '{unread[0]}'" if unread else None


def _named_strategy(request: Request) -> Choice | None:
    """The strategy that the view names, directly or by a property; None if it names none."""
    view, name = request.view, request.view.strategy
    for owner in STRATEGIES.values():
        given = sorted(owner.owns.intersection(request.options))
        if not given or (name in STRATEGIES and STRATEGIES[name].reads(request).issuperset(given)):
            continue
        if name is not None:
            raise PlanError(
                f"view {view.name}: '{given[0]}' is an option of strategy {owner.name}, but the view names strategy "
                f"{name}"
            )
        name = owner.name
    if name is None:
        return None
    if name not in STRATEGIES:
        known = ", ".join(sorted(STRATEGIES))
        raise PlanError(f"view {view.name}: there is no strategy '{name}'; 'freshviews.strategy' takes {known}")
    _check_kinds(request, STRATEGIES[name])
    return Choice(STRATEGIES[name], NAMED)


def _check_kinds(request: Request, strategy: Strategy) -> None:
    """Raise PlanError if the named strategy does not join some kind of the query's atoms."""
    for kind in sorted(request.kinds - strategy.kinds):
        others = ", ".join(name for name, one in STRATEGIES.items() if kind in one.kinds)
        raise PlanError(
            f"view {request.view.name}: strategy {strategy.name} does not accept {kind}; set {others}, or no strategy"
        )


def _preferred_strategy(request: Request) -> Choice:
    """The strategy of the first preference whose condition holds."""
    passed: dict[str, str] = {}
    for one in PREFERENCES:
        try:
            reason = one.condition(request) if request.kinds <= one.strategy.kinds else None
        except TooLarge as error:
            passed.setdefault(one.strategy.name, error.limit)
            continue
        if reason is not None:
            lines = tuple(("large", f"{name} is preferred for at most {limit}") for name, limit in passed.items())
            return Choice(one.strategy, reason, one.note, lines)
    raise AssertionError("no preference takes this query")


def _rows(relation: TableDef | ViewDef) -> float:
    """The declared rows of a relation, or a default."""
    return float(dict(relation.properties).get("freshviews.rows") or 0) or ROWS


def may_be_negative(relation: TableDef | ViewDef) -> bool:
    """True if rows of the relation may temporarily have a negative multiplicity: rows of trusted tables, and of bags,
    which may be derived from them. First rows of an order and texts do not count rows below zero."""
    if isinstance(relation, TableDef):
        return relation.trusted
    bags = (block for block in relation.blocks if block.kind == "bag")
    return any(block.limit is None and block.gathering is None for block in bags)
