"""The planner: class, dependencies, and the first strategy whose conditions hold; or the one named."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from freshviews.errors import PlanError
from freshviews.plan import STRATEGIES, crown, first_order, view_tree
from freshviews.plan.assemble import assemble
from freshviews.plan.crown_updates import rates_of
from freshviews.program.nodes import Program
from freshviews.query.block import Block, TableDef, ViewDef
from freshviews.query.dependencies import FD, closure, from_keys
from freshviews.query.query import Query
from freshviews.query.query_class import QueryClass, classify
from freshviews.query.variable_order import best_order, update_exponents
from freshviews.query.window import PROPERTY

BAG_STRATEGIES = tuple(name for name in STRATEGIES if name not in ("recompute", "crown"))
"""What may keep the bags of a cyclic query below ``crown``: what holds its result in a view."""

_OF_CROWN = frozenset({"freshviews.join_tree", "freshviews.bag_strategy"})
"""Properties of a view that only ``crown`` heeds, so that they name it."""


@dataclass(frozen=True)
class Plan:
    """A block's program and why it was taken."""

    program: Program
    kind: QueryClass
    strategy: str
    reason: str


def plan_block(view: ViewDef, block: Block, inputs: Mapping[str, TableDef | ViewDef]) -> Plan:
    """Choose a strategy for a block, or take the view's, and make its program."""
    dependencies = from_keys(block.query, _keys(inputs))
    kind = classify(block.query, dependencies)
    if view.strategy is not None or not _OF_CROWN.isdisjoint(dict(view.properties)):
        return _named(view, block, inputs, dependencies, kind)
    in_z = sorted(name for name, relation in inputs.items() if may_be_negative(relation))
    if kind.free_connex and not in_z and (_worth_enumerating(block, kind) or _is_joined_set(view, block)):
        reason = "free-connex: semi-joins along a join tree, no join is kept"
        if all(PROPERTY in dict(relation.properties) for relation in inputs.values()):
            reason += "; all tables have windows, first in, first out"
        return Plan(_crown(view, block, inputs), kind, "crown", reason)
    if block.kind == "bag" and not in_z and _worth_factorising(kind):
        program = view_tree.plan_factorised(block.query, dependencies)
        if program is not None:
            return Plan(program, kind, "view_tree", "the result stays factorised over the view tree")
    fact = _looks_all_up(block.query, dependencies) if kind.dynamic_width > 0 else None
    if fact is not None:
        reason = f"from a row of {fact} all other relations are looked up by their keys"
        return Plan(_first_order(block, dependencies), kind, "first_order", reason)
    if kind.acyclic or len(block.query.atoms) == 1:
        reason = "acyclic: one view tree serves all updates"
        if block.kind == "bag" and in_z:
            reason += f"; the result is held, for multiplicities of {', '.join(in_z)} may be negative"
        return Plan(_view_tree(block, dependencies), kind, "view_tree", reason)
    reason = "cyclic: deltas over the base relations take linear space and the smaller side's time"
    return Plan(_first_order(block, dependencies), kind, "first_order", reason)


def _worth_factorising(kind: QueryClass) -> bool:
    return kind.acyclic and kind.dynamic_width <= 1


def _looks_all_up(query: Query, dependencies: tuple[FD, ...]) -> str | None:
    """The relation whose rows determine those of all others, where no update costs more than in a view tree.

    Most updates are those of this relation, of which there are as many rows as in the join. Its row costs as many
    lookups as a view tree has views on its path, and is entered into one view, not into each of them.
    """
    if len(query.atoms) == 1:
        return None
    fact = next((a for a in query.atoms if closure(a.variables, dependencies).issuperset(query.variables)), None)
    if fact is None:
        return None
    tree = update_exponents(best_order(query, False, dependencies), query, dependencies)
    deltas = first_order.update_exponents(query, dependencies)
    return fact.name if all(deltas[name] <= exponent for name, exponent in tree.items()) else None


def _first_order(block: Block, dependencies: tuple[FD, ...]) -> Program:
    main = block.query

    def strategy(query: Query) -> Program:
        return first_order.plan(query, dependencies if query is main else ())

    return assemble(block, strategy)


def _worth_enumerating(block: Block, kind: QueryClass) -> bool:
    """Whether rows are listed, which an update changes few of: a view tree takes O(1) where keys or the hierarchy
    of the query allow it."""
    return (block.kind == "bag" or _is_distinct(block)) and not (kind.q_hierarchical or kind.q_hierarchical_under_keys)


def _is_joined_set(view: ViewDef, block: Block) -> bool:
    """Whether the block is distinct rows of a join below an operation on sets, which is not to hold them."""
    return view.combined is not None and _is_distinct(block) and len(block.query.atoms) > 1


def _is_distinct(block: Block) -> bool:
    """Whether the block is the distinct rows of a join."""
    return block.kind == "groups" and not block.results and not block.distinct


def _crown(view: ViewDef, block: Block, inputs: Mapping[str, TableDef | ViewDef]) -> Program:
    """The program of ``crown``: the result is held where it is aggregated, or distinct over an extended output."""
    updates = rates_of(view, block.query, inputs)
    tree = dict(view.properties).get("freshviews.join_tree")
    inner = _bag_strategy(view)
    main = block.query
    in_z = any(may_be_negative(inputs[atom.relation]) for atom in main.atoms)
    program = None
    if block.kind == "bag" or (_is_distinct(block) and not in_z):
        program = crown.plan_enumerated(main, block.kind != "bag", updates, tree, inner)
    if program is not None:
        return program
    return assemble(block, lambda query: crown.plan(query, updates, tree if query is main else None, inner))


def _bag_strategy(view: ViewDef) -> Callable[[Query], Program]:
    """What keeps the bags of a cyclic query: ``first_order``, or what the view names."""
    name = dict(view.properties).get("freshviews.bag_strategy", "first_order")
    if name not in BAG_STRATEGIES:
        raise PlanError(
            f"view {view.name}: no strategy '{name}' keeps bags; 'freshviews.bag_strategy' takes "
            f"{', '.join(BAG_STRATEGIES)}"
        )
    return STRATEGIES[name]


def _view_tree(block: Block, dependencies: tuple[FD, ...]) -> Program:
    main = block.query

    def strategy(query: Query) -> Program:
        return view_tree.plan(query, dependencies if query is main else ())

    return assemble(block, strategy)


def _named(
    view: ViewDef,
    block: Block,
    inputs: Mapping[str, TableDef | ViewDef],
    dependencies: tuple[FD, ...],
    kind: QueryClass,
) -> Plan:
    reason = "named by the user"
    others = sorted(_OF_CROWN.intersection(dict(view.properties))) if view.strategy not in ("crown", None) else []
    if others:
        raise PlanError(f"view {view.name}: '{others[0]}' is for strategy crown; it names {view.strategy}")
    if view.strategy == "view_tree":
        return Plan(_view_tree(block, dependencies), kind, "view_tree", reason)
    if view.strategy == "first_order":
        return Plan(_first_order(block, dependencies), kind, "first_order", reason)
    if view.strategy in ("crown", None):  # a join tree or what keeps bags is named
        return Plan(_crown(view, block, inputs), kind, "crown", reason)
    named: Callable[[Query], Program] | None = STRATEGIES.get(view.strategy or "")
    if named is None:
        known = ", ".join(sorted(STRATEGIES))
        raise PlanError(
            f"view {view.name}: there is no strategy '{view.strategy}'; 'freshviews.strategy' takes {known}"
        )
    return Plan(assemble(block, named), kind, view.strategy or "", reason)


def _keys(inputs: Mapping[str, TableDef | ViewDef]) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Keys that hold at every moment: those that are checked."""
    return {
        name: relation.keys
        for name, relation in inputs.items()
        if isinstance(relation, TableDef) and not relation.trusted
    }


def may_be_negative(relation: TableDef | ViewDef) -> bool:
    """Whether rows of the relation may have a negative multiplicity for a while: those of trusted tables,
    and of bags, which may come from such tables."""
    if isinstance(relation, TableDef):
        return relation.trusted
    return any(block.kind == "bag" for block in relation.blocks)
