"""The state of a first-order view made at once: its rows are stored, and joined by a leapfrog triejoin.

A view over tables that hold rows already is filled by feeding it those rows. Under ``first_order`` each of them costs a
delta: for a cyclic query, all of them together may cost far more than the join that they amount to. What is stored is
the same (``first_order.stores_of``), so the program made here, over the same views with their indexes, stores the rows
and evaluates the result once; the view then goes on from there, by its own program. MIN, MAX and DISTINCT aggregates
count derivations by value in views of their own (``plan.assemble``), whatever the strategy: these are evaluated too,
and the ends of groups with them.
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
    """The program that makes the views of a first-order ``program`` of a block; ``sizes`` are rows by relation.

    None where its views are not those of a trie join: it is of one relation, of which nothing is stored but the result.
    """
    made = assemble(block, lambda query: trie_join.plan(query, sizes=sizes))
    if set(map(_kind, made.views)) != set(map(_kind, program.views)):
        return None
    return replace(made, views=program.views)


def _kind(view: View) -> object:
    """What views have in common that hold the same."""
    return view.name, view.key, view.components, view.ordered, view.folds
