"""How many updates a join tree is chosen for: those that the view names, that are declared of its tables, or that its
tables were seen to take.

Source: Wang, Hu, Dai, Yi: Change Propagation Without Joins (PVLDB 16(5), 2023), "Query plan optimization" in Section
6.3: where the number of updates of a relation is not known, it is estimated from the first ones. A view names them as
``'freshviews.updates' = 'likes 5000, users 20'``; that is also how what was seen is kept.
"""

from __future__ import annotations

from collections.abc import Mapping

from freshviews.errors import PlanError
from freshviews.plan.crown_query import prepared, tree_of
from freshviews.query.block import TableDef, ViewDef
from freshviews.query.join_trees import cost
from freshviews.query.query import Query

NAMED = "freshviews.updates"
_DECLARED = frozenset({"freshviews.update_rate", "freshviews.rows"})


def rates_of(view: ViewDef, query: Query, inputs: Mapping[str, TableDef | ViewDef]) -> dict[str, float]:
    """The expected updates of atoms, as far as the view names them, else as far as their tables declare them or, for
    want of that, how many rows they have. PlanError where what the view names cannot be read."""
    text = dict(view.properties).get(NAMED)
    rates: dict[str, float | None] = {}
    if text is not None:
        rates |= _named(view, text, inputs)
    else:
        for name, relation in inputs.items():
            said = dict(relation.properties)
            declared = said.get("freshviews.update_rate", said.get("freshviews.rows"))
            rates[name] = None if declared is None else float(declared)
    return {a.name: rate for a in query.atoms if (rate := rates.get(a.relation)) is not None}


def _named(view: ViewDef, text: str, inputs: Mapping[str, TableDef | ViewDef]) -> dict[str, float]:
    known = {name.lower(): name for name in inputs}
    found = {}
    for part in text.split(","):
        name, _, number = part.strip().rpartition(" ")
        if name.strip().lower() not in known or not number.isdecimal():
            raise PlanError(
                f"view {view.name}: '{NAMED}' = '{text}': {part.strip()!r} is not a table that the view reads and a "
                f"number of updates, as '{next(iter(inputs))} 1000'; it reads {', '.join(inputs)}"
            )
        found[known[name.strip().lower()]] = float(number)
    return found


def may_be_measured(view: ViewDef, inputs: Mapping[str, TableDef | ViewDef]) -> bool:
    """Whether nothing is said of the updates of a view that reads several relations, all of them stored tables."""
    said = dict(view.properties)
    if NAMED in said or "freshviews.join_tree" in said or len(inputs) < 2:
        return False
    return all(
        isinstance(relation, TableDef)
        and not relation.trusted
        and _DECLARED.isdisjoint(dict(relation.properties))
        and name.isidentifier()
        for name, relation in inputs.items()
    )


def better_updates(view: ViewDef, counts: Mapping[str, int], gain: float) -> str | None:
    """What to name as ``'freshviews.updates'`` where the tree for these counts, by relation, costs less, so many times,
    than the one for equal numbers of updates; None where it does not, or where no tree can say."""
    for block in view.blocks:
        made = prepared(block.query)
        if made.bags:
            continue
        updates = {atom.name: float(counts.get(atom.relation, 0)) for atom in made.query.atoms}
        now, then = (tree_of(made.query, made.free, known, None) for known in ({}, updates))
        if cost(now, updates) > gain * cost(then, updates):
            return ", ".join(f"{name} {counts.get(name, 0)}" for name in view.inputs)
    return None
