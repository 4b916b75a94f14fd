"""Reads the time of a database, the only row of an internal table. Makes the batch that sets a later time."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np

from freshviews.catalog.clock import CLOCK, NOW
from freshviews.engine.codes.code_batch import CodeBatch
from freshviews.engine.codes.encoding import Encoded
from freshviews.engine.tables.constraints import Changes
from freshviews.engine.tables.table_state import TableState
from freshviews.errors import ArgumentError, EvaluationError, shown
from freshviews.types import TIMESTAMP
from freshviews.types.dictionary import Dictionary
from freshviews.types.values import decode_value, encoder_for

_TEXTS = Dictionary()
_ENCODE = encoder_for(TIMESTAMP, False, _TEXTS)


def time_of(table: TableState | None) -> Any:
    """The time, None before the first advance."""
    return None if table is None or (code := _code(table)) is None else decode_value(TIMESTAMP, code, _TEXTS)


def later(table: TableState, time: object) -> Encoded | None:
    """The batch that sets the time; None if it is the time already. Raises ArgumentError for an earlier time, or for
    what is none."""
    before = _code(table)
    try:
        now = _ENCODE(dt.datetime.now(dt.UTC) if time is None else time)
    except (TypeError, ValueError, OverflowError) as error:
        message = f"Database.advance(time) must be a datetime, not {shown(time)}: {error}"
        raise ArgumentError(message) from None
    if before is not None and time is None:
        # The machine's clock may have been set back.
        now = max(now, before)
    if before is not None and now < before:
        message = f"Database.advance(time) is {shown(time)}, and the clock is at {time_of(table)}; it only goes forward"
        raise ArgumentError(message)
    if now == before:
        return None
    codes = [now] if before is None else [before, now]
    signs = np.array([-1, 1][-len(codes) :], np.int64)
    return Encoded(CodeBatch(CLOCK.name, {NOW: np.array(codes, np.int64)}, signs))


def of_clock(error: EvaluationError, changes: Changes) -> EvaluationError:
    """The error of a view that cannot be computed in a version that sets the clock, with its time and the remedy."""
    batch = next(encoded.batch for table, encoded in changes if table.name == CLOCK.name)
    time = decode_value(TIMESTAMP, int(batch.columns[NOW][-1]), _TEXTS)
    text = str(error)
    text = text[text.find("view ", text.find(": ")) :]
    return EvaluationError(
        f"the clock at {time}: {text}; write an expression with a value at that time, as with try_divide, or change "
        "the rows that the view reads",
        table=error.table,
        value=error.value,
        rule=error.rule,
    )


def _code(table: TableState) -> int | None:
    codes = [int(code) for batch in table.batches(1) for code in batch.columns[NOW]]
    return codes[0] if codes else None
