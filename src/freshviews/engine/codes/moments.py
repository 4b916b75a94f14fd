"""Parses texts as dates and timestamps, in the formats that a pipeline also accepts in CSV files."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa

from freshviews.engine.codes.code_batch import Codes
from freshviews.expr.casts import whole_date, whole_timestamp
from freshviews.types import NULL, SqlType
from freshviews.types.arrow_check import without_views
from freshviews.types.values import BadValue


def reader_of(kind: SqlType) -> Callable[[str], int] | None:
    """The function that reads a text as a code; None for other types than DATE and TIMESTAMP."""
    read = {"DATE": whole_date, "TIMESTAMP": whole_timestamp}.get(kind.name)
    return None if read is None else partial(_read, read)


def _read(read: Callable[[str], int], text: str) -> int:
    try:
        return read(text)
    except ValueError as error:
        # The value is named by the caller.
        raise ValueError(f"the value {str(error).removeprefix(f'{text!r} ')}") from None


def is_text(column: pa.ChunkedArray | pa.Array) -> bool:
    """Whether a column has texts."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def codes_of_texts(read: Callable[[str], int], column: pa.ChunkedArray | pa.Array) -> Codes:
    """The codes of a column of texts, each distinct text read once. Raises BadValue with the first refused row."""
    texts = without_views(column).cast(pa.large_string())
    # Distinct texts come in the order of their first rows.
    encoded = (texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts).dictionary_encode()
    places = encoded.indices.fill_null(len(encoded.dictionary)).to_numpy(zero_copy_only=False)
    codes = np.full(len(encoded.dictionary) + 1, NULL, np.int64)
    for place, text in enumerate(encoded.dictionary.to_pylist()):
        try:
            codes[place] = read(text)
        except (ValueError, OverflowError) as error:
            raise BadValue(int(np.argmax(places == place)), text, str(error)) from None
    found: Codes = codes[places]
    return found
