"""The state of a first-order view made at once: its rows are stored, and the result is a leapfrog triejoin of them.

A view over tables that hold rows already is filled by feeding it those rows. Under ``first_order`` each of them costs a
delta: for a cyclic query, all of them together may cost far more than the join that they amount to. What is stored is
the same (``first_order.stores_of``), so the program made here, over the same views with their indexes, stores the rows
and evaluates the result once; the view then goes on from there, by its own program.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from freshviews.plan import trie_join
from freshviews.program.nodes import Program
from freshviews.query.query import Query


def plan(program: Program, query: Query, sizes: Mapping[str, float] | None = None) -> Program | None:
    """The program that makes the views of a first-order ``program`` of a query; ``sizes`` are rows by relation.

    None where its views are not those of a trie join: MIN, MAX and DISTINCT aggregates hang on it, or it is of one
    relation, of which nothing is stored but the result.
    """
    made = trie_join.plan(query, sizes=sizes)
    stored = {view.name: (view.key, view.components) for view in program.views}
    if {view.name: (view.key, view.components) for view in made.views} != stored:
        return None
    return replace(made, views=program.views)
