"""Debezium envelopes, JSON text, to events.

::

    {"op": "u", "before": {"id": 1, "qty": 3}, "after": {"id": 1, "qty": 4}, "source": {...}, "ts_ms": ...}

c (create) and r (read by a snapshot) insert ``after``, d deletes ``before``, u does both; m (a message) is
passed over, as are tombstones: a null, or blank, text. t (truncate) is refused, for it names no row. The
envelope may be the payload beside a schema: ``{"schema": {...}, "payload": {...}}``. The schema is then most of
the text; it is read once per distinct schema, not once per message.

A message is good or bad as a whole. Fields that the table does not declare are left out. Names of fields are
matched in any case.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from freshviews.query.block import ColumnDef, TableDef
from freshviews.stream.conform import NOT_NULL
from freshviews.stream.connect import FieldReading, Readings, readings_of
from freshviews.stream.events import Events, primary_key
from freshviews.stream.formats import DebeziumJson
from freshviews.stream.json_values import json_column
from freshviews.stream.problems import Problems
from freshviews.stream.words import DELETE, INSERT, REMOVE, REPLACE
from freshviews.types.columns import arrow_type

Image = dict[str, Any]

_PAYLOAD = '"payload":'
_OPS = "c, u, d and r"
_AFTER = frozenset("cur")
_BEFORE = frozenset("ud")


@dataclass
class _Images:
    """Images in order, the positions of their messages, and what to do with each."""

    images: list[Image] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    actions: list[int] = field(default_factory=list)

    def add(self, image: Image, position: int, action: int) -> None:
        self.images.append(image)
        self.positions.append(position)
        self.actions.append(action)


def envelope_events(texts: pa.Array, form: DebeziumJson, table: TableDef, problems: Problems) -> Events:
    """The events of a column of envelopes, in order; bad messages are in ``problems``, and their events to be
    left out."""
    rest = FieldReading(form.timestamps, form.decimals == "base64")
    read: dict[str | None, _Images] = {}
    readings: dict[str | None, Readings] = {None: Readings(rest)}
    for position, schema, envelope in _envelopes(texts, form.column, rest, readings, problems):
        images = read.setdefault(schema, _Images())
        reason = _add(images, position, envelope, form.by_key)
        if reason is not None:
            problems.add(position, form.column, envelope, reason)
    groups = [_events(images, readings[schema], table, problems) for schema, images in read.items()]
    if len(groups) == 1:
        return groups[0]
    return _merged(groups, table)


def _envelopes(
    texts: pa.Array, column: str, rest: FieldReading, readings: dict[str | None, Readings], problems: Problems
) -> Iterator[tuple[int, str | None, Any]]:
    """Position, schema (None: bare) and envelope of each message that is JSON and no tombstone."""
    loads = orjson.loads
    for position, text in enumerate(texts.to_pylist()):
        if text is None:
            continue
        schema: str | None = None
        try:
            before, found, payload = text.partition(_PAYLOAD)
            if found and (before in readings or _is_schema(before, rest, readings)):
                # What is cut off is the brace that closes the wrapper.
                schema, body = before, payload.rstrip()
                if not body.endswith("}"):
                    raise orjson.JSONDecodeError("unexpected end of data", text, len(text))
                envelope = loads(body[:-1])
            else:
                envelope = loads(text)
                if isinstance(envelope, dict) and "payload" in envelope and "op" not in envelope:
                    schema = orjson.dumps(envelope.get("schema")).decode()
                    readings.setdefault(schema, readings_of(envelope.get("schema"), rest))
                    envelope = envelope["payload"]
        except orjson.JSONDecodeError as error:
            if text.strip():
                problems.add(position, column, text, f"it is not JSON: {error}; a Debezium envelope is accepted")
            continue
        if envelope is not None:
            yield position, schema, envelope


def _is_schema(start: str, rest: FieldReading, readings: dict[str | None, Readings]) -> bool:
    """Whether the text before the word payload is the schema of a wrapper and nothing else; it is kept if so."""
    try:
        wrapper = orjson.loads(f"{start}{_PAYLOAD}null}}")
    except orjson.JSONDecodeError:
        return False
    if not isinstance(wrapper, dict) or wrapper.keys() != {"schema", "payload"}:
        return False
    readings[start] = readings_of(wrapper["schema"], rest)
    return True


def _add(images: _Images, position: int, envelope: Any, by_key: bool) -> str | None:
    """Add the images of an envelope; or the reason why it is bad."""
    if not isinstance(envelope, dict) or "op" not in envelope:
        return "it has no field op; a Debezium envelope with op, before and after is accepted"
    op, before, after = envelope["op"], envelope.get("before"), envelope.get("after")
    if op == "m":
        return None
    if op == "t":
        return "op t truncates the table and names no row of it; delete the rows, or start from a new snapshot"
    if not isinstance(op, str) or op not in _AFTER | _BEFORE:
        return f"op {op!r} is unknown; accepted are {_OPS}"
    if op in _AFTER and not isinstance(after, dict):
        return f"op {op} has no row in after"
    if op in _BEFORE and not isinstance(before, dict) and not (by_key and op == "u"):
        hint = "" if by_key else "; have the source write whole rows (REPLICA IDENTITY FULL), or use debezium-upsert"
        return f"op {op} has no row in before{hint}"
    if op in _BEFORE and isinstance(before, dict):
        images.add(before, position, REMOVE if by_key else DELETE)
    if op in _AFTER and isinstance(after, dict):
        images.add(after, position, REPLACE if by_key else INSERT)
    return None


def _events(images: _Images, readings: Readings, table: TableDef, problems: Problems) -> Events:
    actions = np.array(images.actions, np.int8)
    keys = primary_key(table)
    arrays = []
    for place, column in enumerate(table.columns):
        needed = None if place in keys else (actions != REMOVE)
        arrays.append(_column(column, images, needed, readings, problems))
    return Events(tuple(arrays), actions, np.array(images.positions, np.int64))


def _column(
    column: ColumnDef, images: _Images, needed: Any, readings: Readings, problems: Problems
) -> pa.Array:
    name = _spelled(column.name, images.images)
    positions = images.positions

    def report(row: int, value: object, reason: str) -> None:
        if needed is None or needed[row]:
            problems.add(positions[row], column.name, value, reason)

    try:
        values = [image[name] for image in images.images]
    except KeyError:
        values = [image.get(name) for image in images.images]
        for row, image in enumerate(images.images):
            if name not in image:
                report(row, None, f"the row has no field {column.name}; its fields are {', '.join(image)}")
    if not column.nullable:
        for row, value in enumerate(values):
            if value is None:
                report(row, None, NOT_NULL)
    return json_column(column.type, values, readings.of(name), report)


def _spelled(name: str, images: list[Image]) -> str:
    """The column's name as the first image spells it."""
    if not images or name in images[0]:
        return name
    return next((given for given in images[0] if given.lower() == name.lower()), name)


def _merged(groups: list[Events], table: TableDef) -> Events:
    """Events of several schemas as one, in the order of their messages."""
    if not groups:
        none = tuple(pa.nulls(0, arrow_type(column.type)) for column in table.columns)
        return Events(none, np.empty(0, np.int8), np.empty(0, np.int64))
    arrays = tuple(pa.concat_arrays(parts) for parts in zip(*(g.arrays for g in groups), strict=True))
    actions = np.concatenate([g.actions for g in groups])
    positions = np.concatenate([g.positions for g in groups])
    return Events(arrays, actions, positions).taken(np.argsort(positions, kind="stable"))
