"""Finds isomorphic bags of a cyclic query, so that one program maintains these bags.

A *bag* is a part of the query that is joined first.

Two bags are isomorphic if a renaming of variables turns the atoms and conditions of one bag into those of the other.
The two triangles of a dumbbell over one table are an example.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice

from freshviews.plan.crown.free_connex_query import BagQuery
from freshviews.program.rewrite import Renaming
from freshviews.query.query import Atom, Query
from freshviews.records import dataclass

_MOST_RENAMINGS = 64
"""Maximum number of renamings that are compared to find the one with the fewest output variables. Symmetric bags have
very many."""


@dataclass(frozen=True)
class Kept:
    """The query of bags that one program maintains. ``read``: by bag, the query's variables for the free variables of
    the bag, in their order. ``guards`` as in ``BagQuery``."""

    query: Query
    read: Mapping[str, tuple[str, ...]]
    guards: Mapping[str, Atom]


def kept_of(bags: Mapping[str, BagQuery], widened: bool) -> tuple[Kept, ...]:
    """The bags, grouped by being alike. ``widened``: also if they are projected differently.

    Two bags are isomorphic if a renaming of variables turns the atoms and conditions of one bag into the atoms and
    conditions of the other. Relations and filters must be equal. The two triangles of a dumbbell over one table are an
    example. Nodes may read different projections of their bags. Then the output of the program has the variables of all
    projections. A strategy that stores joins is an exception: there, bags share a program only if their projections are
    equal. A larger stored join may cost more than sharing saves.
    """
    found: list[Kept] = []
    for name, bag in bags.items():
        for i, one in enumerate(found):
            read = None if bag.guards or one.guards else _renamed_output(bag.query, one.query, widened)
            if read is not None:
                free = tuple(dict.fromkeys((*one.query.free, *read)))
                found[i] = Kept(replace(one.query, free=free), {**one.read, name: read}, {})
                break
        else:
            found.append(Kept(bag.query, {name: bag.query.free}, bag.guards))
    return tuple(found)


def _renamed_output(query: Query, other: Query, widened: bool) -> tuple[str, ...] | None:
    """The free variables of a query, renamed to those of an isomorphic one; None if the two are not isomorphic."""
    if any(a.lifts for one in (query, other) for a in one.aggregates):
        return None
    renamings = islice(_renamings(query, other), _MOST_RENAMINGS)
    found = [tuple(names[v] for v in query.free) for names in renamings]
    best = min(found, key=lambda read: len(set(read).symmetric_difference(other.free)), default=None)
    return best if best is not None and (widened or set(best) == set(other.free)) else None


def _renamings(query: Query, other: Query) -> Iterator[dict[str, str]]:
    """The renamings of the variables of a query that turn it into the other, except for the output."""
    if len(query.atoms) != len(other.atoms):
        return
    conditions = frozenset(other.conditions)

    def match(names: dict[str, str], left: tuple[Atom, ...]) -> Iterator[dict[str, str]]:
        if not left:
            if frozenset(map(Renaming(names).expression, query.conditions)) == conditions:
                yield names
            return
        atom = query.atoms[len(query.atoms) - len(left)]
        for twin in left:
            if (atom.relation, atom.columns, set(atom.filters)) == (twin.relation, twin.columns, set(twin.filters)):
                more = {**names, **dict(zip(atom.variables, twin.variables, strict=True))}
                one_to_one = len(set(more.values())) == len(more)
                if one_to_one and all(more[v] == named for v, named in names.items()):
                    yield from match(more, tuple(a for a in left if a is not twin))

    yield from match({}, other.atoms)
