"""Converts the columns of a batch to the types of the table's columns, and reports each value that does not fit."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from freshviews.catalog.definitions import ColumnDef
from freshviews.stream.pieces import Report, codes_of
from freshviews.stream.text import text_codes, text_reader
from freshviews.types import Dictionary
from freshviews.types import arrow_compute as pc
from freshviews.types.arrow_check import is_text
from freshviews.types.columns import arrow_type, characters_over, decode_array, encode_arrow
from freshviews.types.values import NULL_REFUSED, too_long

Mask = npt.NDArray[np.bool_]


def conformed(column: ColumnDef, given: pa.Array, report: Report, unused: Mask | None = None) -> pa.Array:
    """Return the column as ``arrow_type(column.type)``, null where a value is bad; each bad value is reported.

    ``unused``: rows whose value of this column is not needed. Raises TypeError if no value of the given type is
    accepted.
    """
    kind = column.type
    if unused is not None and unused.any():
        given = pc.if_else(pa.array(unused), pa.scalar(None, given.type), given)
    if not column.nullable and given.null_count:
        nulls = given.is_null().to_numpy(zero_copy_only=False)
        for row in np.flatnonzero(nulls if unused is None else nulls & ~unused).tolist():
            report(row, None, NULL_REFUSED)
    if kind.name == "STRING":
        return limit_length(column.length, _strings(given), report) if column.length else _strings(given)
    dictionary = Dictionary()
    if is_text(given.type):
        texts = given.cast(pa.string())
        read = text_reader(kind, dictionary)
        codes = codes_of(texts, lambda piece: text_codes(kind, piece, dictionary), read, report)
        return decode_array(kind, codes, dictionary)
    encode_arrow(kind, given[:0], dictionary)
    bad: list[int] = []

    def found(row: int, value: object, reason: str) -> None:
        bad.append(row)
        report(row, value, reason)

    codes = codes_of(given, lambda piece: encode_arrow(kind, piece, dictionary), None, found)
    if given.type == arrow_type(kind) and not bad and not kind.is_float:
        return given
    return decode_array(kind, codes, dictionary)


def limit_length(length: int, given: pa.Array, report: Report) -> pa.Array:
    """Return the strings of at most ``length`` characters, null where one has more; each such value is reported."""
    over = characters_over(given, length)
    for row, characters in over.items():
        report(row, given[row].as_py(), too_long(length, characters))
    if not over:
        return given
    bad = np.zeros(len(given), bool)
    bad[list(over)] = True
    return pc.if_else(pa.array(bad), pa.scalar(None, given.type), given)


def _strings(given: pa.Array) -> pa.Array:
    if given.type == pa.string():
        return given
    if not is_text(given.type) and not pa.types.is_null(given.type):
        raise TypeError(f"STRING accepts a column of strings, not of {given.type}")
    return given.cast(pa.string())
