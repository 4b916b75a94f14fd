"""Splits a streaming script into plain SQL, a ``Using`` per source and sink, and Spark's settings::

    SET spark.sql.shuffle.partitions = 8;
    CREATE STREAMING TABLE t (a INT) USING csv OPTIONS (path 'in/t', changes 'op');
    CREATE MATERIALIZED VIEW v USING parquet OPTIONS (path 'out/v') AS SELECT a, COUNT(*) AS n FROM t GROUP BY a;
    ALTER TABLE t ADD COLUMN b INT

In the plain SQL, blanks replace the removed characters, so that errors name the lines and columns of the script.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field
from typing import Any

from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError

from freshviews.errors import SqlError, hiding_secrets
from freshviews.records import dataclass
from freshviews.sql.text.parse import SqlText, parse

_STREAMING = re.compile(r"\bCREATE\s+STREAMING\s+TABLE\b", re.IGNORECASE)
_SETTING = re.compile(r"SET\s+([\w.\-]+)\s*=\s*(\S.*)", re.IGNORECASE)
_ACCEPTED = (
    "SET, CREATE STREAMING TABLE, CREATE [MATERIALIZED] VIEW, CREATE FUNCTION and ALTER TABLE ... ADD COLUMNS are "
    "accepted; to drop a table or view, take it out of the file"
)

_CHANGING = ("INSERT", "DELETE", "UPDATE", "MERGE", "TRUNCATE", "BEGIN")


@dataclass(frozen=True)
class Option:
    """An option's value as text, and its place (1-based)."""

    value: str = field(repr=False)
    line: int
    column: int


@dataclass(frozen=True)
class Using:
    """``USING provider OPTIONS (...)``: the provider in lower case, options by name as written."""

    provider: str
    options: dict[str, Option]
    line: int
    column: int


@dataclass(frozen=True)
class Split:
    """A statement of a streaming script.

    ``kind``: table, view, function, or alter (of a table). ``name``: None if it cannot be read; the parser then refuses
    the statement. ``sql``: the plain statement. ``line``, ``column``: where it begins.
    """

    kind: str
    name: str | None
    sql: str
    using: Using | None
    line: int
    column: int


@dataclass(frozen=True)
class Streaming:
    """A script without sources and sinks. ``sql`` is as long as the original, so places are the same. ``settings``:
    Spark's."""

    sql: str
    statements: tuple[Split, ...] = field(default=())
    settings: dict[str, Option] = field(default_factory=dict)


@hiding_secrets
def split_streaming(text: str) -> Streaming:
    """Separate sources and sinks from a script. Raises SqlError with line and column."""
    sql = SqlText(text)
    try:
        tokens = Spark().tokenize(text)
    except TokenError:
        parse(sql)  # raises the same error with its place
        raise
    plain = list(text)
    statements: list[Split] = []
    settings: dict[str, Option] = {}
    for tokens_of_one in _statements(tokens):
        if tokens_of_one[0].text.upper() == "SET":
            start, end = tokens_of_one[0].start, tokens_of_one[-1].end + 1
            setting, value = _setting(sql, tokens_of_one[0], text[start:end])
            if statements or setting in settings:
                message = f"{setting} is set twice" if setting in settings else "SET must come before the first CREATE"
                raise SqlError(message, *_at(sql, tokens_of_one[0]))
            settings[setting] = value
            semicolon = text.find(";", end)
            end = end if semicolon < 0 else semicolon + 1
            plain[start:end] = [char if char == "\n" else " " for char in plain[start:end]]
            continue
        kind, name, using, blanks = _statement(sql, tokens_of_one)
        for start, end in blanks:
            plain[start:end] = [char if char == "\n" else " " for char in plain[start:end]]
        start, end = tokens_of_one[0].start, tokens_of_one[-1].end + 1
        statements.append(Split(kind, name, "".join(plain[start:end]).strip(), using, *sql.place(start)))
    return Streaming("".join(plain), tuple(statements), settings)


def _setting(sql: SqlText, token: Any, text: str) -> tuple[str, Option]:
    """The name and the value of ``SET name = value``; quotes around the value are removed."""
    found = _SETTING.fullmatch(text)
    if found is None:
        raise SqlError(
            "SET must have the form SET name = value, as in SET spark.sql.shuffle.partitions = 8", *_at(sql, token)
        )
    value = found[2]
    if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
        value = value[1:-1]
    return found[1], Option(value, *sql.place(token.start + found.start(2)))


@hiding_secrets
def plain(text: str) -> str:
    """A streaming script without sources and sinks; any other text unchanged. Raises SqlError."""
    return split_streaming(text).sql if _STREAMING.search(text) else text


def _statements(tokens: Sequence[Any]) -> list[list[Any]]:
    found: list[list[Any]] = [[]]
    for token in tokens:
        if token.text == ";" and token.token_type.name == "SEMICOLON":
            found.append([])
        else:
            found[-1].append(token)
    return [one for one in found if one]


def _statement(sql: SqlText, tokens: list[Any]) -> tuple[str, str | None, Using | None, list[tuple[int, int]]]:
    words = [token.text.upper() for token in tokens]
    blanks: list[tuple[int, int]] = []
    if words[:2] == ["ALTER", "TABLE"] and len(words) > 2:
        return "alter", tokens[2].text, None, blanks
    if words[0] in _CHANGING:
        message = f"{words[0]} is refused here: the rows of a streaming table come from its source; {_ACCEPTED}"
        raise SqlError(message, *_at(sql, tokens[0]))
    if words[0] != "CREATE":
        raise SqlError(f"a statement that begins with {words[0]} is refused here; {_ACCEPTED}", *_at(sql, tokens[0]))
    if "FUNCTION" in words[1:5]:
        return "function", None, None, blanks
    streaming = len(words) > 1 and words[1] == "STREAMING"
    if streaming:
        blanks.append((tokens[1].start, tokens[1].end + 1))
    kind = "view" if "VIEW" in words[1:5] else "table"
    depth, at = 0, None
    for i, token in enumerate(tokens):
        depth += (_mark(token) == "(") - (_mark(token) == ")")
        if depth == 0 and words[i] == "AS":
            break
        if depth == 0 and words[i] == "USING" and token.token_type.name == "USING":
            at = i
            break
    name = _name(tokens, words)
    if kind == "table" and not streaming and at is None:
        raise SqlError(
            f"table {name} has no source; write CREATE STREAMING TABLE {name} (...) USING csv OPTIONS (...)",
            *_at(sql, tokens[0]),
        )
    if at is None:
        if streaming:
            raise SqlError(f"table {name} has no source; write USING, a format and OPTIONS (...)", *_at(sql, tokens[0]))
        return kind, name, None, blanks
    using, end = _using(sql, tokens, at)
    blanks.append((tokens[at].start, tokens[end].end + 1))
    return kind, name, using, blanks


def _name(tokens: list[Any], words: list[str]) -> str | None:
    for i, word in enumerate(words[:8]):
        if word in ("TABLE", "VIEW"):
            skip = 4 if words[i + 1 : i + 4] == ["IF", "NOT", "EXISTS"] else 1
            return tokens[i + skip].text if i + skip < len(tokens) else None
    return None


def _using(sql: SqlText, tokens: list[Any], at: int) -> tuple[Using, int]:
    """Parse the clause that begins at a token; also returns the position of its last token."""
    if at + 1 >= len(tokens):
        raise SqlError("USING needs the name of a format, such as csv", *_at(sql, tokens[at]))
    last = at + 1
    provider = tokens[last].text
    while last + 2 < len(tokens) and tokens[last + 1].text == ".":
        provider += "." + tokens[last + 2].text
        last += 2
    options: dict[str, Option] = {}
    if last + 1 < len(tokens) and tokens[last + 1].text.upper() == "OPTIONS":
        last = _options(sql, tokens, last + 2, options)
    return Using(provider.lower() if "." not in provider else provider, options, *_at(sql, tokens[at])), last


def _options(sql: SqlText, tokens: list[Any], i: int, options: dict[str, Option]) -> int:
    """Read ``(key [=] value, ...)`` from token ``i`` into ``options``; returns the position of its ``)``."""

    def expect(condition: bool, what: str) -> None:
        if not condition:
            token = tokens[min(i, len(tokens) - 1)]
            raise SqlError(f"{what} is expected here; write OPTIONS (name 'value', ...)", *_at(sql, token))

    expect(i < len(tokens) and _mark(tokens[i]) == "(", "(")
    i += 1
    while i < len(tokens) and _mark(tokens[i]) != ")":
        key_token = tokens[i]
        key = key_token.text
        expect(key_token.token_type.name == "STRING" or key.replace("_", "a").isalnum(), "the name of an option")
        i += 1
        while i + 1 < len(tokens) and _mark(tokens[i]) == ".":
            key += "." + tokens[i + 1].text
            i += 2
        if i < len(tokens) and _mark(tokens[i]) == "=":
            i += 1
        sign = ""
        if i < len(tokens) and _mark(tokens[i]) == "-":
            sign, i = "-", i + 1
        good = i < len(tokens) and tokens[i].token_type.name in ("STRING", "NUMBER", "TRUE", "FALSE")
        expect(good, f"the value of option {key}, in quotes,")
        if key.lower() in (known.lower() for known in options):
            raise SqlError(f"option {key} is given twice; leave one out", *_at(sql, key_token))
        options[key] = Option(sign + tokens[i].text, *_at(sql, tokens[i]))
        i += 1
        expect(i < len(tokens) and _mark(tokens[i]) in (",", ")"), ", or )")
        if _mark(tokens[i]) == ",":
            i += 1
    expect(i < len(tokens), ")")
    return i


def _mark(token: Any) -> str:
    """The text of a token that is not a string, else empty: the string '(' is not a parenthesis."""
    return "" if token.token_type.name == "STRING" else str(token.text)


def _at(sql: SqlText, token: Any) -> tuple[int, int]:
    return sql.place(token.start)
