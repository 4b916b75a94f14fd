"""Checks that the offsets, lengths and indices of an Arrow column stay inside its memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

_AS_BYTES = {
    pa.string(): pa.binary(),
    pa.large_string(): pa.large_binary(),
    pa.string_view(): pa.binary_view(),
}


def sizes_fit(rows: pa.Table | pa.RecordBatch) -> bool:
    """True if buffers have the bytes that lengths, and first and last offsets, need. Takes a microsecond."""
    try:
        rows.validate()
    except pa.ArrowException:
        return False
    return True


def columns_of(rows: pa.Table | pa.RecordBatch) -> list[tuple[str, Any]]:
    """Names and columns; raises ``ValueError`` if they cannot be read."""
    try:
        for column in rows.columns:
            _chunks(column)
        return list(zip(rows.schema.names, rows.columns, strict=True))
    except UnicodeDecodeError:
        raise ValueError("a column name in the Arrow schema is not valid UTF-8 text") from None
    except KeyError:  # pyarrow has no class for some types, such as months.
        types = ", ".join(map(str, rows.schema.types))
        raise ValueError(f"pyarrow cannot read one of the columns; the types of the columns are {types}") from None


def flaw_of(column: pa.Array | pa.ChunkedArray) -> tuple[int | None, str] | None:
    """The first row whose value lies outside the memory of its column, and the reason; None if every value is inside.

    The row is None if a length is wrong, so that no row can be read.
    """
    start = 0
    for chunk in _chunks(column):
        reason = _flaw(chunk)
        if reason is not None:
            row = _first_flaw(chunk)
            return None if row is None else start + row, f"the Arrow data is corrupt: {reason}"
        start += len(chunk)
    return None


def _first_flaw(chunk: pa.Array) -> int | None:
    """The first row with a flaw; if no row has one, None and the flaw of the whole column."""
    try:
        least, most = 0, len(chunk)
    except SystemError:  # The length is negative.
        return None
    if _flaw(chunk.slice(0, 0)) is not None or _flaw(chunk.slice(0, most)) is None:
        return None
    while most - least > 1:  # A flaw of a row is a flaw of every slice from the first row to it.
        middle = (least + most) // 2
        if _flaw(chunk.slice(0, middle)) is None:
            least = middle
        else:
            most = middle
    return least


def _chunks(column: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]


def cleaned(array: pa.Array) -> tuple[pa.Array, dict[int, bytes]]:
    """A column without flaws (views as large strings, U+FFFD for invalid UTF-8), and the original bytes by row."""
    array = without_views(array)
    if not is_text(array.type):
        return array, {}
    try:
        array.validate(full=True)
        return array, {}
    except pa.ArrowException:  # The invalid string may be in a dictionary without being used by a row.
        plain = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
    values = plain.view(_AS_BYTES[plain.type]).to_pylist()
    texts = [None if value is None else value.decode(errors="replace") for value in values]
    invalid = {row: value for row, value in enumerate(values) if value is not None and not _is_utf8(value)}
    return pa.array(texts, plain.type), invalid


def is_text(kind: pa.DataType) -> bool:
    """True if a column of an Arrow type has text, itself or in its dictionary."""
    return (kind.value_type if pa.types.is_dictionary(kind) else kind) in _AS_BYTES


def without_views(column: Any) -> Any:
    """A column without flaws, with views converted to large strings; a column of another type unchanged.

    Arrow's cast also reads the views of NULLs, which may be any bytes.
    """
    if not pa.types.is_string_view(column.type):
        return column
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([without_views(chunk) for chunk in column.chunks], pa.large_string())
    validity, views, *others = column.buffers()
    if validity is not None:
        end = column.offset + len(column)
        words = np.frombuffer(views, np.int64, 2 * end).reshape(-1, 2)
        valid = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little", count=end)
        buffers = [validity, pa.py_buffer(words * valid[:, None]), *others]
        column = pa.Array.from_buffers(column.type, len(column), buffers, offset=column.offset)
    return column.cast(pa.large_string())


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _flaw(array: pa.Array) -> str | None:
    """The reason why values cannot be read; None if all can."""
    kind = array.type
    try:
        array.validate()
        if pa.types.is_dictionary(kind):
            array.indices.validate(full=True)
            return _flaw(array.dictionary) or _bad_index(array.indices, len(array.dictionary))
        if kind in _AS_BYTES:
            array.view(_AS_BYTES[kind]).validate(full=True)
        elif not pa.types.is_date64(kind):  # ``columns`` checks that these are whole days.
            array.validate(full=True)
    except pa.ArrowException as error:
        return str(error)
    return None


def _bad_index(indices: pa.Array, values: int) -> str | None:
    found = indices.drop_null().to_numpy()
    if not len(found) or (found.min() >= 0 and found.max() < values):
        return None
    index = found[np.argmax((found < 0) | (found >= values))]
    return f"index {index} is not one of the {values} values of its dictionary"
