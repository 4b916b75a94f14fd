"""Makes a program that initialises a view of the strategy ``first_order`` by one leapfrog triejoin.

For a cyclic query, one join over all stored rows is cheaper than a delta query per row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from freshviews.plan.assemble import assemble
from freshviews.plan.trie import trie_join
from freshviews.program.program import Program
from freshviews.program.views import View
from freshviews.query.block import Block


def plan(program: Program, block: Block, sizes: Mapping[str, float] | None = None) -> Program | None:
    """The program that initialises the views of a first-order ``program`` of a block. ``sizes`` are rows by relation.

    None if its views differ from those of a trie join: a query over one relation stores only the result.

    Usually a view is initialised by running its triggers over the stored rows. Under ``first_order`` each row then
    evaluates a delta query. For a cyclic query the deltas of all rows may cost far more than one join. The program made
    here stores the rows and evaluates the result once. Then the first-order program takes over, with the same views and
    indexes (``first_order.stores_of``). The views for MIN, MAX and DISTINCT aggregates (``plan.assemble``) are
    initialised, too.
    """
    made = assemble(block, lambda query: trie_join.plan(query, sizes=sizes))
    if made.result != program.result:
        # Groups appear and vanish with their values, some of which may cancel out.
        made = assemble(block, lambda query: trie_join.plan(query, sizes=sizes), in_z=True)
    if set(map(_kind, made.views)) != set(map(_kind, program.views)):
        return None
    return replace(made, views=program.views)


def _kind(view: View) -> object:
    """The attributes in which views with the same contents agree."""
    return view.name, view.key, view.components, view.ordered, view.folds
