"""Converts keys to codes when a user looks them up. Unlike an insert, a lookup adds no strings to the dictionary."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from freshviews.catalog.definitions import ColumnDef, TableDef
from freshviews.engine.codes.code_batch import Codes, address_of
from freshviews.engine.codes.moments import codes_of_texts, is_text, reader_of
from freshviews.engine.codes.string_codes import codes_of
from freshviews.errors import BatchError, shown
from freshviews.kernel.codes.string_search import search_codes
from freshviews.kernel.codes.string_slots import UNKNOWN
from freshviews.types import BINARY, STRING
from freshviews.types.arrow_check import columns_of, flaw_of, without_views
from freshviews.types.columns import encode_arrow
from freshviews.types.dictionary import Dictionary
from freshviews.types.values import BadValue, encoder_for, finder_for


class OneKey:
    """Makes codes of one key of a table or view. ``relation``: the words for it in errors.

    ``names``: columns of the key, in the order in which users give them. ``stored``: the same, in another order.
    """

    def __init__(
        self,
        relation: str,
        names: Sequence[str],
        columns: Sequence[ColumnDef],
        dictionary: Dictionary,
        stored: Sequence[str] = (),
    ) -> None:
        self.names = tuple(names)
        self._relation = relation
        types = {column.name: column.type for column in columns}
        self._find = dictionary.find
        self._texts = tuple(types[name] == STRING for name in names)
        self._encoders: list[Callable[[Any], int | None]] = [
            finder_for(types[name], dictionary)
            if types[name].wide or types[name] == BINARY
            else encoder_for(types[name], True, dictionary, reader_of(types[name]))
            for name in names
        ]
        self._order = [self.names.index(name) for name in stored]
        self._sorted = self._order == [*range(len(names))]

    def codes(self, key: Any) -> list[int] | None:
        """The codes of a key: of a value, a tuple of values, or a dict. None if no row can have it.

        Raises KeyError if it has another number or type of values.
        """
        values = key if isinstance(key, tuple) else self._of_names(key) if isinstance(key, Mapping) else (key,)
        if len(values) != len(self.names):
            raise KeyError(f"the key of {self._relation} is ({', '.join(self.names)}), not {shown(key)}")
        codes = []
        for number, value in enumerate(values):
            code: int | None
            if self._texts[number] and isinstance(value, str):
                code = self._find(value)
            else:
                try:
                    code = self._encoders[number](value)
                except (TypeError, ValueError, OverflowError) as error:
                    reason = f"{self.names[number]} of {self._relation}: {shown(value)}: {error}"
                    raise KeyError(reason) from None
            if code is None:
                return None
            codes.append(code)
        return codes

    def in_order(self, codes: list[int]) -> list[int]:
        """The codes of a key in the order of ``stored``."""
        return codes if self._sorted else [codes[place] for place in self._order]

    def _of_names(self, key: Mapping[Any, Any]) -> tuple[Any, ...]:
        """The values of a key that is given by name; () if it has other names."""
        given = {name.lower(): value for name, value in key.items() if isinstance(name, str)}
        wanted = [name.lower() for name in self.names]
        return tuple(given[name] for name in wanted) if given.keys() == set(wanted) and len(given) == len(key) else ()


def key_codes(
    table: TableDef, names: Sequence[str], keys: pa.RecordBatch | pa.Table, dictionary: Dictionary
) -> list[Codes]:
    """Codes of the columns ``names`` of the table, found in ``keys`` by name in any case; other columns are ignored.

    A string that is not in the dictionary becomes UNKNOWN, which no row has. BatchError if a column is missing, given
    twice or not of its type.
    """
    columns = {column.name: column for column in table.columns}
    try:
        pairs = columns_of(keys)
    except ValueError as error:
        raise BatchError(f"table {table.name}: {error}", table=table.name, rule="columns can be read") from None
    given = [name.lower() for name, _ in pairs]
    found = []
    for name in names:
        if given.count(name.lower()) != 1:
            many = "no column" if name.lower() not in given else "more than one column"
            rule = f"the primary key is ({', '.join(names)})"
            raise BatchError(
                f"table {table.name}: the keys to look up have {many} {name}; {rule}",
                table=table.name,
                column=name,
                rule=rule,
            )
        found.append(_codes(table.name, columns[name], pairs[given.index(name.lower())][1], dictionary))
    return found


def _codes(table: str, column: ColumnDef, given: pa.Array | pa.ChunkedArray, dictionary: Dictionary) -> Codes:
    row, value, reason = None, str(given.type), ""
    flaw = flaw_of(given)
    try:
        if flaw is not None:
            row, reason = flaw
            raise ValueError(reason)
        if column.type == STRING and not pa.types.is_null(given.type):
            # Encoding an empty slice checks the type.
            encode_arrow(column.type, given.slice(0, 0), dictionary)
            return _strings(given, dictionary)
        read = reader_of(column.type)
        if read is not None and is_text(given):
            return codes_of_texts(read, given)
        return encode_arrow(column.type, given, dictionary)
    except BadValue as error:
        row, value, reason = error.row, shown(error.value), error.reason
    except (TypeError, ValueError, OverflowError, pa.ArrowException) as error:
        reason = str(error)
    raise BatchError(
        f"table {table}, {'' if row is None else f'key {row}, '}column {column.name}: {value}: {reason}",
        table=table,
        row=row,
        column=column.name,
        value=value,
        rule=str(column.type),
    )


def _strings(given: pa.Array | pa.ChunkedArray, dictionary: Dictionary) -> Codes:
    chunks = given.chunks if isinstance(given, pa.ChunkedArray) else [given]
    known = codes_of(dictionary)
    codes = np.full(len(given), UNKNOWN, np.int64)
    at = 0
    for chunk in chunks:
        texts = without_views(chunk).cast(pa.large_string())
        _, offsets, data = texts.buffers()
        if len(texts):
            # A column of empty strings may have no data buffer; it is not read then.
            bytes_at = 0 if data is None else data.address
            search_codes(
                known.address, offsets.address + 8 * texts.offset, bytes_at, len(texts), address_of(codes[at:])[0]
            )
        if texts.null_count:
            codes[at : at + len(texts)][texts.is_null().to_numpy(zero_copy_only=False)] = UNKNOWN
        at += len(texts)
    return codes
