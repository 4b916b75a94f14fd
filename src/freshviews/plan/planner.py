"""The planner: class, dependencies, and the first strategy whose conditions hold; or the one named."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from freshviews.catalog.definitions import TableDef, ViewDef
from freshviews.catalog.window import PROPERTY
from freshviews.errors import PlanError
from freshviews.plan import STRATEGIES, top_k
from freshviews.plan.assemble import assemble
from freshviews.plan.crown import propagation as crown
from freshviews.plan.crown.alike import FIRST_ORDER, Inner
from freshviews.plan.crown.query import prepared
from freshviews.plan.crown.updates import named_updates, rates_of
from freshviews.plan.delta import first_order, view_tree
from freshviews.plan.eps import four_relations as ivm_eps_four
from freshviews.plan.eps import hierarchical as ivm_eps_hierarchical
from freshviews.plan.eps import triangle as ivm_eps
from freshviews.plan.eps import triangle_linear as ivm_eps_linear
from freshviews.plan.eps import triangle_listing as ivm_eps_listing
from freshviews.plan.naming import Namer
from freshviews.plan.trie import incremental_trie_join, key_order, trie_join
from freshviews.program.program import Program
from freshviews.query.block import Block
from freshviews.query.dependencies import FD, closure, from_keys
from freshviews.query.hypergraph import hypergraph
from freshviews.query.query import Query
from freshviews.query.query_class import QueryClass, classify
from freshviews.query.variable_order import best_order, update_exponents

_BY_PARTS = {"ivm_eps": ivm_eps.plan, "ivm_eps_linear": ivm_eps_linear.plan}
"""What keeps heavy and light parts, in a program that rebalances them."""
AUTO = "auto"
"""The exponent that is left to the stream."""
CHOICES = (1 / 4, 1 / 3, 5 / 12, 1 / 2, 7 / 12, 2 / 3, 3 / 4)
"""The exponents that the stream may choose: with none of them an update takes linear time. In linear space they are
1/2 and more, for 4-cycles less."""

MOST_SHARING = 5
"""Occurrences of tables up to which those alike are kept by deltas where these only look rows up."""

_NOT_FOR_BAGS = ("recompute", "crown", "trie_join", *_BY_PARTS)
BAG_STRATEGIES = tuple(name for name in STRATEGIES if name not in _NOT_FOR_BAGS)
"""What may keep the bags of a cyclic query below ``crown``: what holds its result in a view that it only adds to, and
no parts."""

_OF_CROWN = frozenset({"freshviews.join_tree", "freshviews.bag_strategy"})
"""Properties of a view that only ``crown`` heeds, so that they name it."""
_OF_TRIE_JOIN = frozenset({"freshviews.key_order"})
"""As those of ``crown``, of ``trie_join``, where not of what is kept by a trace, a view or bags of it."""


@dataclass(frozen=True)
class Plan:
    """A block's program and why it was taken."""

    program: Program
    kind: QueryClass
    strategy: str
    reason: str


def plan_block(view: ViewDef, block: Block, inputs: Mapping[str, TableDef | ViewDef]) -> Plan:
    """Choose a strategy for a block, or take the view's, and make its program."""
    if block.limit is not None:
        reason = "the first rows of an order: all are kept in it, and those before its end apart"
        return Plan(top_k.plan(block.query, block.limit), classify(block.query), "top_k", reason)
    named_updates(view, inputs)  # whoever heeds it: what cannot be read is refused
    dependencies = from_keys(block.query, _keys(inputs))
    kind = classify(block.query, dependencies)
    if block.query.negated:
        return _negated(view, block, inputs, dependencies, kind)
    if view.strategy is not None or not (_OF_CROWN | _OF_TRIE_JOIN).isdisjoint(dict(view.properties)):
        return _named(view, block, inputs, dependencies, kind)
    in_z = _in_z(inputs)
    if "freshviews.epsilon" in dict(view.properties) and _is_listed(block):
        reason = "hierarchical, and its exponent is named: values with many rows are kept apart, groups are listed"
        return Plan(_ivm_eps(view, block, ivm_eps.plan, in_z), kind, "ivm_eps", reason)
    listed = kind.free_connex and (not in_z or _comes_once(block))
    if listed and (_worth_enumerating(block, kind) or _is_joined_set(view, block) or in_z):
        reason = "free-connex: semi-joins along a join tree, no join is kept"
        if all(PROPERTY in dict(relation.properties) for relation in inputs.values()):
            reason += "; all tables have windows, first in, first out"
        return Plan(_crown(view, block, inputs), kind, "crown", reason)
    if kind.free_connex and not in_z and _has_groups_apart(block, dependencies):
        groups = _groups(view, block, inputs)
        if isinstance(groups, Program):
            reason = "free-connex: groups are put together from rows of several relations, none is kept"
            return Plan(groups, kind, "crown", reason)
    if block.kind == "bag" and not in_z and _worth_factorising(kind):
        program = view_tree.plan_factorised(block.query, dependencies)
        if program is not None:
            return Plan(program, kind, "view_tree", "the result stays factorised over the view tree")
    fact = _looks_all_up(block.query, dependencies) if kind.dynamic_width > 0 else None
    if fact is not None:
        reason = f"from a row of {fact} all other relations are looked up by their keys"
        return Plan(_first_order(block, dependencies, in_z), kind, "first_order", reason)
    if _share_lookups(block.query, dependencies):
        reason = "occurrences of a table share what is stored of it, and an update looks all others up"
        return Plan(_first_order(block, dependencies, in_z), kind, "first_order", reason)
    if kind.acyclic or len(block.query.atoms) == 1:
        reason = "acyclic: one view tree serves all updates"
        if block.kind == "bag" and in_z:
            reason += f"; the result is held, for multiplicities of {', '.join(in_z)} may be negative"
        return Plan(_view_tree(block, dependencies, in_z), kind, "view_tree", reason)
    if _hangs_together_by_bags(block.query):
        reason = "cyclic in parts: each is counted by the rows of one atom, and semi-joins go along a tree of them"
        return Plan(_with_alternatives(_crown(view, block, inputs), block.query), kind, "crown", reason)
    if _is_halved(block):
        reason = "cyclic, over three relations: values with many rows are kept apart, so no update takes linear time"
        program = _with_alternatives(_ivm_eps(view, block, ivm_eps_linear.plan, in_z), block.query)
        return Plan(program, kind, "ivm_eps_linear", reason)
    reason = "cyclic: deltas over the base relations take linear space and the smaller side's time"
    program = _with_alternatives(_first_order(block, dependencies, in_z), block.query)
    return Plan(program, kind, "first_order", reason)


def _with_alternatives(program: Program, query: Query) -> Program:
    """The program of a cyclic query, told what may be named in its place. None of them has the better bound, and none
    is the worse for every stream (docs/trie-join.md): the planner does not take them by itself."""
    by_trace = "= 'incremental_trie_join': an update takes what it changes of a trace, which is held"
    if program.strategy == "crown":
        told = [f"'freshviews.bag_strategy' {by_trace}"]
    else:
        told = [f"'freshviews.strategy' {by_trace}"]
        if len(prepared(query).query.atoms) > 1:
            told.insert(0, "'freshviews.strategy' = 'crown': an update joins no parts, whose rows are held")
    return replace(program, bounds=(*program.bounds, ("instead", "\n".join(told))))


def _negated(
    view: ViewDef,
    block: Block,
    inputs: Mapping[str, TableDef | ViewDef],
    dependencies: tuple[FD, ...],
    kind: QueryClass,
) -> Plan:
    """The plan of a block with negated atoms, which one strategy keeps."""
    strategy = "incremental_trie_join"
    given = sorted((_OF_CROWN | {"freshviews.epsilon"}).intersection(dict(view.properties)))
    other = view.strategy or (f"what heeds '{given[0]}'" if given else strategy)
    if other != strategy:
        raise PlanError(
            f"view {view.name}: NOT EXISTS is kept by '{strategy}', not by {other}; name that or none, or write EXCEPT "
            "of distinct rows"
        )
    reason = "named by the user" if view.strategy else "negated atoms are part of a trace; no other strategy has them"
    return Plan(_incremental_trie_join(view, block, inputs, dependencies), kind, strategy, reason)


def _worth_factorising(kind: QueryClass) -> bool:
    return kind.acyclic and kind.dynamic_width <= 1


def _hangs_together_by_bags(query: Query) -> bool:
    """Whether a cyclic query is a tree of parts, two triangles with an edge between them, say, and each part has, for
    the rest, no more rows than one of its atoms. First-order deltas join all parts anew; bags take linear space too."""
    made = prepared(query)
    graph = hypergraph(made.query)
    if not made.bags or len(made.query.atoms) == 1 or not made.free <= graph.free.union(*graph.factors):
        return False
    bags = (bag.query for bag in made.bags.values())
    return all(any(set(bag.free).issubset(atom.variables) for atom in bag.atoms) for bag in bags)


def _is_halved(block: Block) -> bool:
    """Whether heavy and light parts keep the updates of some relation below linear time."""
    try:
        return ivm_eps_linear.is_helped(block.query)
    except PlanError:
        return False


def _is_listed(block: Block) -> bool:
    """Whether ``ivm_eps`` lists the rows of a block."""
    return not _is_held(block) and ivm_eps_hierarchical.is_kept(block.query)


def _is_held(block: Block) -> bool:
    """Whether groups are held in any case: MIN, MAX and DISTINCT aggregates hang on them, and one derivation is in
    groups of several grouping sets."""
    return bool(block.distinct or block.sets)


def _ivm_eps(
    view: ViewDef, block: Block, strategy: Callable[[Query, Mapping[str, float]], Program], in_z: Sequence[str]
) -> Program:
    """The program by heavy and light parts; what hangs on it for distinct aggregates is kept by ``first_order``.
    Rows are listed where there is a program for that; ``in_z``: relations whose multiplicities may be negative."""
    given = _epsilons(view, block.query)
    main = block.query
    if strategy is ivm_eps.plan and ivm_eps_hierarchical.is_kept(main):
        if not _is_held(block):
            return _with_choices(view, ivm_eps_hierarchical.plan(main, given), CHOICES)
        if len(main.atoms) != 3:
            raise PlanError(
                f"view {view.name}: ivm_eps lists the groups of this query, and MIN, MAX and DISTINCT aggregates and "
                "grouping sets are of groups that are held; take 'view_tree'"
            )
    if strategy is ivm_eps.plan and (block.kind == "bag" or (_is_distinct(block) and not in_z)):
        listing = ivm_eps_listing.plan(main, given, block.kind != "bag")
        if listing is not None:
            return _with_choices(view, listing, CHOICES)

    def inner(query: Query) -> Program:
        return strategy(query, given) if query is main else first_order.plan(query)

    program = assemble(block, inner, bool(in_z))
    linear, cycle = strategy is ivm_eps_linear.plan, ivm_eps_four.is_cycle(main)
    return _with_choices(view, program, tuple(c for c in CHOICES if c >= 0.5 or not linear if c < 0.5 or not cycle))


def _with_choices(view: ViewDef, program: Program, choices: tuple[float, ...]) -> Program:
    """The program whose exponent is left to the stream, where the view says so."""
    if dict(view.properties).get("freshviews.epsilon") != AUTO or program.balancing is None:
        return program
    told = f"auto, from {choices[0]:.3g} to {choices[-1]:.3g}, by the degrees at major rebalancing"
    balancing = replace(program.balancing, choices=choices)
    return replace(program, balancing=balancing, bounds=(*program.bounds, ("epsilon", told)))


def _epsilons(view: ViewDef, query: Query) -> dict[str, float]:
    """``freshviews.epsilon`` by atom, the one for all others under the empty name: '0.5', or 'r 0, s 0, t 1'; none
    where it is 'auto' or not said."""
    text = dict(view.properties).get("freshviews.epsilon", AUTO)
    if text == AUTO:
        return {}
    names = {atom.name.lower(): atom.name for atom in query.atoms}
    found: dict[str, float] = {}
    for part in text.split(","):
        *name, number = part.split() or [""]
        try:
            value = float(number)
            known = names[name[0].lower()] if name else ""
        except (ValueError, KeyError):
            value, known = -1.0, ""
        if not 0 <= value <= 1 or len(name) > 1:
            raise PlanError(
                f"view {view.name}: 'freshviews.epsilon' is a number from 0 to 1, or one for each of "
                f"{', '.join(names)} as in '{next(iter(names), 'r')} 0.5', or 'auto', not {text!r}"
            )
        found[known] = value
    return found


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


def _share_lookups(query: Query, dependencies: tuple[FD, ...]) -> bool:
    """Whether deltas only look rows up, in fewer views than a view tree has: it has one for each of the atoms that
    share a store. A delta of n occurrences has a term for each set of them, so there are to be few."""
    stores = first_order.stores_of(query, dependencies, Namer(query))
    if len(stores) == len(query.atoms) or len(query.atoms) > MOST_SHARING:
        return False
    return max(first_order.update_exponents(query, dependencies).values()) == 0


def _first_order(block: Block, dependencies: tuple[FD, ...], in_z: Sequence[str]) -> Program:
    main = block.query

    def strategy(query: Query) -> Program:
        return first_order.plan(query, dependencies if query is main else ())

    return assemble(block, strategy, bool(in_z))


def _worth_enumerating(block: Block, kind: QueryClass) -> bool:
    """Whether rows are listed, which an update changes few of: a view tree takes O(1) where keys or the hierarchy
    of the query allow it."""
    return (block.kind == "bag" or _is_distinct(block)) and not (kind.q_hierarchical or kind.q_hierarchical_under_keys)


def _comes_once(block: Block) -> bool:
    """Whether a joined row is known by its output, so that it is enumerated once, with its multiplicity of whatever
    sign. A view tree does not list such rows: those whose sum is zero hide each other."""
    return block.kind == "bag" and len(block.query.atoms) > 1 and block.found_by_row


def _has_groups_apart(block: Block, dependencies: tuple[FD, ...]) -> bool:
    """Whether no row of one relation tells the group, so that there may be more groups than rows."""
    if block.kind != "groups" or _is_held(block) or not block.results:
        return False
    return not any(closure(a.variables, dependencies).issuperset(block.query.free) for a in block.query.atoms)


def _is_joined_set(view: ViewDef, block: Block) -> bool:
    """Whether the block is distinct rows of a join below an operation on sets, which is not to hold them."""
    return view.combined is not None and _is_distinct(block) and len(block.query.atoms) > 1


def _is_distinct(block: Block) -> bool:
    """Whether the block is the distinct rows of a join."""
    return block.kind == "groups" and not block.results and not _is_held(block)


def _crown(view: ViewDef, block: Block, inputs: Mapping[str, TableDef | ViewDef]) -> Program:
    """The program of ``crown``: the result is held where it is aggregated, or distinct over an extended output."""
    updates = rates_of(view, block.query, inputs)
    tree = dict(view.properties).get("freshviews.join_tree")
    main = block.query
    inner = _bag_strategy(view, main, inputs)
    in_z = any(may_be_negative(inputs[atom.relation]) for atom in main.atoms)
    why = "multiplicities may be negative"
    if block.kind == "bag" or (_is_distinct(block) and not in_z):
        program = crown.plan_enumerated(main, block.kind != "bag", updates, tree, inner)
        if program is not None:
            return program
        why = "free-connex only with more columns in the output"
    elif not _is_distinct(block):
        groups = _groups(view, block, inputs)
        if isinstance(groups, Program):
            return groups
        why = groups
    held = assemble(block, lambda query: crown.plan(query, updates, tree if query is main else None, inner), in_z)
    what = "rows" if _is_distinct(block) else "groups"
    return replace(held, bounds=(*held.bounds, (what, f"stored: {why}")))


def _groups(view: ViewDef, block: Block, inputs: Mapping[str, TableDef | ViewDef]) -> Program | str:
    """The program of ``crown`` whose groups are enumerated, or why they are stored."""
    if block.sets:
        return "of several grouping sets, in each of which a derivation is"
    if block.distinct:
        names = ", ".join(sorted({d.kind for d in block.distinct}))
        return f"over distinct values ({names}), which are no products of payloads"
    tree = dict(view.properties).get("freshviews.join_tree")
    inner = _bag_strategy(view, block.query, inputs)
    return crown.plan_groups(block.query, rates_of(view, block.query, inputs), tree, inner)


def _bag_strategy(view: ViewDef, main: Query, inputs: Mapping[str, TableDef | ViewDef]) -> Inner:
    """What keeps the bags of a cyclic query: ``first_order``, or what the view names."""
    name = dict(view.properties).get("freshviews.bag_strategy", "first_order")
    if name not in BAG_STRATEGIES:
        raise PlanError(
            f"view {view.name}: no strategy '{name}' keeps bags; 'freshviews.bag_strategy' takes "
            f"{', '.join(BAG_STRATEGIES)}"
        )
    if name == "incremental_trie_join":
        return keeper_of_bags(name, lambda query: _named_order(view, query, main), _sizes(inputs))
    return keeper_of_bags(name)


def keeper_of_bags(
    name: str,
    order: Callable[[Query], tuple[str, ...] | None] = lambda query: None,
    sizes: Mapping[str, float] | None = None,
) -> Inner:
    """A strategy of ``BAG_STRATEGIES``; of the bags of a trie join, the named key ``order``, and rows by relation."""
    if name == "incremental_trie_join":
        # A derivation has all variables anyway.
        return Inner(lambda bag: incremental_trie_join.plan(bag, (), order(bag), sizes), widened=True)
    return FIRST_ORDER if name == "first_order" else Inner(STRATEGIES[name])


def _view_tree(block: Block, dependencies: tuple[FD, ...], in_z: Sequence[str]) -> Program:
    main = block.query

    def strategy(query: Query) -> Program:
        return view_tree.plan(query, dependencies if query is main else ())

    return assemble(block, strategy, bool(in_z))


def _named(
    view: ViewDef,
    block: Block,
    inputs: Mapping[str, TableDef | ViewDef],
    dependencies: tuple[FD, ...],
    kind: QueryClass,
) -> Plan:
    reason, in_z = "named by the user", _in_z(inputs)
    strategy = view.strategy
    properties = dict(view.properties)
    kept_by_trace = "incremental_trie_join" in (strategy, properties.get("freshviews.bag_strategy"))
    for owner, own in (("crown", _OF_CROWN), ("trie_join", _OF_TRIE_JOIN)):
        given = sorted(own.intersection(properties))
        if owner == "trie_join" and kept_by_trace:
            continue
        if given and strategy not in (owner, None):
            raise PlanError(f"view {view.name}: '{given[0]}' is for strategy {owner}; it names {strategy}")
        strategy = owner if given else strategy
    if strategy == "trie_join":
        return Plan(_trie_join(view, block, inputs, dependencies), kind, "trie_join", reason)
    if strategy == "incremental_trie_join":
        return Plan(_incremental_trie_join(view, block, inputs, dependencies), kind, strategy, reason)
    if view.strategy == "view_tree":
        return Plan(_view_tree(block, dependencies, in_z), kind, "view_tree", reason)
    if view.strategy == "first_order":
        return Plan(_first_order(block, dependencies, in_z), kind, "first_order", reason)
    if strategy in _BY_PARTS:
        return Plan(_ivm_eps(view, block, _BY_PARTS[strategy], in_z), kind, strategy, reason)
    if strategy == "crown":  # a join tree or what keeps bags is named
        return Plan(_crown(view, block, inputs), kind, "crown", reason)
    named: Callable[[Query], Program] | None = STRATEGIES.get(view.strategy or "")
    if named is None:
        known = ", ".join(sorted(STRATEGIES))
        raise PlanError(
            f"view {view.name}: there is no strategy '{view.strategy}'; 'freshviews.strategy' takes {known}"
        )
    return Plan(assemble(block, named, bool(in_z)), kind, view.strategy or "", reason)


def _trie_join(
    view: ViewDef, block: Block, inputs: Mapping[str, TableDef | ViewDef], dependencies: tuple[FD, ...]
) -> Program:
    main = block.query
    positive = not any(may_be_negative(inputs[atom.relation]) for atom in main.atoms)
    sizes = _sizes(inputs)

    def strategy(query: Query) -> Program:
        once = positive and (query is not main or _is_distinct(block))
        order = _named_order(view, query, main)
        return trie_join.plan(query, dependencies if query is main else (), order, once, sizes)

    return assemble(block, strategy, not positive)


def _incremental_trie_join(
    view: ViewDef, block: Block, inputs: Mapping[str, TableDef | ViewDef], dependencies: tuple[FD, ...]
) -> Program:
    main, sizes = block.query, _sizes(inputs)

    def strategy(query: Query) -> Program:
        order = _named_order(view, query, main)
        return incremental_trie_join.plan(query, dependencies if query is main else (), order, sizes)

    return assemble(block, strategy, bool(_in_z(inputs)))


def _sizes(inputs: Mapping[str, TableDef | ViewDef]) -> dict[str, float]:
    """Rows by relation, as far as they are told."""
    return {
        name: float(dict(relation.properties).get("freshviews.rows") or 0) or key_order.ROWS
        for name, relation in inputs.items()
    }


def _named_order(view: ViewDef, query: Query, main: Query) -> tuple[str, ...] | None:
    """The key order that a view names; a query of its distinct aggregates has its own variables last."""
    text = dict(view.properties).get("freshviews.key_order")
    if text is None:
        return None
    named = [name.strip() for name in text.split(",")]
    known = {v for block in view.blocks for v in block.query.variables}
    all_of = f"'freshviews.key_order' takes all of {', '.join(main.variables)}"
    for name in named:
        if name not in known:
            raise PlanError(f"view {view.name}: there is no variable '{name}'; {all_of}, in the order to be bound")
        if named.count(name) > 1:
            raise PlanError(f"view {view.name}: '{name}' stands twice in 'freshviews.key_order'; name it once")
    missing = [v for v in main.variables if v not in named]
    if missing:
        raise PlanError(f"view {view.name}: '{missing[0]}' is not in its key order; {all_of}, in the order to be bound")
    return (*(v for v in named if v in query.variables), *(v for v in query.variables if v not in named))


def _keys(inputs: Mapping[str, TableDef | ViewDef]) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Keys that hold at every moment: those that are checked."""
    return {
        name: relation.keys
        for name, relation in inputs.items()
        if isinstance(relation, TableDef) and not relation.trusted
    }


def _in_z(inputs: Mapping[str, TableDef | ViewDef]) -> list[str]:
    """The inputs of which rows may have a negative multiplicity, by name."""
    return sorted(name for name, relation in inputs.items() if may_be_negative(relation))


def may_be_negative(relation: TableDef | ViewDef) -> bool:
    """Whether rows of the relation may have a negative multiplicity for a while: those of trusted tables,
    and of bags, which may come from such tables. The first rows of an order do not count what is below zero."""
    if isinstance(relation, TableDef):
        return relation.trusted
    return any(block.kind == "bag" and block.limit is None for block in relation.blocks)
