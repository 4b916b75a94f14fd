"""Provides the compiled reader of a view's change, so that ``engine.commit.direct`` commits and reads in one call.

A view has a reader only if it has one block (one SELECT) and computes no output columns.
"""

from __future__ import annotations

from collections.abc import Sequence

from freshviews.engine.blocks.runtime import BlockState
from freshviews.engine.codes.code_batch import Codes
from freshviews.engine.views.view_block import ViewBlocks
from freshviews.kernel.machine.functions import Function
from freshviews.kernel.memory.triggers import entry_of


class ChangeReader:
    """``entry``: words with which ``kernel.direct`` calls the reader; it writes to the state's buffer."""

    def __init__(self, state: BlockState, function: Function, order: Sequence[int] | None) -> None:
        self.entry = entry_of(function), state.state, state.raw
        self._state = state
        self._order = None if order is None else [*order, -1]

    def rows(self) -> Codes:
        """The rows that the reader wrote: outputs and multiplicity."""
        raw = self._state.drain()
        return raw if self._order is None else raw[:, self._order]


def reader_of(blocks: ViewBlocks) -> ChangeReader | None:
    """The reader of a view whose change is the raw rows of one block; None if outputs are computed from them, or the
    reader is not compiled."""
    (block,) = blocks
    function = block.compiled.read_change
    if block.projection.host or block.compiled.project is not None or not isinstance(function, Function):
        return None
    if function.code is None:
        return None
    block.state.awake()
    return ChangeReader(block.state, function, block.projection.order)
