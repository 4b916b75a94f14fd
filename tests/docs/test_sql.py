"""The tables of functions in docs/sql.md name exactly the functions of the registries."""

from __future__ import annotations

import re
from pathlib import Path

from freshviews.sql.expressions.functions import FUNCTIONS
from freshviews.sql.text.refuse import AGGREGATES, GROUPINGS

PAGE = Path(__file__).parents[2] / "docs" / "sql.md"
_LISTS = re.compile(r"`([^`]*)`")
_WORD = re.compile(r"[a-z_0-9]+")
_CALL = re.compile(r"\b([A-Z_]+)\(")


def section(title: str) -> str:
    """The text of a section, up to the next one of its level."""
    text = PAGE.read_text().split(f"\n## {title}\n")[1]
    return text.split("\n## ")[0]


def names_in(text: str) -> set[str]:
    """Words inside backquotes, in lower case."""
    return {word for code in _LISTS.findall(text) for word in _WORD.findall(code.lower())}


def test_every_scalar_function_is_in_the_table_of_the_sql_page() -> None:
    missing = set(FUNCTIONS) - names_in(section("Scalar expressions"))
    assert not missing, f"docs/sql.md, Scalar expressions: add {sorted(missing)}"


def test_every_aggregate_function_is_in_the_table_of_the_sql_page() -> None:
    missing = (AGGREGATES | GROUPINGS) - names_in(section("Aggregates"))
    assert not missing, f"docs/sql.md, Aggregates: add {sorted(missing)}"


def test_every_function_in_the_table_of_the_sql_page_exists() -> None:
    accepted = section("Scalar expressions").split("\nNot accepted")[0]
    rows = [row for row in accepted.splitlines() if row.startswith("| ")]
    lists = [code for row in rows for code in _LISTS.findall(row) if re.fullmatch(r"(\\\|\\\| )?[a-z_0-9 ]+", code)]
    named = {word for code in lists for word in _WORD.findall(code)}
    assert len(named) > 90
    # An operator, and the literal examples of the table.
    assert named - set(FUNCTIONS) <= {"div", "date", "days"}


def test_functions_that_the_sql_page_lists_as_refused_do_not_exist() -> None:
    refused = section("Scalar expressions").split("\nNot accepted")[1].split("\n\n")[1]
    names = {code for row in refused.splitlines() for code in _LISTS.findall(row.split("|")[1]) if "_" in code}
    assert len(names) > 30
    assert not names & set(FUNCTIONS) - {"make_timestamp", "convert_timezone", "to_char", "try_add"}


def test_every_aggregate_that_the_sql_page_lists_as_accepted_exists() -> None:
    rows = [row for row in section("Aggregates").splitlines() if row.startswith("| ") and "refused" not in row]
    calls = {name.lower() for row in rows for name in _CALL.findall(row.split("|")[1])}
    assert calls <= AGGREGATES | GROUPINGS
