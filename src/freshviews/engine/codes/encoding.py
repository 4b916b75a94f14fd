"""Encodes the rows of one table: converts each column to codes, and checks names, number, types, ranges and NULLs."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import field, replace
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from freshviews.catalog.definitions import ColumnDef, TableDef
from freshviews.engine.codes.arrow_plan import ArrowPlan, TextWish, Wish, plan_of
from freshviews.engine.codes.code_batch import CodeBatch, Codes
from freshviews.engine.codes.defaults import default_code
from freshviews.engine.codes.moments import codes_of_texts, is_text, reader_of
from freshviews.engine.codes.objects import fields_of
from freshviews.engine.codes.string_codes import codes_of
from freshviews.engine.codes.text_columns import TextResults
from freshviews.errors import BatchError, OutOfMemory, refused, short, shown
from freshviews.expr.texts import TextFunction
from freshviews.kernel.machine.interruption import FEW, INTERRUPTION, PIECE
from freshviews.records import dataclass
from freshviews.types import BIGINT, NULL, STRING
from freshviews.types.arrow_check import columns_of, flaw_of, sizes_fit
from freshviews.types.columns import MULTIPLICITY, characters_over, encode_arrow
from freshviews.types.dictionary import Dictionary
from freshviews.types.values import BadValue, Encoder, decode_value, encoder_for, limited, too_long

_SIGNS = {sign: np.full(4096, sign, np.int64) for sign in (1, -1)}
"""Multiplicities of inserts or deletes, shared by batches, which never write to them."""
_ONE = {sign: signs[:1] for sign, signs in _SIGNS.items()}
_MANY = 32
"""Least strings that are encoded faster together than one by one."""
_NAMINGS = 64
"""Most lists of names of rows whose places are remembered."""
_REFUSED = (TypeError, ValueError, OverflowError)


@dataclass(frozen=True)
class Encoded:
    """An encoded batch, and the position of each of its rows in the user's input (None: the same).

    ``columns``: of rows of an open batch, the columns of the table when the rows were encoded."""

    batch: CodeBatch
    positions: Codes | None = None
    columns: tuple[ColumnDef, ...] | None = field(default=None, kw_only=True)

    def position(self, row: int) -> int:
        """The row's 0-based position in the user's input."""
        return row if self.positions is None else int(self.positions[row])

    def row_with(self, values: Mapping[str, int], sign: int = 0) -> int | None:
        """Position of the last input row with these codes, and with this sign of its multiplicity unless ``sign`` is 0.

        Columns that were not encoded are not compared.
        """
        found = np.ones(len(self.batch), bool)
        for name, code in values.items():
            if name in self.batch.columns:
                found &= self.batch.columns[name] == code
        if sign:
            found &= (self.batch.multiplicities > 0) == (sign > 0)
        rows = np.flatnonzero(found)
        return self.position(int(rows[-1])) if len(rows) else None


class _Unstored(Dictionary):
    """A dictionary that checks strings without storing them."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = self._check

    def _check(self, text: object) -> int:
        if not isinstance(text, str):
            raise TypeError(f"a text must be a str, not {type(text).__name__}")
        return 0

    def encode_arrow(self, array: pa.Array) -> Codes:
        return np.zeros(len(array), np.int64)


@dataclass(frozen=True)
class _Planned:
    """The compiled way to read a schema: by column, the row of codes, or -1 and a code if the column is absent; and the
    row of multiplicities."""

    plan: ArrowPlan
    columns: tuple[tuple[str, int, int], ...]
    multiplicity: int
    in_order: bool
    """Whether the first rows of codes are the wanted columns of the table, in its order."""


def _encoder(column: ColumnDef, dictionary: Dictionary) -> Encoder:
    encode = encoder_for(column.type, column.nullable, dictionary, reader_of(column.type))
    return limited(encode, column.length) if column.length else encode


class TableEncoder:
    """The encoder of one table. ``want`` selects the columns that become codes; at first, all.

    A batch may have results of text functions instead of a column's codes.

    A ``TableEncoder`` is made once per table, so that a batch of one row needs no preparation. Arity, names, types,
    ranges and NULLs are checked for every column. Columns that nothing reads are not encoded, so their strings never
    enter the dictionary.
    """

    def __init__(self, definition: TableDef, dictionary: Dictionary) -> None:
        self._definition = definition
        self._table = definition.name
        self._columns = definition.columns
        self._dictionary = dictionary
        self._places = {column.name.lower(): i for i, column in enumerate(definition.columns)}
        self._in_order = tuple(range(len(definition.columns)))
        self._known: dict[tuple[Any, ...], tuple[int, ...] | None] = {}
        """``places_of`` of the names of recent rows."""
        self._required = {i for i, column in enumerate(definition.columns) if not column.may_be_absent}
        self._absent = [default_code(column, dictionary) for column in definition.columns]
        """By column, its code in rows that lack it."""
        pairs = zip(definition.columns, self._absent, strict=True)
        self._defaults = [decode_value(column.type, code, dictionary) for column, code in pairs]
        self.multiplicity = encoder_for(BIGINT, False, dictionary)
        self._string_codes = codes_of(dictionary)
        if any(column.type.is_text for column in definition.columns):
            self._string_codes.compile_for_strings()
        self._whole: TableEncoder | None = None
        self.want(frozenset(column.name for column in definition.columns))

    def want(self, names: frozenset[str], functions: Mapping[str, TextFunction] = MappingProxyType({})) -> None:
        """Make codes for these columns only, and columns of the results of functions, by name."""
        self.wanted = names
        places = {column.name: i for i, column in enumerate(self._columns)}
        self._texts = [
            (places[function.column], name, TextResults(function, self._dictionary))
            for name, function in functions.items()
        ]
        self._results = [
            (place, name, encoder_for(self._columns[place].type, True, results))
            for place, name, results in self._texts
        ]
        self._plans: dict[bool, tuple[pa.Schema, _Planned | None]] = {}
        kept = [column.name in names for column in self._columns]
        unstored = self._dictionary if all(kept) else _Unstored()
        self._dictionaries = [self._dictionary if one else unstored for one in kept]
        self.encoders: list[Encoder] = [
            _encoder(column, dictionary) for column, dictionary in zip(self._columns, self._dictionaries, strict=True)
        ]
        # Wanted string columns without a limit of length.
        texts = [column.type == STRING and not column.length for column in self._columns]
        self._texts_at = {i for i, is_text in enumerate(texts) if is_text and kept[i]}
        # Place and name of each wanted column.
        self.kept = [(i, column.name) for i, column in enumerate(self._columns) if column.name in names]

    def whole(self) -> TableEncoder:
        """An encoder of the table that wants every column."""
        if len(self.wanted) == len(self._columns) and not self._texts:
            return self
        if self._whole is None:
            self._whole = TableEncoder(self._definition, self._dictionary)
        return self._whole

    def encode(self, rows: list[Any] | pa.Table | pa.RecordBatch, sign: int) -> Encoded:
        """Encode a batch; ``sign`` is 1 for insert, -1 for delete, 0 for rows with multiplicities.

        Raises BatchError that names the row, the column, the value and the rule; OutOfMemory.
        """
        try:
            if not isinstance(rows, list):
                return self._arrow(rows, sign)
            if len(rows) == 1 and sign and type(rows[0]) is tuple:
                return self._one_row(rows[0], sign)
            return self._rows(rows, sign)
        except MemoryError as error:
            raise OutOfMemory("memory ran out while the rows were encoded; the batch is refused") from error

    def _one_row(self, row: tuple[Any, ...], sign: int) -> Encoded:
        encoders = self.encoders
        if len(row) != len(encoders):
            self._wrong_arity(0, row, len(encoders))
        codes = []
        for encode, value in zip(encoders, row, strict=True):
            try:
                codes.append(encode(value))
            except _REFUSED as error:
                self._refuse(0, len(codes), value, error)
        kept = np.array(codes, np.int64)
        columns = {}
        for i, name in self.kept:
            columns[name] = kept[i : i + 1]
        for i, name, encode in self._results:
            columns[name] = self._column(i, encode, (row[i],))
        return Encoded(CodeBatch(self._table, columns, _ONE[sign]))

    def _rows(self, rows: list[Any], sign: int) -> Encoded:
        width = len(self._columns) + (sign == 0)
        kinds = set(map(type, rows))
        if not kinds <= {tuple, list}:
            rows = [
                self.as_tuple(at + i, row, sign) for at, some in _pieces(rows) for i, row in enumerate(some)
            ]
        if not set(map(len, rows)) <= {width}:
            wrong = next(i for i, row in enumerate(rows) if len(row) != width)
            self._wrong_arity(wrong, rows[wrong], width)
        values: Sequence[Sequence[Any]] = list(zip(*rows, strict=True)) if rows else [()] * width
        codes = [self._column(i, encode, values[i]) for i, encode in enumerate(self.encoders)]
        if sign:
            multiplicities = _constant_signs(sign, len(rows))
        else:
            multiplicities = self._column(-1, self.multiplicity, values[-1])
        codes += [self._column(i, encode, values[i]) for i, _, encode in self._results]
        return self._encoded(codes, multiplicities)

    def _column(
        self, place: int, encode: Encoder, values: Sequence[Any], rows: Sequence[int] | None = None
    ) -> Codes:
        """Codes of the values of a column; ``rows``: their row numbers, if not 0, 1, and so on."""
        rows = range(len(values)) if rows is None else rows
        if len(values) <= FEW:
            return self._column_piece(place, encode, values, rows)
        return np.concatenate(
            [self._column_piece(place, encode, some, rows[at : at + len(some)]) for at, some in _pieces(values)]
        )

    def _column_piece(self, place: int, encode: Encoder, values: Sequence[Any], rows: Sequence[int]) -> Codes:
        try:
            together = len(values) >= _MANY and place in self._texts_at and encode is self.encoders[place]
            if together and set(map(type, values)) == {str}:
                return self._dictionary.encode_all(values)
            return np.array([encode(value) for value in values], np.int64)
        except _REFUSED:
            for row, value in enumerate(values):
                try:
                    encode(value)
                except _REFUSED as error:
                    self._refuse(rows[row], place, value, error)
            raise

    def as_tuple(self, number: int, row: Any, sign: int) -> Sequence[Any]:
        """The values of row ``number`` in the order of the columns; ``sign`` as of ``encode``. Raises BatchError."""
        if type(row) is dict:
            fields: Mapping[Any, Any] = row
        elif isinstance(row, (tuple, list)):  # isinstance takes four times as long for a union.
            return row
        else:
            fields = self._fields(number, row)
        places = self.places_of(fields) if sign else None
        if places == self._in_order:
            return [*fields.values()]
        values = [*self._defaults, *[None] * (sign == 0)]
        if places is not None and (sign > 0 or len(places) == len(values)):
            for place, value in zip(places, fields.values()):  # noqa: B905  # strict takes longer than a row.
                values[place] = value
            return values
        given = set[int]()
        for name, value in fields.items():
            if sign == 0 and name == MULTIPLICITY:
                values[-1] = value
            else:
                place = self._place(number, name, given)
                given.add(place)
                values[place] = value
        if sign < 0 and self._required and not self._required <= given:
            self._not_whole(self._columns[min(self._required - given)].name, number, row)
        return values

    def _fields(self, number: int, row: Any) -> Mapping[Any, Any]:
        """The values of a row by name."""
        named = fields_of(row)
        if named is None:
            rule = "a row must be a tuple, a list, a dict, or a dataclass or pydantic object"
            self._refuse_by(None, rule, f"{rule}, not {type(row).__name__}", number, row)
        return named

    def _place(self, number: int | None, name: Any, given: Container[int]) -> int:
        """The place of a column that row ``number`` names, and has not ``given`` before."""
        place = self.place_of(name)
        if place is None:
            self._unknown_column(name, number)
        if place in given:
            self._given_twice(name, number)
        return place

    def place_of(self, name: Any) -> int | None:
        """The place of a column by its name in any case; None if there is none."""
        return self._places.get(name.lower()) if isinstance(name, str) else None

    def places_of(self, row: Mapping[Any, Any]) -> tuple[int, ...] | None:
        """The places of the columns that a row names, in its order; None if one is unknown or given twice, or if the
        row is not a dict, so that its names may differ from call to call."""
        if type(row) is not dict:
            return None
        names = tuple(row)
        places = self._known.get(names)
        if places is None and names not in self._known:
            if len(self._known) >= _NAMINGS:
                self._known.clear()
            found = [place for name in names if (place := self.place_of(name)) is not None]
            places = self._known[names] = tuple(found) if len(set(found)) == len(names) else None
        return places

    def encode_given(self, rows: Sequence[Any]) -> tuple[dict[str, Codes], dict[str, NDArray[np.bool_]]]:
        """Encode the columns that rows by name give: codes by column, and the rows that give it. Raises BatchError."""
        values: dict[int, dict[int, Any]] = {}
        for number, row in enumerate(rows):
            if number % FEW == 0:
                INTERRUPTION.raise_if_unchanged()
            seen = set[int]()
            for name, value in self._fields(number, row).items():
                place = self._place(number, name, seen)
                seen.add(place)
                values.setdefault(place, {})[number] = value
        columns: dict[str, Codes] = {}
        given: dict[str, NDArray[np.bool_]] = {}
        for place in sorted(values):
            at, name = list(values[place]), self._columns[place].name
            columns[name], given[name] = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.bool_)
            columns[name][at] = self._column(place, self.encoders[place], list(values[place].values()), at)
            given[name][at] = True
        return columns, given

    def encode_columns(self, rows: pa.Table | pa.RecordBatch) -> Encoded:
        """Encode the columns that an Arrow table has, which may be some of the table. Raises BatchError."""
        places = [self._place(None, name, ()) for name, _ in self._pairs(rows)]
        columns = tuple(replace(self._columns[place], default=None) for place in sorted({*places}))
        some = replace(self._definition, columns=columns, keys=(), has_primary_key=False, foreign_keys=())
        return TableEncoder(some, self._dictionary).encode(rows, 1)

    def _arrow(self, rows: pa.Table | pa.RecordBatch, sign: int) -> Encoded:
        planned = self._planned(rows.schema, sign == 0)
        if planned is not None and sizes_fit(rows):
            found = self._compiled(planned, rows, sign)
            if found is not None:
                return found
        return self._general(rows, sign)

    def _planned(self, schema: pa.Schema, signed: bool) -> _Planned | None:
        """The compiled way to read rows of a schema; None if there is none."""
        known = self._plans.get(signed)
        if known is None or not schema.equals(known[0], check_metadata=True):
            known = self._plans[signed] = (schema, self._plan(schema, signed))
        return known[1]

    def _plan(self, schema: pa.Schema, signed: bool) -> _Planned | None:
        wishes = []
        places = []
        try:
            names = schema.names
        except UnicodeDecodeError:
            return None
        for i, name in enumerate(names):
            if signed and name == MULTIPLICITY:
                place, column = -1, ColumnDef(MULTIPLICITY, BIGINT, nullable=False)
            else:
                place = self._places.get(name.lower(), -2)
                if place == -2:
                    return None
                column = self._columns[place]
            if place in places:
                return None
            places.append(place)
            wishes.append(Wish(i, column, place == -1 or column.name in self.wanted))
        absent = [column for i, column in enumerate(self._columns) if i not in places]
        if (signed and -1 not in places) or not all(column.may_be_absent for column in absent):
            return None
        # The general way computes text functions of a DEFAULT's constant.
        computed = {place for place, _, _ in self._texts if self._absent[place] != NULL}
        if len(places) == signed or not computed <= set(places):
            return None
        given = [(place, name, results) for place, name, results in self._texts if place in places]
        plan = plan_of(schema, wishes, [TextWish(places.index(place), results) for place, _, results in given])
        if plan is None:
            return None
        rows = {places[number]: row for number, row in plan.targets.items()}
        made = {name: len(rows) + number for number, (_, name, _) in enumerate(given)}
        kept = tuple((name, rows.get(place, -1), self._absent[place]) for place, name in self.kept)
        kept += tuple((name, made.get(name, -1), NULL) for _, name, _ in self._texts)
        in_order = [rows.get(place) for place, _ in self.kept] == list(range(len(self.kept)))
        return _Planned(plan, kept, rows.get(-1, -1), in_order)

    def _compiled(self, planned: _Planned, rows: pa.Table | pa.RecordBatch, sign: int) -> Encoded | None:
        batches = [rows] if isinstance(rows, pa.RecordBatch) else rows.to_batches(max_chunksize=PIECE)
        codes = planned.plan.read(batches, self._string_codes)
        if codes is None:
            return None
        count = rows.num_rows
        columns = {
            name: codes[row] if row >= 0 else np.full(count, absent, np.int64) for name, row, absent in planned.columns
        }
        if sign:
            return Encoded(CodeBatch(self._table, columns, _constant_signs(sign, count)))
        return self._without_zeros(columns, codes[planned.multiplicity])

    def codes_of(self, rows: pa.RecordBatch, signed: bool) -> tuple[Codes, Codes | None] | None:
        """Codes of the wanted columns, in order, shape (columns or more, rows), and the multiplicities if ``signed``.
        None if one compiled pass cannot read the record batch, or text functions are wanted."""
        planned = self._planned(rows.schema, signed)
        if planned is None or not planned.in_order or self._texts:
            return None
        try:
            rows.validate()  # Inlined sizes_fit.
        except pa.ArrowException:
            return None
        codes = planned.plan.read((rows,), self._string_codes)
        if codes is None:
            return None
        return codes, codes[planned.multiplicity] if signed else None

    def _general(self, table: pa.Table | pa.RecordBatch, sign: int) -> Encoded:
        """Encodes column by column, with conversion of types, and raises every error."""
        given: dict[int, pa.ChunkedArray | pa.Array] = {}
        from_pandas = b"pandas" in (table.schema.metadata or {})
        for name, column in self._pairs(table):
            place = -1 if sign == 0 and name == MULTIPLICITY else self._places.get(name.lower())
            if place is None:
                self._unknown_column(name)
            if place in given:
                self._given_twice(name)
            flaw = flaw_of(column)
            if flaw is not None:
                self._refuse(flaw[0], place, None, flaw[1])
            if from_pandas and place >= 0 and self._columns[place].type.is_integer:
                column = _integers(column)
            given[place] = column
        if not sizes_fit(table):
            rule = "columns have a value per row"
            self._refuse_by(None, rule, f"the Arrow data is corrupt: not all {rule}")
        if table.num_rows and not given.keys() - {-1}:
            names = ", ".join(column.name for column in self._columns)
            rule = f"rows have a column of the table; its columns are {names}"
            self._refuse_by(None, rule, f"{table.num_rows} rows have no column of the table; its columns are {names}")
        size = table.num_rows
        if sign < 0 and size and not self._required <= given.keys():
            self._not_whole(self._columns[min(self._required - given.keys())].name)
        codes = [
            self._arrow_column(i, c, given.get(i), size, self._dictionaries[i]) for i, c in enumerate(self._columns)
        ]
        codes += [self._arrow_column(i, self._columns[i], given.get(i), size, made) for i, _, made in self._texts]
        if sign:
            multiplicities = _constant_signs(sign, size)
        elif -1 not in given:
            rule = f"apply needs a BIGINT column {MULTIPLICITY}"
            self._refuse_by(MULTIPLICITY, rule, rule)
        else:
            column = ColumnDef(MULTIPLICITY, BIGINT, nullable=False)
            multiplicities = self._arrow_column(-1, column, given[-1], size, self._dictionary)
        return self._encoded(codes, multiplicities)

    def _pairs(self, table: pa.Table | pa.RecordBatch) -> Sequence[tuple[str, pa.ChunkedArray | pa.Array]]:
        """Names and columns. Raises BatchError if they cannot be read."""
        try:
            return columns_of(table)
        except ValueError as error:
            self._refuse_by(None, "columns can be read", str(error))

    def _arrow_column(
        self, place: int, column: ColumnDef, given: pa.ChunkedArray | pa.Array | None, rows: int, dictionary: Dictionary
    ) -> Codes:
        INTERRUPTION.raise_if_unchanged()
        if given is None:
            if not column.may_be_absent and rows:
                message = f"NOT NULL column {column.name} is not given, and has no DEFAULT"
                self._refuse_by(column.name, "NOT NULL", message)
            default = self._defaults[place]
            if isinstance(default, str):  # For a string that no view wants, or a function of it, the code differs.
                return np.full(rows, dictionary.encode(default), np.int64)
            return np.full(rows, self._absent[place], np.int64)
        try:
            read = reader_of(column.type)
            if read is not None and is_text(given) and (column.nullable or not given.null_count):
                return codes_of_texts(read, given)
            codes = encode_arrow(column.type, given, dictionary, nullable=column.nullable)
            if column.length:
                for row, characters in characters_over(given, column.length).items():
                    raise BadValue(row, given[row].as_py(), too_long(column.length, characters))
            return codes
        except BadValue as error:
            self._refuse(error.row, place, error.value, error.reason)
        except (*_REFUSED, pa.ArrowException) as error:
            self._refuse(None, place, str(given.type), error)

    def _encoded(self, codes: list[Codes], multiplicities: Codes) -> Encoded:
        columns = {name: codes[i] for i, name in self.kept}
        columns |= {name: codes[len(self._columns) + i] for i, (_, name, _) in enumerate(self._texts)}
        return self._without_zeros(columns, multiplicities)

    def _without_zeros(self, columns: dict[str, Codes], multiplicities: Codes) -> Encoded:
        """Without the rows of multiplicity zero."""
        if multiplicities.all():
            return Encoded(CodeBatch(self._table, columns, multiplicities))
        positions = np.flatnonzero(multiplicities)
        columns = {name: column[positions] for name, column in columns.items()}
        return Encoded(CodeBatch(self._table, columns, multiplicities[positions]), positions)

    def _refuse(self, row: int | None, place: int, value: Any, reason: object) -> NoReturn:
        if place < 0:
            name, kind = MULTIPLICITY, "BIGINT NOT NULL"
        else:
            column = self._columns[place]
            kind = f"VARCHAR({column.length})" if column.length else str(column.type)
            name, kind = column.name, kind + ("" if column.nullable else " NOT NULL")
        where = f"table {self._table}, " + ("" if row is None else f"row {row}, ") + f"column {name}"
        raise BatchError(
            f"{where}: {refused(value, reason)}",
            table=self._table,
            row=row,
            column=name,
            value=value,
            rule=kind,
        ) from None

    def _refuse_by(
        self, column: str | None, rule: str, message: str, row: int | None = None, value: Any = None
    ) -> NoReturn:
        where = f"table {self._table}" + ("" if row is None else f", row {row}")
        raise BatchError(f"{where}: {message}", table=self._table, row=row, column=column, value=value, rule=rule)

    def _wrong_arity(self, number: int, row: Sequence[Any], width: int) -> NoReturn:
        names = [column.name for column in self._columns]
        if width > len(names):
            names.append(MULTIPLICITY)
        rule = f"a row has {width} values: {', '.join(names)}"
        self._refuse_by(None, rule, f"{rule}; this one has {len(row)}", number, row)

    def _not_whole(self, name: str, row: int | None = None, value: Any = None) -> NoReturn:
        rule = "a row to delete is given whole"
        message = f"{name} of a row to delete is not given; {whole_or_by_key(self._definition)}"
        self._refuse_by(name, rule, message, row, value)

    def _given_twice(self, name: str, row: int | None = None) -> NoReturn:
        message = f"column {name} is given twice; case does not matter in column names"
        self._refuse_by(name, "a column is given once", message, row)

    def _unknown_column(self, name: object, row: int | None = None) -> NoReturn:
        names = ", ".join(column.name for column in self._columns)
        spelled = short(name) if isinstance(name, str) else shown(name)
        hint = "; apply takes multiplicities" if spelled == MULTIPLICITY else ""
        message = f"there is no column {spelled}; the columns are {names}{hint}"
        self._refuse_by(spelled, "columns are known", message, row)


def whole_or_by_key(table: TableDef) -> str:
    """How rows of a table are deleted, for the message of a refused delete."""
    if not table.has_primary_key or table.trusted:
        return "rows are deleted whole"
    key = ", ".join(table.keys[0])
    return f"rows are deleted whole, or by the PRIMARY KEY ({key}): delete('{table.name}', keys=[...])"


def _pieces(values: Sequence[Any]) -> Iterator[tuple[int, Sequence[Any]]]:
    """Parts of a sequence, each with the number of its first element. Raises KeyboardInterrupt between them."""
    for start in range(0, len(values), FEW):
        INTERRUPTION.raise_if_unchanged()
        yield start, values[start : start + FEW]


def _constant_signs(sign: int, rows: int) -> Codes:
    """``rows`` times +1 or -1."""
    known = _SIGNS[sign]
    return known[:rows] if rows <= len(known) else np.full(rows, sign, np.int64)


def _integers(column: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """Converts exact floats back to integers: pandas makes floats of integers if some are missing."""
    if not pa.types.is_floating(column.type):
        return column
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:
        return column


def joined(parts: Sequence[Encoded]) -> Encoded:
    """Several batches of one relation as one."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0].batch
    columns = {name: np.concatenate([part.batch.columns[name] for part in parts]) for name in first.columns}
    positions = np.concatenate([np.arange(len(p.batch)) if p.positions is None else p.positions for p in parts])
    multiplicities = np.concatenate([part.batch.multiplicities for part in parts])
    return Encoded(CodeBatch(first.relation, columns, multiplicities), positions)
