"""Reads the options that say where each column of a table is in a message. A message has a key and a value.

The module also decides how the rows of a view are written as messages. Examples of options of a table::

    values 'json'                       the value is JSON; column c is its field c
    from.cust 'value.customer.id'       column cust is the field id of the value's field customer
    from.o_id 'key'                     column o_id is the key, as text
    from.trace 'headers.trace-id'       column trace is the last header of this name
    from.at 'timestamp'                 column at is the source's column timestamp
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field

from freshviews.catalog.definitions import TableDef
from freshviews.errors import FreshviewsError
from freshviews.records import dataclass
from freshviews.stream import ChangeFormat, Upserts, own_columns

FORMATS = ("json", "csv", "avro")
VALUE, KEY, HEADERS = "value", "key", "headers"
OP = "_op"
"""The op column of a message of a keyed table: delete for a message without a value."""

_OWN = re.compile(r"(values|keys)(\..+)?|from\..+|op|key", re.IGNORECASE)
_STEP = re.compile(r"`([^`]+)`((?:\[\d+\])*)|([^.`\[\]]+)((?:\[\d+\])*)")
_BEHIND = re.compile(r"\s*(?:\.(?=.)|$)\s*")

Path = tuple[str | int, ...]
"""A part of a message (value, key, headers or a column of the source), then fields and positions in arrays."""


class MessageError(FreshviewsError):
    """An option that says how messages are read or written is wrong; ``option`` names it."""

    def __init__(self, option: str, text: str) -> None:
        super().__init__(text)
        self.option = option


@dataclass(frozen=True)
class Encoding:
    """How a key or a value is written. ``format``: None for plain text. ``options``: of the format."""

    format: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class MessageFormat:
    """The parts of messages. ``paths``: where each column of the input is. ``fields``: of CSV, in order.

    ``by_key``: a message without a value deletes its key.
    """

    encodings: Mapping[str, Encoding]
    paths: Mapping[str, Path]
    fields: Mapping[str, tuple[str, ...]]
    by_key: bool


def split_options(options: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The options about reading or writing messages, by their lower-case names, and the others. The column in
    ``from.column`` stays as it is written."""
    own: dict[str, str] = {}
    rest: dict[str, str] = {}
    for name, value in options.items():
        if _OWN.fullmatch(name):
            first, dot, more = name.partition(".")
            own[f"{first.lower()}{dot}{more}"] = value
        else:
            rest[name] = value
    return own, rest


def message_format(options: Mapping[str, str], table: TableDef, form: ChangeFormat) -> MessageFormat:
    """How the messages of a table are read. Raises MessageError."""
    encodings = {VALUE: _encoding("values", options), KEY: _encoding("keys", options)}
    wanted = input_columns(table, form)
    names = {name.lower(): name for name in wanted}
    paths: dict[str, Path] = {}
    for option, text in options.items():
        if option.startswith("from."):
            column = names.get(option.removeprefix("from.").lower())
            if column is None:
                there = ", ".join(wanted)
                raise MessageError(option, f"{option} names no column of table {table.name}; its columns are {there}")
            paths[column] = _path(option, text, encodings)
    value = encodings[VALUE]
    op = options.get("op")
    for column in wanted:
        if column == OP:
            if op is not None:
                paths[OP] = _path("op", op if "." in op else f"{VALUE}.`{op}`", encodings)
        elif column not in paths:
            paths[column] = (VALUE, column) if value.format is not None else (column,)
    return MessageFormat(
        encodings,
        paths,
        {part: _fields(f"{part}s", one, part, paths, options) for part, one in encodings.items()},
        isinstance(form, Upserts),
    )


def input_columns(table: TableDef, form: ChangeFormat) -> tuple[str, ...]:
    """The columns that the input of a table has: its own, and those of the change format."""
    ordered = (form.order,) if isinstance(form, Upserts) and form.order is not None else ()
    names = (*(column.name for column in table.columns), *own_columns(form), *ordered)
    return tuple({name.lower(): name for name in reversed(names)}.values())[::-1]


def reads_headers(options: Mapping[str, str]) -> bool:
    """True if a column is a header, which sources omit by default."""
    return any(text.strip().lower().startswith(f"{HEADERS}.") for text in options.values())


def expected(message: MessageFormat) -> str:
    """The expected form of a message, as the reason against one that cannot be read."""
    forms = []
    for part in (VALUE, KEY):
        if any(path[0] == part for path in message.paths.values()):
            kind = message.encodings[part].format
            fields = message.fields[part]
            csv = f"CSV of the {len(fields)} fields {', '.join(fields)}"
            what = {"json": "one JSON object", "csv": csv, "avro": f"Avro of {part}s.schema"}
            forms.append(f"the {part} must be {what.get(kind or '', 'text in UTF-8')}")
    if any(path[0] == HEADERS for path in message.paths.values()):
        forms.append("headers must be text in UTF-8")
    return ", ".join(forms)


def _encoding(option: str, options: Mapping[str, str]) -> Encoding:
    name = options.get(option, "text").strip().lower()
    if name not in (*FORMATS, "text"):
        raise MessageError(option, f"{option} must be {', '.join(FORMATS)} or text, not {options[option]!r}")
    own = {key.partition(".")[2]: value for key, value in options.items() if key.startswith(f"{option}.")}
    if name == "avro" and "schema" not in own:
        raise MessageError(option, f"{option} 'avro' needs {option}.schema, the schema as JSON")
    return Encoding(None if name == "text" else name, own)


def _path(option: str, text: str, encodings: Mapping[str, Encoding]) -> Path:
    steps: list[str | int] = []
    at = 0
    while at < len(text.strip()):
        found = _STEP.match(text.strip(), at)
        behind = _BEHIND.match(text.strip(), found.end()) if found is not None else None
        if found is None or behind is None:
            raise MessageError(
                option, f"{option} is {text!r}; a path such as value.customer.id or value.lines[0].price is accepted"
            )
        steps.append((found[1] or found[3]).strip())
        steps += [int(number) for number in re.findall(r"\d+", found[2] or found[4] or "")]
        at = behind.end()
    if not steps:
        raise MessageError(option, f"{option} is empty; a path such as value.customer.id is accepted")
    first = str(steps[0]).lower()
    if first in encodings:
        deep, parsed = len(steps) > 1, encodings[first].format is not None
        if deep and not parsed:
            raise MessageError(
                option, f"{option} is {text!r}, but {first}s is not set; set {first}s 'json' to read fields"
            )
        if parsed and not deep:
            raise MessageError(option, f"{option} is {text!r}, but {first}s is set; name a field, as in {first}.id")
        if encodings[first].format == "csv" and len(steps) > 2:
            raise MessageError(
                option, f"{option} is {text!r}, but a field of CSV has no inner fields; name only the field of CSV"
            )
    elif first == HEADERS:
        if len(steps) != 2:
            raise MessageError(
                option, f"{option} is {text!r}; write headers.NAME, which reads the last header of this name"
            )
    elif len(steps) > 1:
        raise MessageError(option, f"{option} is {text!r}; only value, key and headers have fields")
    return (first, *steps[1:])


def _fields(
    option: str, encoding: Encoding, part: str, paths: Mapping[str, Path], options: Mapping[str, str]
) -> tuple[str, ...]:
    """The names of the fields of CSV in order: the named ones, else those of the columns that are read from it."""
    if encoding.format != "csv":
        return ()
    read = tuple(str(path[1]) for path in paths.values() if path[0] == part)
    named = encoding.options.get("fields")
    if named is None:
        if any(column.startswith("_") or path[-1] != column for column, path in paths.items() if path[0] == part):
            raise MessageError(option, f"{option} 'csv' needs {option}.fields here, such as {option}.fields 'op, id'")
        return read
    fields = tuple(name.strip() for name in named.split(","))
    for name in read:
        if name not in fields:
            raise MessageError(f"{option}.fields", f"{option}.fields has no field {name}; it has {', '.join(fields)}")
    return fields


@dataclass(frozen=True)
class Written:
    """How rows of a view are written as messages. ``key``: the columns of the key; empty for the whole row.

    ``text``: the key is the text of its one column, not a JSON object.
    """

    key: tuple[str, ...]
    text: bool = False


def written_as(
    options: Mapping[str, str], columns: Sequence[str], keys: Sequence[tuple[str, ...]], upsert: bool
) -> Written:
    """How a view with these columns is written. ``keys``: columns that are known to determine its rows.

    Raises MessageError, also if ``upsert`` is requested for a view whose rows have no key.
    """
    for option in options:
        if option not in ("key", "keys", "values"):
            raise MessageError(option, f"{option} is an option of tables; a view accepts only key, keys and values")
    if options.get("values", "json").lower() != "json":
        raise MessageError("values", f"values of a view must be 'json', not {options['values']!r}")
    named = options.get("keys", "json").lower()
    if named not in ("json", "text"):
        what = f"not {options['keys']!r}"
        raise MessageError("keys", f"keys, the format of the message keys of a view, must be 'json' or 'text', {what}")
    known = {column.lower(): column for column in columns}
    if "key" in options:
        asked = [name.strip() for name in options["key"].split(",")]
        for name in asked:
            if name.lower() not in known:
                raise MessageError("key", f"the view has no column {name!r}; it has {', '.join(columns)}")
        key = tuple(known[name.lower()] for name in asked)
        if upsert and not any({one.lower() for one in found} <= {one.lower() for one in key} for found in keys):
            there = " or ".join(f"({', '.join(found)})" for found in keys)
            raise MessageError(
                "key",
                f"several rows of the view may have the same {', '.join(key)}, so the topic would lose rows"
                + (f"; set key to {there}" if there else f"; set output 'changes', or write GROUP BY {', '.join(key)}"),
            )
    elif keys:
        key = tuple(known[name.lower()] for name in min(keys, key=len))
    elif upsert:
        raise MessageError(
            "output",
            "output 'upsert' needs a view with a key, and this view has none; set output 'changes', or select all "
            "columns of GROUP BY, or select the PRIMARY KEY of every table in FROM",
        )
    else:
        key = ()
    if named == "text" and len(key) != 1:
        raise MessageError(
            "keys", f"keys 'text' needs a key of one column, but this key has {len(key)}; set keys 'json'"
        )
    return Written(key, named == "text")
