"""Answers Flight SQL's questions about a server and its tables: catalogs, schemas, keys, and supported features."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import re2

from freshviews.wire.arrow_data import schema_bytes
from freshviews.wire.messages import BadMessage
from freshviews.wire.served import Served

_TEXT, _INT = pa.string(), pa.int32()
_KEY_FIELDS = [
    *((f"{side}_{name}_name", _TEXT) for side in ("pk", "fk") for name in ("catalog", "db_schema", "table", "column")),
    ("key_sequence", _INT), ("fk_key_name", _TEXT), ("pk_key_name", _TEXT),
    ("update_rule", pa.uint8()), ("delete_rule", pa.uint8()),
]  # fmt: skip
_LONGEST_PATTERN = 1000
_CASE_INSENSITIVE, _NULLS_LOW, _NO_TRANSACTIONS = 1, 1, 0


def answer(name: str, command: Any, served: Served, version: str) -> pa.Table | None:
    """The rows of a command about the catalog; None if it is another command."""
    if name == "CommandGetSqlInfo":
        return sql_info(command.info, served.is_writable, version)
    made = _ANSWERS.get(name)
    return None if made is None else made(command, served)


def _catalogs(command: Any, served: Served) -> pa.Table:
    return _table([("catalog_name", _TEXT)], [("",)])


def _schemas(command: Any, served: Served) -> pa.Table:
    fields = [("catalog_name", _TEXT), ("db_schema_name", _TEXT)]
    return _table(fields, [("", "")] if _in_schema(command, "db_schema_filter_pattern") else [], nullable=1)


def _table_types(command: Any, served: Served) -> pa.Table:
    return _table([("table_type", _TEXT)], [("TABLE",), ("VIEW",)])


def _tables(command: Any, served: Served) -> pa.Table:
    fields = [("catalog_name", _TEXT), ("db_schema_name", _TEXT), ("table_name", _TEXT), ("table_type", _TEXT)]
    if command.include_schema:
        fields.append(("table_schema", pa.binary()))
    wanted = _like(command.table_name_filter_pattern) if command.HasField("table_name_filter_pattern") else None
    rows = []
    if _in_schema(command, "db_schema_filter_pattern"):
        for one in sorted(served.relations(), key=lambda one: one.name):
            kind = "TABLE" if one.is_table else "VIEW"
            if (wanted is None or wanted.fullmatch(one.name)) and kind in (command.table_types or [kind]):
                row = ("", "", one.name, kind)
                rows.append((*row, schema_bytes(one.schema)) if command.include_schema else row)
    return _table(fields, rows, nullable=2)


def _primary_keys(command: Any, served: Served) -> pa.Table:
    fields = [("catalog_name", _TEXT), ("db_schema_name", _TEXT), ("table_name", _TEXT), ("column_name", _TEXT),
              ("key_name", _TEXT), ("key_sequence", _INT)]  # fmt: skip
    rows = []
    if _in_schema(command, "db_schema"):
        for one in served.relations():
            if one.name.lower() == command.table.lower():
                rows = [("", "", one.name, column, None, place) for place, column in enumerate(one.key, 1)]
    return _table(fields, rows, nullable=5)


def _other_keys(command: Any, served: Served) -> pa.Table:
    return _table(_KEY_FIELDS, [], nullable=len(_KEY_FIELDS))


_ANSWERS: dict[str, Callable[[Any, Served], pa.Table]] = {
    "CommandGetCatalogs": _catalogs,
    "CommandGetDbSchemas": _schemas,
    "CommandGetTables": _tables,
    "CommandGetTableTypes": _table_types,
    "CommandGetPrimaryKeys": _primary_keys,
    "CommandGetExportedKeys": _other_keys,
    "CommandGetImportedKeys": _other_keys,
    "CommandGetCrossReference": _other_keys,
}


def _in_schema(command: Any, pattern: str) -> bool:
    """Whether a command asks for the one catalog and the one schema."""
    if command.HasField("catalog") and command.catalog:
        return False
    return not command.HasField(pattern) or _like(getattr(command, pattern)).fullmatch("") is not None


def _like(pattern: str) -> Any:
    """A pattern of SQL, with ``\\`` as its escape; names match in any case. Raises BadMessage."""
    if len(pattern) > _LONGEST_PATTERN:
        raise BadMessage(f"a pattern of at most {_LONGEST_PATTERN} characters is accepted")
    signs = {"%": ".*", "_": "."}
    parts = (signs.get(sign) or re2.escape(sign[-1]) for sign in re.findall(r"\\.|.", pattern, re.DOTALL))
    return re2.compile("(?is)" + "".join(parts))  # In time linear in the name, whatever the pattern.


def _table(fields: Sequence[tuple[str, pa.DataType]], rows: Sequence[tuple[Any, ...]], nullable: int = 0) -> pa.Table:
    """A table whose columns after the first ``nullable`` ones, but ``key_name``, have no NULL."""
    schema = pa.schema(
        [pa.field(name, kind, place < nullable and not name.endswith(("table_name", "column_name")))
         for place, (name, kind) in enumerate(fields)]
    )  # fmt: skip
    columns = zip(*rows, strict=True) if rows else ([] for _ in fields)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.table(arrays, schema=schema)


_UNION = [
    ("string_value", pa.string()),
    ("bool_value", pa.bool_()),
    ("bigint_value", pa.int64()),
    ("int32_bitmask", pa.int32()),
    ("string_list", pa.list_(pa.string())),
    ("int32_to_int32_list_map", pa.map_(pa.int32(), pa.list_(pa.int32()))),
]
_PLACES = {str: 0, bool: 1, int: 3}


def sql_info(wanted: Sequence[int], is_writable: bool, version: str) -> pa.Table:
    """The features of the server by the numbers of the enumeration SqlInfo; all of them if no number is given."""
    known: dict[int, str | bool | int] = {
        0: "freshviews", 1: version, 2: pa.__version__, 3: not is_writable, 4: True, 5: False, 8: _NO_TRANSACTIONS,
        9: False, 500: False, 501: False, 502: is_writable, 503: _CASE_INSENSITIVE, 504: "`", 505: _CASE_INSENSITIVE,
        506: True, 507: _NULLS_LOW, 513: "\\", 515: True, 563: False,
    }  # fmt: skip
    found = {number: known[number] for number in wanted or known if number in known}
    held: list[list[Any]] = [[] for _ in _UNION]
    kinds, offsets = [], []
    for value in found.values():
        place = _PLACES[type(value)]
        kinds.append(place)
        offsets.append(len(held[place]))
        held[place].append(value)
    children = [pa.array(values, kind) for values, (_, kind) in zip(held, _UNION, strict=True)]
    union = pa.UnionArray.from_dense(
        pa.array(kinds, pa.int8()), pa.array(offsets, pa.int32()), children, [name for name, _ in _UNION]
    )
    schema = pa.schema([pa.field("info_name", pa.uint32(), False), pa.field("value", union.type)])
    return pa.table([pa.array([*found], pa.uint32()), union], schema=schema)
