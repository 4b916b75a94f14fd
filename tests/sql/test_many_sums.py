"""Hundreds of sums in one view: their source has a few lines, and their values are exact."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement

import pytest

from freshviews import Database
from freshviews.codegen import module
from freshviews.query.sharing import with_shared_sums
from freshviews.sql import Catalog, ViewDefs, parse_script

pytestmark = pytest.mark.plain_python(only=True)

COLUMNS = [f"x{i}" for i in range(27)]
Row = tuple[float | None, ...]


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The list to which each compiled source is appended."""
    found: list[str] = []
    load = module._load
    monkeypatch.setattr(module, "_load", lambda source, digest: found.append(source) or load(source, digest))
    return found


def statements(sources: Sequence[str]) -> int:
    """Number of lines of sources without docstrings."""
    return sum(len(re.sub(r'"""[\s\S]*?"""', "", source).splitlines()) for source in sources)


def value_of(rows: Sequence[Row], of: Callable[[Row], float | None]) -> float | None:
    values = [Fraction(x) for x in map(of, rows) if x is not None]
    return float(sum(values)) if values else None


def product(row: Row, i: int, j: int) -> float | None:
    one, other = row[i], row[j]
    return None if one is None or other is None else one * other


@pytest.mark.parametrize("declared", ["DOUBLE", "DOUBLE NOT NULL", "BIGINT"])
def test_sums_of_all_products_compile_to_few_lines(loaded: list[str], declared: str) -> None:
    """Written out, the sums of doubles would be a function of 1,400 lines, which compiles for 20 s."""
    db = Database()
    db.execute(f"CREATE TABLE t ({', '.join(f'{column} {declared}' for column in COLUMNS)})")
    pairs = list(combinations_with_replacement(range(27), 2))
    items = [*(f"SUM({x})" for x in COLUMNS), *(f"SUM({COLUMNS[i]} * {COLUMNS[j]})" for i, j in pairs)]
    listed = ", ".join(f"{item} AS c{i}" for i, item in enumerate(items))
    db.execute(f"CREATE MATERIALIZED VIEW v AS SELECT {listed} FROM t")
    doubles, nulls = declared.startswith("DOUBLE"), not declared.endswith("NOT NULL")
    rows: list[Row] = []
    for k in range(3):
        numbers = [(7 * i + 11 * k) % 13 - 6 for i in range(27)]
        found: list[float | None] = [x * (0.1 if k else 1e17) if doubles else x for x in numbers]
        rows.append((None, *found[1:]) if nulls and k == 1 else tuple(found))
    db.insert("t", rows)
    db.delete("t", rows[:1])
    (row,) = db.view("v")
    left = rows[1:]
    assert list(row[:27]) == [value_of(left, lambda one, i=i: one[i]) for i in range(27)]
    assert list(row[27:]) == [value_of(left, lambda one, i=i, j=j: product(one, i, j)) for i, j in pairs]
    # A large sum needs a second program, with wide sums.
    assert len(loaded) <= 1 + doubles and all(statements([source]) < 400 for source in loaded)
    db.delete("t", left)
    assert set(next(iter(db.view("v")))) == {None}


def test_the_variables_of_a_table_are_neighbours_in_a_shared_payload() -> None:
    """A kernel adds neighbouring sums together, even if the query alternates the tables."""
    tables = "CREATE TABLE s (k BIGINT NOT NULL, a BIGINT NOT NULL, b BIGINT NOT NULL)"
    tables += "; CREATE TABLE t (k BIGINT NOT NULL, c BIGINT NOT NULL, d BIGINT NOT NULL)"
    columns = ["s.a", "t.c", "s.b", "t.d"]
    products = [f"SUM({x} * {y})" for x, y in combinations_with_replacement(columns, 2)]
    items = ", ".join(f"{item} AS c{i}" for i, item in enumerate([*(f"SUM({x})" for x in columns), *products]))
    view = f"CREATE MATERIALIZED VIEW v AS SELECT {items} FROM s JOIN t ON s.k = t.k"
    (made,) = [one.view for one in parse_script(f"{tables}; {view}", Catalog()) if isinstance(one, ViewDefs)]
    (shared,) = [one for one in with_shared_sums(made.blocks[0]).query.aggregates if len(one.lifts) > 2]
    assert shared.ring == "cofactor.integer" and [lift.atom for lift in shared.lifts] == ["s", "s", "t", "t"]
    db = Database()
    db.execute(f"{tables}; {view}")
    with db.batch() as batch:
        batch.insert("s", [(1, 2, 3), (1, 5, 7), (2, 1, 1)])
        batch.insert("t", [(1, 11, 13), (1, -1, 4)])
    rows = [(a, c, b, d) for a, b in ((2, 3), (5, 7)) for c, d in ((11, 13), (-1, 4))]
    (found,) = db.view("v")
    assert list(found[:4]) == [sum(column) for column in zip(*rows, strict=True)]
    pairs = combinations_with_replacement(range(4), 2)
    assert list(found[4:]) == [sum(row[i] * row[j] for row in rows) for i, j in pairs]
