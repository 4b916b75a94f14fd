"""Defines the strategy ``crown``. It enumerates a result from several views if possible, else one view stores it."""

from __future__ import annotations

from dataclasses import replace

from freshviews.catalog.window import PROPERTY as WINDOW
from freshviews.errors import PlanError
from freshviews.plan.assemble import assemble
from freshviews.plan.crown import propagation
from freshviews.plan.crown.free_connex_query import prepared, required
from freshviews.plan.crown.rows import MOST_STATEMENTS
from freshviews.plan.crown.tree_choice import NAMED, named_updates, rates_of, tree_of
from freshviews.plan.strategy import EVERY_KIND, BagPlanner, Request, Strategy
from freshviews.program.program import Program
from freshviews.query.dependencies import closure
from freshviews.query.hypergraph import hypergraph

MOST_PREFERRED = 10_000
"""Maximum number of statements of a program that the planner chooses by itself: compiling more takes minutes."""

JOIN_TREE = "freshviews.join_tree"
BAG_STRATEGY = "freshviews.bag_strategy"


def enumerates_rows(request: Request) -> str | None:
    """A free-connex join whose rows are enumerated, if a view tree has no better bound."""
    block, kind = request.block, request.kind
    signed = bool(request.negative)
    if not kind.free_connex or (signed and not _comes_once(request)) or not _has_tree(request, block.kind == "bag"):
        return None
    is_joined_set = request.view.combined is not None and request.is_distinct and len(block.query.atoms) > 1
    if not (_beats_view_tree(request) or is_joined_set or signed):
        return None
    _make_small(request)
    reason = "free-connex: semi-joins along a join tree, no join is kept"
    if all(WINDOW in dict(relation.properties) for relation in request.inputs.values()):
        reason += "; all tables have windows, first in, first out"
    return reason


def _beats_view_tree(request: Request) -> bool:
    """True if rows are enumerated, and a view tree would take more than O(1) for an update: neither keys nor the
    hierarchy of the query allow O(1). A view tree with optional or negated atoms holds its result."""
    kind = request.kind
    enumerated = request.block.kind == "bag" or request.is_distinct
    return enumerated and (bool(request.kinds) or not (kind.q_hierarchical or kind.q_hierarchical_under_keys))


def _has_tree(request: Request, counted: bool, extended: bool = False) -> bool:
    """True if the tree has a place for the optional and negated atoms, and, unless ``extended``, the output needs no
    more columns."""
    if not request.kinds:
        return True
    made = prepared(request.query)
    if not extended and made.free != frozenset(request.query.free):
        return False
    try:
        tree_of(made, {}, None, counted)
    except PlanError:
        return False
    return True


def _comes_once(request: Request) -> bool:
    """True if the output determines the joined row. Then each row is enumerated once, with a multiplicity of either
    sign. A view tree cannot list such rows: rows whose sum is zero hide each other."""
    block = request.block
    return block.kind == "bag" and len(block.query.atoms) > 1 and block.found_by_row


def enumerates_groups(request: Request) -> str | None:
    """A free-connex join whose groups have values of several relations: there may be more groups than rows."""
    block = request.block
    if request.negative or not request.kind.free_connex:
        return None
    if block.kind != "groups" or request.needs_held_groups or not block.results:
        return None
    if any(closure(a.variables, request.dependencies).issuperset(block.query.free) for a in block.query.atoms):
        return None
    if _why_groups_are_stored(request) is not None or not _has_tree(request, True):
        return None
    _make_small(request)
    return "free-connex: groups are assembled from rows of several relations, none is stored"


def joins_bags(request: Request) -> str | None:
    """A cyclic query that is a tree of parts, such as two triangles connected by an edge; the output of each part has
    at most as many rows as one of its atoms. First-order deltas would join all parts for an update; bags take linear
    space, too."""
    made = prepared(request.query)
    graph = hypergraph(required(made.query))
    if not made.bags or len(graph.edges) == 1 or not made.free.intersection(graph.variables) <= graph.free:
        return None
    if not _has_tree(request, True, extended=True):
        return None
    bags = (bag.query for bag in made.bags.values())
    if not all(any(set(bag.free).issubset(atom.variables) for atom in bag.atoms) for bag in bags):
        return None
    _make_small(request)
    return "cyclic in parts: no part has more rows than one of its atoms, and semi-joins connect the parts"


def _make_small(request: Request) -> None:
    """Makes the program if the planner may choose it by itself. Raises TooLarge if it would be too large for that."""
    request.made[STRATEGY.name] = _program(request, MOST_PREFERRED)


def _plan(request: Request) -> Program:
    return request.made.get(STRATEGY.name) or _program(request, MOST_STATEMENTS)


def _program(request: Request, limit: int) -> Program:
    """The program whose rows or groups are enumerated if possible; otherwise the one whose result is held. ``limit``:
    the most statements that enumerate or mark rows."""
    block, main = request.block, request.query
    updates, tree, inner = rates_of(request.view, main, request.inputs), request.options.get(JOIN_TREE), _inner(request)
    signed = request.joins_negative
    what = "groups"
    if block.kind == "bag" or (request.is_distinct and not signed):
        program = propagation.plan_enumerated(main, block.kind != "bag", updates, tree, inner, limit)
        if program is not None:
            return program
        why = "free-connex only with additional output columns"
    elif request.is_distinct:
        why = "multiplicities may be negative"
    else:
        stored = _why_groups_are_stored(request)
        if stored is None:
            return propagation.plan(main, updates, tree, inner, limit, stored=False)
        why = stored
    if request.is_distinct:
        what = "rows"
    held = assemble(
        block,
        lambda query: propagation.plan(query, updates, tree if query is main else None, inner, limit),
        signed,
        joins_groups=tree is not None,
    )
    return replace(held, bounds=(*held.bounds, (what, f"stored: {why}")))


def _why_groups_are_stored(request: Request) -> str | None:
    """The reason for which the groups of a block are stored; None if they can be enumerated."""
    if request.block.sets:
        return "a derivation is in each of several grouping sets"
    if request.block.distinct:
        names = ", ".join(sorted({d.kind.partition(" ")[0] for d in request.block.distinct}))
        return f"distinct values ({names}) are not products of payloads"
    return propagation.why_groups_are_stored(request.query)


def _inner(request: Request) -> BagPlanner:
    """The strategy that maintains the bags of a cyclic query: ``first_order``, or the one that the view names."""
    name = request.options.get(BAG_STRATEGY, "first_order")
    able = {known: one.bags for known, one in request.strategies.items() if one.bags is not None}
    if name not in able:
        raise PlanError(
            f"view {request.view.name}: strategy '{name}' cannot maintain bags; set '{BAG_STRATEGY}' to "
            f"{' or '.join(able)}"
        )
    return able[name](request)


def _check(request: Request) -> None:
    """Raises PlanError if the named updates cannot be read, under every strategy. The first rows of an order are read
    from a view of its own, to which the option belongs."""
    if request.block.limit is None:
        named_updates(request.view, request.inputs)


STRATEGY = Strategy(
    "crown",
    _plan,
    propagation.plan,
    properties=frozenset({JOIN_TREE, BAG_STRATEGY}),
    owns=frozenset({JOIN_TREE, BAG_STRATEGY}),
    hints=frozenset({NAMED}),
    check=_check,
    inner=BAG_STRATEGY,
    kinds=EVERY_KIND,
)
