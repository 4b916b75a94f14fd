"""Reads files of JSON lines by Arrow, if Arrow and Spark read the same values from them.

For other files, ``NotByArrow`` is raised, and Spark reads them.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json

from freshviews.spark.worker.arrow_kinds import NotByArrow, arrow_kind
from freshviews.spark.worker.csv_files import bytes_of, column_of
from freshviews.spark.worker.rows import CORRUPT


def _file(levels: int) -> str:
    """The pattern of a file in which Arrow and Spark find the same objects: each line is empty, or one object with as
    many levels of lists and objects in it. Arrow checks the order of the tokens.

    Only Arrow reads an object of several lines, several objects of a line, and names, numbers and levels without limit.
    """
    unit = "[0-9abcefABCEF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}"
    pair = r"[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    text = rf'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u(?:{unit}|{pair}))*"'
    name = r'"[^"\\\x00-\x1f]{0,99}" *:'
    whole, part, power = "[1-9][0-9]{0,37}", r"\.[0-9]{1,38}", "(?:[eE][-+]?[0-9]{1,2})?"
    # Spark reads -0 as 0. A number ends where its digits end, so that it is matched in one way.
    number = rf"(?:0|-?{whole}|-?(?:0|{whole}){part}){power}\b"
    within = token = f"[ ,]|true|false|null|{number}|{text}|{name}"
    for _ in range(levels):
        within = rf"{token}|[\[{{](?:{within})*[\]}}]"
    line = rf"(?:\{{(?:{within})*\}})?"
    return rf"\A(?:{line}\n)*{line}\z"


_FILES = (_file(0), _file(4))
"""The first is compiled in a fifth of the time."""


def read_json(path: str, columns: Mapping[str, str], threads: bool) -> pa.Table:
    """The rows of a file, in the types of Spark's Arrow batches. Raises NotByArrow.

    Accepted are files with an object per line, without spaces around it, whose values have the types of their columns.
    Spark reads all other files: with a number in place of a text, a value out of range, or a line that is not an
    object.
    """
    try:
        data = bytes_of(path)
        whole = pa.array([data], pa.binary())
        if not any(pc.match_substring_regex(whole, pattern)[0].as_py() for pattern in _FILES):
            raise NotByArrow(f"{path} has a line that is not a plain JSON object")
        whole.cast(pa.string())  # Fails for bytes that are not UTF-8.
        table = pa.schema({name: _kind(kind) for name, kind in columns.items() if name != CORRUPT}).empty_table()
        if data.strip():
            options = json.ParseOptions(explicit_schema=table.schema, unexpected_field_behavior="ignore")
            table = json.read_json(pa.BufferReader(data), json.ReadOptions(use_threads=threads), options)
        found = {name: column_of(path, table, name, kind) for name, kind in columns.items()}
    except (pa.ArrowException, OSError) as error:
        raise NotByArrow(f"{path} cannot be read by Arrow: {error}") from error
    return pa.table(found)


def _kind(kind: str) -> pa.DataType | None:
    """The type with which Arrow reads a column of a type: texts of times, and decimals that do not overflow when they
    get their scale."""
    wanted = arrow_kind(kind)
    if isinstance(wanted, pa.Decimal128Type):
        return pa.decimal256(38, wanted.scale)
    return pa.string() if pa.types.is_temporal(wanted) else wanted
