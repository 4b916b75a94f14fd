"""Chooses a join tree: the tree that the view names, or the tree of least cost for the expected updates.

Source: "Query plan optimization" in section 6.3 of the CROWN paper (``plan.crown.propagation``).
"""

from __future__ import annotations

from collections.abc import Mapping

from freshviews.catalog.definitions import TableDef, ViewDef
from freshviews.errors import PlanError
from freshviews.plan.crown.free_connex_query import BagQuery, Prepared, graph_of, prepared, with_bags
from freshviews.plan.crown.placing import placed
from freshviews.query.acyclic import JoinTree
from freshviews.query.join_trees import best_tree, cost, parse_tree
from freshviews.query.query import Query

NAMED = "freshviews.updates"
_DECLARED = frozenset({"freshviews.update_rate", "freshviews.rows"})


def tree_of(made: Prepared, updates: Mapping[str, float], named: str | None, counted: bool = True) -> JoinTree:
    """The named free-connex tree, or the one with the least cost of updates, with optional and negated atoms attached
    (``plan.crown.placing``). ``updates``: numbers by atom or bag. A bag without a number changes once per update of an
    atom in it. ``counted``: as in ``placed``. PlanError if the named tree is not valid, or if some atom finds no
    place."""
    return placed(_choose_tree(made, updates, named), made, counted)


def _choose_tree(made: Prepared, updates: Mapping[str, float], named: str | None) -> JoinTree:
    query = made.query
    graph = graph_of(query, made.free)
    if named is not None:
        try:
            return parse_tree(named, graph)
        except ValueError as error:
            beside = [atom.name for atom in query.occurrences if not query.is_ordinary(atom)]
            more = f"; leave out {', '.join(beside)}, which outer joins or NOT EXISTS attach" if beside else ""
            raise PlanError(f"{query.name}: 'freshviews.join_tree' = '{named}': {error}{more}") from None
    of_bags = {
        name: sum(updates.get(atom, 1.0) for atom in bag.members)
        for name, bag in made.bags.items()
        if any(atom in updates for atom in bag.members)
    }
    found = best_tree(graph, {**of_bags, **updates})
    assert found is not None  # guaranteed by the choice of the output
    return found


def rates_of(view: ViewDef, query: Query, inputs: Mapping[str, TableDef | ViewDef]) -> dict[str, float]:
    """The expected updates of atoms and bags: those that the view names, else those that its tables declare, else the
    declared rows of the tables. PlanError if the named ones cannot be read.

    The view names the expected numbers of updates (``'freshviews.updates' = 'likes 5000, users 20'``), its tables
    declare them, or the engine measures them. For a bag of a cyclic query, the updates of its rows are counted.
    """
    named = named_updates(view, inputs)
    if named is not None:
        atoms = {a.name: named[a.relation] for a in query.atoms if a.relation in named}
        return atoms | {name: number for name, number in named.items() if name not in inputs}
    rates: dict[str, float] = {}
    for name, relation in inputs.items():
        said = dict(relation.properties)
        declared = said.get("freshviews.update_rate", said.get("freshviews.rows"))
        if declared is not None:
            rates[name] = float(declared)
    return {a.name: rates[a.relation] for a in query.atoms if a.relation in rates}


def named_updates(view: ViewDef, inputs: Mapping[str, TableDef | ViewDef]) -> dict[str, float] | None:
    """The updates that the view names, by relation or bag; None if it names none. PlanError if they cannot be read."""
    text = dict(view.properties).get(NAMED)
    if text is None:
        return None
    known = {name.lower(): name for name in inputs}
    found = {}
    for part in text.split(","):
        name, _, number = part.strip().rpartition(" ")
        name = name.strip().lower()
        if name not in known:
            known = {bag.lower(): bag for bag in _bags(view)} | known
        if name not in known or not number.isdecimal():
            raise PlanError(
                f"view {view.name}: '{NAMED}' = '{text}': {part.strip()!r} must be a name and its number of updates, "
                f"as '{next(iter(inputs))} 1000'; the names are {', '.join(inputs)}"
            )
        found[known[name]] = float(number)
    return found


def _bags(view: ViewDef) -> dict[str, BagQuery]:
    return {name: bag for block in view.blocks for name, bag in with_bags(block.query)[1].items()}


def may_be_measured(view: ViewDef, inputs: Mapping[str, TableDef | ViewDef]) -> bool:
    """True if the updates of a view's tables may be measured and may differ: the tables are stored and declare none,
    the view names no join tree, and it reads several tables or has bags."""
    if "freshviews.join_tree" in dict(view.properties):
        return False
    measurable = all(
        isinstance(relation, TableDef)
        and not relation.trusted
        and _DECLARED.isdisjoint(dict(relation.properties))
        and name.isidentifier()
        for name, relation in inputs.items()
    )
    return measurable and (len(inputs) > 1 or bool(_bags(view)))


def better_updates(
    view: ViewDef,
    inputs: Mapping[str, TableDef | ViewDef],
    counts: Mapping[str, int],
    gain: float,
    rows: Mapping[str, int] | None = None,
) -> str | None:
    """The ``'freshviews.updates'`` for these counts by relation, if the tree chosen by them costs less than ``1 /
    gain`` of the tree that the view has now; None if it does not, or if no tree can be compared.

    ``rows``: rows by relation and bag. An update of a relation changes as many rows of a bag as a row of the relation
    is part of on average; one if the rows of the bag are not known.
    """
    for block in view.blocks:
        made = prepared(block.query)
        relations = {atom.name: atom.relation for atom in block.query.atoms}
        updates = {atom.name: float(counts.get(atom.relation, 0)) for atom in made.query.atoms if atom.relation}
        for name, bag in made.bags.items():
            updates[name] = sum(_changes(name, relations[one], counts, rows or {}) for one in bag.members)
        try:
            now, then = (tree_of(made, known, None) for known in (rates_of(view, block.query, inputs), updates))
        except PlanError:
            # Another strategy maintains this block: no tree has a place for all of its atoms.
            continue
        if cost(now, updates) > gain * cost(then, updates):
            named = {name: counts.get(name, 0) for name in view.inputs}
            named |= {name: round(updates[name]) for name in made.bags if name.isidentifier()}
            return ", ".join(f"{name} {number}" for name, number in named.items())
    return None


def _changes(bag: str, relation: str, counts: Mapping[str, int], rows: Mapping[str, int]) -> float:
    there = rows.get(relation, 0)
    each = rows[bag] / there if bag in rows and there else 1.0
    return each * counts.get(relation, 0)
