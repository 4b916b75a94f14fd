"""Executes several statements, each with values for its ``?``, as one transaction.

Repeated INSERTs of one row become one INSERT of many rows. The statements run as one script, between BEGIN and COMMIT.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

from freshviews.errors import SqlError, shown

_ONE_ROW = re.compile(r"(\s*INSERT\s+INTO\s[^?'\"]*?\sVALUES\s*)(\(\s*\?(?:\s*,\s*\?)*\s*\))\s*;?\s*", re.IGNORECASE)
"""An INSERT of one row of parameters: several of them are one INSERT of several rows."""

_NAME = r"(?:`[^`?'\"]+`|[A-Za-z_]\w*)"
_ROWS = re.compile(
    rf"\s*INSERT\s+INTO\s+({_NAME})\s*(?:\(\s*({_NAME}(?:\s*,\s*{_NAME})*)\s*\)\s*)?VALUES\s*\(\s*(\?(?:\s*,\s*\?)*)\s*\)\s*;?\s*",
    re.IGNORECASE,
)

Given = tuple[str, tuple[Any, ...]]
"""A statement with ``?``, and their values."""


def insert_of(sql: str) -> tuple[str, tuple[str, ...], int] | None:
    """The table, the columns, which may be left out, and the number of ``?`` of an INSERT of one row of parameters.

    None for other statements.
    """
    found = _ROWS.fullmatch(sql)
    if found is None:
        return None
    columns = tuple(name.strip().strip("`") for name in (found[2] or "").split(",") if name)
    return found[1].strip("`"), columns, found[3].count("?")


def as_one(execute: Callable[[str, Sequence[Any]], object], given: Sequence[Given]) -> object:
    """The result of executing statements as one version. Lines in an error are those of its statement.

    Raises SqlError if an INSERT has other values than ``?``, and what ``execute`` raises.
    """
    statements = _joined(given)
    texts = [sql.strip().rstrip(";") for sql, _ in statements]
    # On lines of their own, as a statement may end in a comment.
    script = "\n;\n".join(["BEGIN", *texts, "COMMIT"])
    try:
        return execute(script, [*chain.from_iterable(values for _, values in statements)])
    except SqlError as error:
        _place(error, texts)
        raise


def _place(error: SqlError, texts: Sequence[str]) -> None:
    line = error.line - 2
    for text in texts:
        lines = text.count("\n") + 1
        if 0 < line <= lines:
            message = str(error).replace(f"line {error.line}, ", f"line {line}, ", 1)
            error.line, error.args = line, (message if len(texts) == 1 else f"{message}; in {shown(text)}",)
            return
        line -= lines + 1


def _joined(given: Sequence[Given]) -> list[Given]:
    """The statements, with runs of one INSERT of a row joined."""
    made: list[tuple[str, list[tuple[Any, ...]]]] = []
    for sql, values in given:
        if made and made[-1][0] == sql and _ONE_ROW.fullmatch(sql):
            made[-1][1].append(values)
        else:
            made.append((sql, [values]))
    statements = []
    for sql, rows in made:
        found = _ONE_ROW.fullmatch(sql)
        if found is not None and len(rows) > 1:
            width = found[2].count("?")
            for values in rows:
                if len(values) != width:
                    raise SqlError(f"the INSERT has {width} parameters, but {len(values)} values were passed")
            sql = found[1] + ", ".join([found[2]] * len(rows))
        statements.append((sql, tuple(chain.from_iterable(rows))))
    return statements
