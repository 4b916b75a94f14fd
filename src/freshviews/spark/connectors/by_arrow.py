"""Decides from a table's declaration whether Python workers may read its files by Arrow in place of Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from freshviews.spark.connectors.declarations import value_of

_LISTING = {
    "path", "maxfilespertrigger", "maxbytespertrigger", "latestfirst", "maxfileage", "filenameonly", "pathglobfilter",
    "recursivefilelookup", "cleansource", "sourcearchivedir", "maxcachedfiles", "discardcachedinputratio",
}  # fmt: skip
"""Options that say which files are read, and not how."""
_SEPARATORS = ",;|"


def separator_of(options: Mapping[str, str]) -> str:
    """The separator of CSV files."""
    return value_of(options, "sep") or value_of(options, "delimiter") or ","


def has_header(options: Mapping[str, str]) -> bool:
    """True if the first line of a CSV file has the names of columns."""
    return value_of(options, "header").lower() == "true"


class Declared(Protocol):
    """The declaration of a table in a script (``definition.TableSpec``)."""

    @property
    def provider(self) -> str | None: ...

    @property
    def options(self) -> dict[str, str]: ...

    @property
    def changes(self) -> str | None: ...

    @property
    def message(self) -> dict[str, str] | None: ...


def read_by_spark(spec: Declared) -> str | None:
    """The reason for which Spark reads the rows of a table; None if workers read its files."""
    if spec.provider not in ("parquet", "csv", "json"):
        return f"the format is {spec.provider}"
    if spec.message is not None:
        return "its columns are in messages"
    if spec.changes == "snapshot":
        return "a snapshot is read as a whole"
    path = value_of(spec.options, "path")
    if "://" in path:
        return f"the files are at {path.partition('://')[0]}://"
    known = _LISTING | ({"header", "sep", "delimiter"} if spec.provider == "csv" else set())
    others = [name for name in spec.options if name.lower() not in known]
    if others:
        return f"it has the option {others[0]}"
    separator = separator_of(spec.options)
    return None if separator in tuple(_SEPARATORS) else f"the separator is {separator!r}"
