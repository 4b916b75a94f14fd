"""Converts dicts, dataclass instances and pydantic models to rows, by field name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any


@lru_cache(256)
def _names_of(kind: type) -> tuple[str, ...] | None:
    """The fields of a dataclass or of a pydantic model; None for another type; tuples are rows by position."""
    if issubclass(kind, tuple):
        return None
    if is_dataclass(kind):
        return tuple(field.name for field in fields(kind))
    known: Any = getattr(kind, "model_fields", None)  # pydantic may be absent.
    dumps: Callable[..., Any] | None = getattr(kind, "model_dump", None)
    return tuple(known) if isinstance(known, Mapping) and dumps is not None else None


def fields_of(row: Any) -> Mapping[Any, Any] | None:
    """The values of a row by name; None if it is not a row by name."""
    if isinstance(row, Mapping):
        return row
    names = _names_of(type(row))  # type: ignore[arg-type]  # mypy takes no type for hashable
    return None if names is None else {name: getattr(row, name) for name in names}
