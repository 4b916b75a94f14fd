"""Computes the output rows of a block from its raw rows.

A raw row has the grouping values, the aggregates and the multiplicity. The output columns are expressions over them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from freshviews.codegen.compiled_block import CompiledBlock
from freshviews.engine.blocks.host_columns import HostColumn, HostColumns
from freshviews.engine.blocks.runtime import BlockState
from freshviews.engine.codes.code_batch import Codes
from freshviews.engine.codes.words import address, words_at
from freshviews.engine.views.failure import counted_in
from freshviews.engine.views.two_values import two_values_of
from freshviews.expr.nodes import Column, Expr
from freshviews.expr.ops import may_fail
from freshviews.kernel.memory import mem
from freshviews.kernel.output import buffer as buffers
from freshviews.kernel.output.drain import append_rows
from freshviews.kernel.scalar.failure import COMPUTED, COUNTED, ERRORS, TWO_VALUES
from freshviews.kernel.scalar.payload import PAYLOAD_ERRORS
from freshviews.query.block import Block
from freshviews.records import dataclass
from freshviews.types.dictionary import Dictionary

MESSAGES = {**ERRORS, **PAYLOAD_ERRORS}
"""Messages by the word at ``status``, except for errors of host expressions."""


@dataclass(frozen=True)
class Projection:
    """The plan from raw rows to output rows.

    ``raw`` names the words of a raw row; ``places[i]`` is the source of output ``i``: ("raw", word), or ("compiled",
    position in ``compiled``). Host subexpressions have further raw words, ``host``. ``injective``: different raw rows
    give different output rows. ``two_values`` words the error of ONLY_VALUE. ``fails``: a row may have no output;
    ``counted`` words the error COUNTED.
    """

    raw: tuple[str, ...]
    places: tuple[tuple[str, int], ...]
    compiled: tuple[Expr, ...]
    having: Expr | None
    host: tuple[HostColumn, ...]
    injective: bool
    two_values: Callable[[Codes], str]
    fails: bool
    counted: str

    @cached_property
    def order(self) -> list[int] | None:
        """The words of a raw row that are the outputs, if none is computed; None for all words in their order."""
        order = [place for _, place in self.places]
        return None if order == list(range(len(self.raw))) else order


def projection_of(block: Block, dictionary: Dictionary) -> Projection:
    """Plan the output of a block."""
    host = HostColumns()
    names = (*block.free, *(r.name for r in block.results))
    having = None if block.having is None else host.lift(block.having)
    exprs = [host.lift(output.expr) for output in block.outputs]
    computed = host.computed(dictionary)
    raw = (*names, *(name for one in computed for name in one.names))
    if having is None and all(isinstance(e, Column) for e in exprs):
        compiled: tuple[Expr, ...] = ()
        places = tuple(("raw", raw.index(e.name)) for e in exprs if isinstance(e, Column))
    else:
        compiled = tuple(exprs)
        places = tuple(("compiled", i) for i in range(len(exprs)))
    kept = {e.name for e in (o.expr for o in block.outputs) if isinstance(e, Column)}
    injective, worded = kept.issuperset(names), two_values_of(block, dictionary)
    fails = any(map(may_fail, (*compiled, *(() if having is None else (having,)))))
    return Projection(raw, places, compiled, having, computed, injective, worded, fails, counted_in(block))


def project(projection: Projection, compiled: CompiledBlock, state: int, raw: Codes) -> Codes:
    """Output rows, shape (n, outputs + 1), of raw rows, possibly the same array; multiplicities are last."""
    rows, width = raw.shape
    if rows and projection.host:
        columns = _columns(projection, raw)
        computed = [column for one in projection.host for column in one.columns(*one.evaluate(columns))]
        raw = np.column_stack([raw[:, :-1], *computed, raw[:, -1]])
        width = raw.shape[1]
    if compiled.project is None:
        order = projection.order
        if order is None:
            return raw
        return raw[:, [*order, width - 1]] if rows else np.empty((0, len(order) + 1), np.int64)
    out_width = len(projection.compiled) + 1
    if rows == 0:
        return np.empty((0, out_width), np.int64)
    out = buffers.new_buffer(out_width)
    try:
        raw = np.ascontiguousarray(raw)
        compiled.project(address(raw), rows, width, out, state)
        return words_at(mem.load(out, buffers.ROWS), mem.load(out, buffers.COUNT), out_width)
    finally:
        buffers.free_buffer(out)


def _columns(projection: Projection, raw: Codes) -> dict[str, Codes]:
    """The columns of raw rows by name; if there are none, the multiplicities, for the number of rows."""
    found = {name: raw[:, i] for i, name in enumerate(projection.raw) if i < raw.shape[1] - 1}
    return found or {"": raw[:, -1]}


def reason(projection: Projection, compiled: CompiledBlock, state: BlockState, raw: Codes) -> str:
    """The message of a failure of ``project``, for the first row without a value.

    CASE and HAVING may exclude other rows without a value, so the row is found by bisection.
    """
    error = int(state.status[0])
    if error == COUNTED:
        return projection.counted
    if error < COMPUTED and error != TWO_VALUES:
        return MESSAGES[error]
    while len(raw) > 1:
        half = len(raw) // 2
        state.reset_status()
        project(projection, compiled, state.state, raw[:half])
        raw = raw[half:] if state.status[0] == 0 else raw[:half]
    state.reset_status()
    project(projection, compiled, state.state, raw)
    error = int(state.status[0])
    for one in projection.host:
        if one.error == error:
            (failure,) = one.evaluate(_columns(projection, raw))[1].values()
            if failure.call.op != "only_value":
                return failure.reason
    if error == COUNTED:
        return projection.counted
    return MESSAGES[error] if error in MESSAGES and error != TWO_VALUES else projection.two_values(raw)


def consolidate(rows: Codes) -> Codes:
    """Merges rows that differ only in multiplicity, and drops rows of multiplicity zero."""
    if len(rows) < 2:
        return rows if len(rows) == 0 or rows[0, -1] != 0 else rows[:0]
    width = rows.shape[1]
    out = buffers.new_buffer(width)
    try:
        for_all = np.ascontiguousarray(rows)
        append_rows(out, address(for_all), len(rows))
        buffers.consolidate(out)
        return words_at(mem.load(out, buffers.ROWS), mem.load(out, buffers.COUNT), width)
    finally:
        buffers.free_buffer(out)
