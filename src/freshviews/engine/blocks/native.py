"""Allocates the hash tables of a program's views in native memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from freshviews.codegen.layout import narrow_runs, row_layout, words_of
from freshviews.engine.codes.string_codes import codes_of
from freshviews.engine.codes.words import address
from freshviews.kernel.btree import folds
from freshviews.kernel.hash import table
from freshviews.kernel.memory import mem
from freshviews.kernel.ordered import index as ordered
from freshviews.kernel.ordered import threshold_tree
from freshviews.kernel.ordered.folds import GREATEST_ROW, LEAST_ROW, MODE, MODE_LAST, ordered_fold_at
from freshviews.kernel.ordered.groups import leave_small_outside
from freshviews.kernel.ordered.sums import describe_sums, header_words, words_of_sum
from freshviews.kernel.widen import widen_table
from freshviews.program.views import Order, View
from freshviews.types.dictionary import Dictionary

_FOLDS = {"bit_and": folds.BIT_AND, "bit_or": folds.BIT_OR, "min": folds.LEAST, "max": folds.GREATEST}
_FOLDS |= {"mode": MODE, "mode_last": MODE_LAST, "min_by": LEAST_ROW, "max_by": GREATEST_ROW}

_VALUES = {
    "before": threshold_tree.BEFORE,
    "through": threshold_tree.THROUGH,
    "itself": threshold_tree.ITSELF,
    "negated": threshold_tree.NEGATED,
}


def _kind(order: Order) -> int:
    kind = ordered.STRING_ORDER if order.type.is_text else ordered.INTEGER_ORDER
    if order.type.is_float:
        kind = ordered.DOUBLE_ORDER
    return kind | order.descending * ordered.DESCENDING | order.nulls_last * ordered.NULLS_LAST


def _fold_words(view: View) -> int:
    """Words of a row for its order, without the word of the children."""
    if view.running is not None:
        return threshold_tree.TREE_WORDS - 1
    return len(view.folds) + int(view.placed)


def new_table(view: View, dictionary: Dictionary, digested: frozenset[tuple[int, ...]] = frozenset()) -> int:
    """The handle of an empty table for a view, with its indexes; indexes on ``digested`` positions store digests. An
    order over strings compares the strings of the dictionary."""
    layout = row_layout(view)
    of_all = len(view.indexes) + sum(len(subset.indexes) for subset in view.subsets)
    sizes = [words_of(view.component(name)) for name in view.sums]
    in_order = int(bool(view.ordered)) + _fold_words(view) + sum(map(words_of_sum, sizes))
    handle: int = table.new_table(layout.key, layout.payload, of_all, in_order, int(view.journal))
    for positions in view.indexes:
        words = np.array(positions or (0,), np.int64)
        left_over = set(range(len(view.key))).difference(positions) if positions in digested else {-1}
        table.add_index(handle, address(words), len(positions), 1 + left_over.pop())
    for subset in view.subsets:
        for positions in subset.indexes:
            words = np.array(positions or (0,), np.int64)
            table.add_subset_index(handle, address(words), len(positions))
    if view.ordered:
        index = ordered.new_ordered(handle, len(view.ordered), _fold_words(view), header_words(sizes))
        for i, order in enumerate(view.ordered):
            mem.store(index, ordered.KINDS + i, _kind(order))
        if any(order.type.is_text for order in view.ordered):
            ordered.set_strings(index, codes_of(dictionary).address)
        group = tuple(range(len(view.prefix)))
        if group in view.indexes and not view.folds and view.running is None:
            slices = mem.load(mem.load(handle, table.INDEX_LIST), view.indexes.index(group))
            leave_small_outside(index, slices)
        for f, fold in enumerate(view.folds):
            mem.store(ordered_fold_at(index, handle, f), folds.KIND, _FOLDS[fold])
        if view.running is not None:
            mem.store(index, ordered.TOP + threshold_tree.VALUE, _VALUES[view.running.value])
            mem.store(index, ordered.TOP + threshold_tree.NULLABLE, int(view.running.nullable))
        if sizes:
            describe_sums(index, handle, [layout.offsets[name] for name in view.sums], sizes)
    return handle


def widen_tables(tables: Sequence[int], before: Sequence[View], after: Sequence[View]) -> bool:
    """Replace narrow sums by reals in the tables of views; False if memory runs out."""
    for handle, narrow, wide in zip(tables, before, after, strict=True):
        if narrow.components != wide.components:
            runs = np.array(narrow_runs(narrow.components), np.int64)
            if widen_table(handle, row_layout(wide).payload, address(runs), len(runs) // 2) == 0:
                return False
    return True
