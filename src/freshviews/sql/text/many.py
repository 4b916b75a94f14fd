"""One script of several executions of statements with ``?``, which is one version."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from typing import Any

from freshviews.errors import SqlError

_ONE_ROW = re.compile(r"(\s*INSERT\s+INTO\s[^?'\"]*?\sVALUES\s*)(\(\s*\?(?:\s*,\s*\?)*\s*\))\s*;?\s*", re.IGNORECASE)
"""An INSERT of one row of parameters: several of them are one INSERT of several rows."""

Given = tuple[str, tuple[Any, ...]]
"""A statement with ``?``, and their values."""


def script_of(given: Sequence[Given]) -> Given:
    """The script, from BEGIN to COMMIT, and its values. Raises SqlError if an INSERT has other values than ``?``."""
    statements = _joined(given)
    script = "BEGIN;\n" + ";\n".join(sql.strip().rstrip(";") for sql, _ in statements) + ";\nCOMMIT"
    return script, tuple(chain.from_iterable(values for _, values in statements))


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
                    raise SqlError(f"the INSERT has {width} parameters, and {len(values)} values are given")
            sql = found[1] + ", ".join([found[2]] * len(rows))
        statements.append((sql, tuple(chain.from_iterable(rows))))
    return statements
