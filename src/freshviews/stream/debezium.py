"""Converts Debezium envelopes, which are JSON text, to inserts and deletes of rows.

::

    {"op": "u", "before": {"id": 1, "qty": 3}, "after": {"id": 1, "qty": 4}, "source": {...}, "ts_ms": ...}

The ops c (create) and r (read) insert ``after``. The op d (delete) deletes ``before``. The op u (update) does both.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from freshviews.catalog.definitions import TableDef
from freshviews.engine.codes.defaults import default_array
from freshviews.stream.conform import limit_length
from freshviews.stream.connect import FieldReading, Readings, readings_of
from freshviews.stream.events import Events, primary_key
from freshviews.stream.formats import DebeziumJson
from freshviews.stream.json_values import json_column
from freshviews.stream.problems import Problems
from freshviews.stream.words import DELETE, INSERT, REMOVE, REPLACE
from freshviews.types import arrow_compute as pc
from freshviews.types.columns import arrow_type
from freshviews.types.values import NULL_REFUSED

Image = dict[str, Any]

_PAYLOAD = '"payload":'
_OPS = "c, u, d and r"


_WAITING = 1000
"""Images taken apart at once: few enough that parsed JSON is released while it is in the processor's caches."""


class _Images:
    """Images in order, taken apart into the values of the table's columns.

    ``positions``: of their messages. ``actions``: one per image. ``absent``: by column, the images that lack its field
    and have its DEFAULT. Without one a missing field is a problem, unless only the key of the image is needed.
    """

    def __init__(self, table: TableDef, problems: Problems) -> None:
        self.table = table
        self.positions: list[int] = []
        self.actions: list[int] = []
        self.values: list[list[Any]] = [[] for _ in table.columns]
        self.absent: list[list[int]] = [[] for _ in table.columns]
        self._problems = problems
        self._keys = primary_key(table)
        self._spelled = [column.name for column in table.columns]
        self._layouts = set[tuple[str, ...]]()
        """Names of fields in the order of images; no column occurs twice."""
        self._waiting: list[Image] = []

    def add(self, image: Image, position: int, action: int) -> None:
        self._waiting.append(image)
        self.positions.append(position)
        self.actions.append(action)
        if len(self._waiting) == _WAITING:
            self.take_apart()

    def take_apart(self) -> None:
        """Take the waiting images apart into values."""
        waiting = self._waiting
        self._waiting = []
        for layout in set(map(tuple, waiting)) - self._layouts:
            name = self._given_twice(layout)
            if name is None:
                self._layouts.add(layout)
                continue
            reason = f"the row has field {name} twice; case does not matter in names of fields"
            for event, image in enumerate(waiting, len(self.values[0])):
                if tuple(image) == layout:
                    self._problems.add(self.positions[event], name, None, reason)
        for place, values in enumerate(self.values):
            name = self._spelled[place]
            try:
                values += [image[name] for image in waiting]
            except KeyError:
                values += self._one_by_one(place, waiting)

    def _given_twice(self, layout: tuple[str, ...]) -> str | None:
        names = [name.lower() for name in layout]
        return next((column.name for column in self.table.columns if names.count(column.name.lower()) > 1), None)

    def _one_by_one(self, place: int, waiting: list[Image]) -> list[Any]:
        """The values of a field that some images spell differently or lack."""
        definition = self.table.columns[place]
        column = definition.name
        found = []
        for event, image in enumerate(waiting, len(self.values[place])):
            name = _spelled(column, image)
            if name is not None:
                self._spelled[place] = name
            elif definition.default is not None:
                self.absent[place].append(event)
            elif self.needs(event, place):
                reason = f"the row has no field {column}; its fields are {', '.join(image)}"
                self._problems.add(self.positions[event], column, None, reason)
            found.append(None if name is None else image[name])
        return found

    def needs(self, event: int, place: int) -> bool:
        """True if an event needs the column's value."""
        return self.actions[event] != REMOVE or place in self._keys


def _spelled(column: str, image: Image) -> str | None:
    """The column's name as the image spells it; None if the image has no such field."""
    if column in image:
        return column
    return next((name for name in image if name.lower() == column.lower()), None)


def envelope_events(texts: pa.Array, form: DebeziumJson, table: TableDef, problems: Problems) -> Events:
    """The events of a column of envelopes, in order. Bad messages are in ``problems``; the caller drops their events.

    c (create) and r (read by a snapshot) insert ``after``, d deletes ``before``, u does both. Messages (m) and
    tombstones (null or blank text) are ignored. Truncation (t) is refused, because it names no row. The text may also
    have a schema, with the envelope as payload: ``{"schema": {...}, "payload": {...}}``.

    An envelope is accepted or refused as a whole. Fields that the table does not declare are ignored. Field names are
    case-insensitive. If a field is missing, the row gets the DEFAULT of the column; a NULL in the envelope stays NULL.
    """
    rest = FieldReading(form.timestamps, form.decimals == "base64")
    read: dict[str | None, _Images] = {}
    readings: dict[str | None, Readings] = {None: Readings(rest)}
    for position, schema, envelope in _envelopes(texts, form.column, rest, readings, problems):
        images = read.get(schema)
        if images is None:
            images = read[schema] = _Images(table, problems)
        reason = _add(images, position, envelope, form.by_key)
        if reason is not None:
            op = envelope.get("op") if isinstance(envelope, dict) else None
            problems.add(position, form.column, op, reason)
    groups = [_events(images, readings[schema], problems) for schema, images in read.items()]
    if len(groups) == 1:
        return groups[0]
    return _merge_events(groups, table)


def _envelopes(
    texts: pa.Array, column: str, rest: FieldReading, readings: dict[str | None, Readings], problems: Problems
) -> Iterator[tuple[int, str | None, Any]]:
    """Position, schema (None: bare) and envelope of each message that is JSON and no tombstone."""
    loads = orjson.loads
    for position, text in enumerate(texts.to_pylist()):
        if text is None:
            continue
        start, found, rest_of_text = text.partition(_PAYLOAD)
        if found and (start in readings or _is_schema(start, rest, readings)):
            body = rest_of_text.rstrip()
            try:
                # Cut the brace that closes the wrapper. If the payload is not last, the whole message is parsed below.
                envelope = loads(body[:-1]) if body.endswith("}") else None
            except orjson.JSONDecodeError:
                pass
            else:
                if envelope is not None:
                    yield position, start, envelope
                    continue
        try:
            envelope = loads(text)
        except orjson.JSONDecodeError as error:
            if text.strip():
                problems.add(position, column, text, f"it is not JSON: {error}; a Debezium envelope is accepted")
            continue
        schema: str | None = None
        if isinstance(envelope, dict) and "payload" in envelope and "op" not in envelope:
            schema = orjson.dumps(envelope.get("schema")).decode()
            readings.setdefault(schema, readings_of(envelope.get("schema"), rest))
            envelope = envelope["payload"]
        if envelope is not None:
            yield position, schema, envelope


def _is_schema(start: str, rest: FieldReading, readings: dict[str | None, Readings]) -> bool:
    """True if the text before the word payload is a wrapper's schema and nothing else; the schema is then cached."""
    try:
        wrapper = orjson.loads(f"{start}{_PAYLOAD}null}}")
    except orjson.JSONDecodeError:
        return False
    if not isinstance(wrapper, dict) or wrapper.keys() != {"schema", "payload"}:
        return False
    readings[start] = readings_of(wrapper["schema"], rest)
    return True


def _add(images: _Images, position: int, envelope: Any, by_key: bool) -> str | None:
    """Add the images of an envelope; return the reason if it is bad."""
    if not isinstance(envelope, dict) or "op" not in envelope:
        return "it has no field op; a Debezium envelope with op, before and after is accepted"
    op = envelope["op"]
    before: Any = envelope.get("before")
    after: Any = envelope.get("after")
    if op == "m":
        return None
    if op == "t":
        return "op t truncates the table and names no row of it; delete the rows, or start from a new snapshot"
    if op not in ("c", "r", "u", "d"):
        return f"op {op!r} is unknown; accepted: {_OPS}"
    goes, comes = isinstance(before, dict) and op in ("u", "d"), isinstance(after, dict) and op != "d"
    if not comes and op != "d":
        return f"op {op} has no row in after"
    if not goes and (op == "d" or (op == "u" and not by_key)):
        hint = "" if by_key else "; have the source write whole rows (REPLICA IDENTITY FULL), or use debezium-upsert"
        return f"op {op} has no row in before{hint}"
    if goes:
        images.add(before, position, REMOVE if by_key else DELETE)
    if comes:
        images.add(after, position, REPLACE if by_key else INSERT)
    return None


def _events(images: _Images, readings: Readings, problems: Problems) -> Events:
    images.take_apart()
    arrays = tuple(_column(images, place, readings, problems) for place in range(len(images.values)))
    return Events(arrays, np.array(images.actions, np.int8), np.array(images.positions, np.int64))


def _column(images: _Images, place: int, readings: Readings, problems: Problems) -> pa.Array:
    column, values = images.table.columns[place], images.values[place]

    def report(event: int, value: object, reason: str) -> None:
        if images.needs(event, place):
            problems.add(images.positions[event], column.name, value, reason)

    absent = np.zeros(len(values), np.bool_)
    absent[images.absent[place]] = True
    if not column.nullable and None in values:
        for event, value in enumerate(values):
            if value is None and not absent[event]:
                report(event, None, NULL_REFUSED)
    found = json_column(column.type, values, readings.of(column.name), report)
    if column.length:
        found = limit_length(column.length, found, report)
    return pc.if_else(pa.array(absent), default_array(column, len(values)), found) if absent.any() else found


def _merge_events(groups: list[Events], table: TableDef) -> Events:
    """Merge the events of several schemas, in the order of their messages."""
    if not groups:
        none = tuple(pa.nulls(0, arrow_type(column.type)) for column in table.columns)
        return Events(none, np.empty(0, np.int8), np.empty(0, np.int64))
    arrays = tuple(pa.concat_arrays(parts) for parts in zip(*(g.arrays for g in groups), strict=True))
    actions = np.concatenate([g.actions for g in groups])
    positions = np.concatenate([g.positions for g in groups])
    return Events(arrays, actions, positions).select_events(np.argsort(positions, kind="stable"))
