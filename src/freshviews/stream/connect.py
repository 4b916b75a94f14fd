"""Reads the Kafka Connect schema of a Debezium message. The schema says how the fields of a row are written in JSON."""

from __future__ import annotations

import re
from dataclasses import field
from typing import Any, Literal

from freshviews.records import dataclass

Unit = Literal["ms", "us", "ns"]

_UNITS: dict[str, Unit] = {
    "io.debezium.time.Timestamp": "ms",
    "org.apache.kafka.connect.data.Timestamp": "ms",
    "io.debezium.time.MicroTimestamp": "us",
    "io.debezium.time.NanoTimestamp": "ns",
}
_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_SCALE = re.compile("-?[0-9]{1,4}")


@dataclass(frozen=True)
class FieldReading:
    """How one field is written in JSON.

    ``unit``: of a timestamp that is a number; None if unknown. ``base64``: a decimal that is a string holds the base64
    of its unscaled bytes, most significant first, with ``scale`` (None: the column's).
    """

    unit: Unit | None = None
    base64: bool = False
    scale: int | None = None


@dataclass(frozen=True)
class Readings:
    """The reading of each field, by its lower-case name; ``rest``: of other fields."""

    rest: FieldReading
    fields: dict[str, FieldReading] = field(default_factory=dict)

    def of(self, name: str) -> FieldReading:
        return self.fields.get(name.lower(), self.rest)


def readings_of(schema: Any, rest: FieldReading) -> Readings:
    """The readings that the Connect schema of an envelope (or None) gives; a schema of another shape gives none."""
    fields: dict[str, FieldReading] = {}
    for image in _fields(schema):
        if image.get("field") in ("before", "after"):
            for column in _fields(image):
                fields[str(column.get("field")).lower()] = _reading(column, rest)
    return Readings(rest, fields)


def _fields(schema: Any) -> list[dict[str, Any]]:
    found = schema.get("fields") if isinstance(schema, dict) else None
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _reading(column: dict[str, Any], rest: FieldReading) -> FieldReading:
    name = column.get("name")
    if name == _DECIMAL:
        parameters = column.get("parameters")
        scale = str(parameters.get("scale")) if isinstance(parameters, dict) else ""
        return FieldReading(rest.unit, True, int(scale) if _SCALE.fullmatch(scale) else None)
    return FieldReading(_UNITS.get(str(name), rest.unit), False if name is None else rest.base64)
