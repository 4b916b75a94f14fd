"""Rings of users: recorded functions, refusals, and views over them in a database."""

from __future__ import annotations

import json
import math
import os
import pickle
import random
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import freshviews as fv
from freshviews.catalog.kept_rings import aggregate_from_json, aggregate_to_json
from freshviews.catalog.rings import aggregate_over, known_as, register
from freshviews.errors import StoreError
from freshviews.ring import named
from tests.ring.user_rings import AGGREGATES, BINS, GAUSS, MODULO, POLY, PRIME

pytestmark = [pytest.mark.plain_python, pytest.mark.compiled(6)]


def one_word(**functions: Any) -> fv.UserRing:
    return fv.UserRing(name="tried", arguments=("BIGINT",), words=1, results="BIGINT", **functions)


# Recording


def test_a_recorded_ring_computes_the_same_values_as_its_functions() -> None:
    ring = AGGREGATES["poly"].ring
    draw = random.Random(1)
    for _ in range(50):
        a, b = (tuple(draw.randrange(-50, 50) for _ in range(4)) for _ in range(2))
        assert POLY.multiply is not None
        assert ring.multiply(a, b) == POLY.multiply(a, b)


def test_a_function_is_recorded_with_every_branch() -> None:
    ring = AGGREGATES["bins"].ring
    assert isinstance(BINS.lift, Callable)  # type: ignore[arg-type]
    for z in (-1.0, 0.0, 9.5, 10.0, math.inf, math.nan):
        assert ring.lifts[0].compiled(z) == BINS.lift(z)  # type: ignore[operator]


def test_equal_functions_that_are_written_differently_make_equal_rings() -> None:
    def square(x: Any) -> Any:
        return (x * x, 1)

    one = register(replace(GAUSS, name="twice", lift=lambda x: (x**2, 1)))
    other = register(replace(GAUSS, name="twice", lift=square))
    assert one.family == other.family != AGGREGATES["gauss"].family


def test_a_pickled_ring_is_known_by_name_in_another_process() -> None:
    ring = AGGREGATES["modulo"].ring
    text = pickle.dumps((ring.over((0, 1)).name, ring)).hex()
    code = (
        "import pickle; from freshviews.ring import named;"
        f"name, ring = pickle.loads(bytes.fromhex({text!r})); print(named(name).multiply((5,), (7,)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(35,)"


def test_the_laws_of_arithmetic_modulo_a_prime_do_not_survive_an_overflow() -> None:
    assert AGGREGATES["gauss"].ring.keeps_modulo
    assert AGGREGATES["poly"].ring.keeps_modulo
    assert not AGGREGATES["modulo"].ring.keeps_modulo


REFUSED: dict[str, tuple[fv.UserRing, str]] = {
    "a double as a word": (one_word(lift=lambda x: x * 0.5), "lift of argument 1 .* double, but sums of doubles"),
    "a function of the module math": (one_word(lift=lambda x: round(math.sqrt(x))), "lift of argument 1 .* math"),
    "an argument as an index": (one_word(lift=lambda x: (1, 2, 3)[x]), "of the function cannot be an index"),
    "a loop as long as an argument": (one_word(lift=lambda x: sum(1 for _ in range(x))), "length of a loop"),
    "a loop until a test": (one_word(lift=lambda x: _halvings(x)), "more than 64 tests"),
    "an unknown name": (one_word(lift=lambda x: unknown(x)), "NameError"),  # type: ignore[name-defined] # noqa: F821
    "another number of words": (replace(GAUSS, name="tried", lift=lambda x: (x, 1, 0)), "a tuple of 2 numbers"),
    "no function": (replace(GAUSS, name="tried", multiply=3), "multiply must be a function, not 3"),  # type: ignore[arg-type]
    "no product of several arguments": (replace(GAUSS, name="tried", multiply=None), "give multiply"),
    "a product that does not distribute": (
        one_word(lift=lambda x: x, multiply=lambda a, b: a * b + 1),
        r"multiply\(.*does not hold for a = ",
    ),
    "an addition with an order": (
        one_word(lift=lambda x: x, add=lambda a, b: a + b if a < b else a - b),
        r"add\(a, b\) = add\(b, a\) does not hold",
    ),
    "a sum that is cut off": (
        one_word(lift=lambda x: x, add=lambda a, b: min(max(a + b, -9), 9), scale=lambda a, k: a * k),
        "does not hold",
    ),
    "an addition without its multiple": (
        one_word(lift=lambda x: x % PRIME, add=lambda a, b: (a + b) % PRIME),
        "give scale=",
    ),
    "a product without one": (replace(GAUSS, name="tried", one=(0, 1)), "multiply\\(a, one\\) = a .* give one="),
    "a type of argument": (replace(GAUSS, name="tried", arguments=("STRING", "BIGINT")), "'STRING'; accepted: "),
    "a double among the words": (replace(GAUSS, name="tried", results={"re": "DOUBLE", "im": "DOUBLE"}), "give value="),
    "results that are not the words": (replace(GAUSS, name="tried", results={"re": "BIGINT"}), "give value="),
    "too many words": (replace(GAUSS, name="tried", words=65), "1 to 64 words"),
    "a name that SQL has": (replace(GAUSS, name="sum"), "name of an SQL function"),
    "a name that SQL cannot call": (replace(GAUSS, name="a b"), "cannot call it by this name"),
    "a multiply that remembers": (replace(GAUSS, name="tried", multiply=lambda a, b: _counting(a, b)), "alone"),
}

_calls = [0]


def _halvings(x: Any) -> Any:
    n = 0
    while x > 0:
        x, n = x // 2, n + 1
    return n


def _counting(a: Any, b: Any) -> Any:
    _calls[0] += 1
    return (a[0] * b[0] - a[1] * b[1] + (a[0] * b[0] - a[1] * b[1]) * max(0, _calls[0] - 1), a[0] * b[1] + a[1] * b[0])


@pytest.mark.parametrize("what", REFUSED)
def test_the_error_of_a_refused_ring_names_the_ring_and_the_reason(what: str) -> None:
    ring, message = REFUSED[what]
    with pytest.raises(fv.RingDefinitionError, match=message) as found:
        fv.register_ring(ring)
    assert f"ring {ring.name}" in str(found.value)


# In a database


def test_the_rings_docs_example_works_in_thirty_lines() -> None:
    page = (Path(__file__).parents[2] / "docs" / "rings.md").read_text()
    example, *others = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    code = [line for line in example.splitlines() if line]
    assert len(code) <= 30
    scope: dict[str, Any] = {}
    exec(example, scope)
    for other in others:
        exec(other, scope)
    assert scope["truncated"]((1, 2, 3, 4), (1, 1, 0, 0)) == (1, 3, 5, 7)
    fv.register_ring(GAUSS)


TABLES = "CREATE TABLE a (k INT, g INT, x BIGINT); CREATE TABLE b (k INT, y BIGINT);"
JOINED = "FROM a JOIN b USING (k) GROUP BY g"
VIEWS = f"""
CREATE MATERIALIZED VIEW complex AS SELECT g, GAUSS(a.x, b.y) AS z {JOINED};
CREATE MATERIALIZED VIEW cubes AS SELECT g, POLY(b.y, a.x) AS p, COUNT(*) AS n {JOINED};
CREATE MATERIALIZED VIEW rest AS SELECT g, MODULO(a.x, b.y) AS m {JOINED};
CREATE MATERIALIZED VIEW lower AS SELECT SUM(m) AS m FROM rest WHERE m > 10;
"""


def expected(rows: dict[str, list[tuple[Any, ...]]]) -> dict[int, tuple[Any, ...]]:
    """By group, the values of ``complex`` and ``rest``."""
    found: dict[int, tuple[Any, ...]] = {}
    for k, g, x in rows["a"]:
        for other, y in rows["b"]:
            if k == other:
                before = found.get(g, (None, None, None))
                if x is not None and y is not None:
                    more = (x * y - 1, x + y, x * y)
                    before = tuple(n + (o or 0) for n, o in zip(more, before, strict=True))
                found[g] = before
    return {g: (re, im, None if m is None else m % PRIME) for g, (re, im, m) in found.items()}


def updated(db: fv.Database, rows: dict[str, list[tuple[Any, ...]]], seed: int) -> None:
    """Some versions of random rows."""
    draw = random.Random(seed)
    for _ in range(6):
        new = [(draw.randrange(3), draw.randrange(3), draw.choice([None, *range(-50, 50)])) for _ in range(4)]
        db.insert("a", new)
        rows["a"] += new
        more = [(draw.randrange(3), draw.choice([None, *range(-50, 50)])) for _ in range(3)]
        db.insert("b", more)
        rows["b"] += more
        gone = rows["a"].pop(draw.randrange(len(rows["a"])))
        db.delete("a", [gone])


def check_contents(db: fv.Database, rows: dict[str, list[tuple[Any, ...]]]) -> None:
    wanted = expected(rows)
    assert {g: (re, im) for g, re, im in db.view("complex")} == {g: v[:2] for g, v in wanted.items()}
    assert dict(db.view("rest")) == {g: v[2] for g, v in wanted.items()}
    total = [v[2] for v in wanted.values() if v[2] is not None and v[2] > 10]
    assert list(db.view("lower")) == [(sum(total) if total else None,)]


def test_views_with_user_rings_follow_their_tables() -> None:
    db = fv.Database()
    db.execute(TABLES + VIEWS)
    seen: dict[tuple[Any, ...], int] = {}

    def note(change: fv.Change) -> None:
        for row, m in change:
            seen[row] = seen.get(row, 0) + m

    db.view("complex").subscribe(note)
    rows: dict[str, list[tuple[Any, ...]]] = {"a": [], "b": []}
    updated(db, rows, 1)
    check_contents(db, rows)
    assert sorted(map(repr, (row for row, m in seen.items() if m))) == sorted(map(repr, db.view("complex")))


def test_a_durable_database_with_user_rings_reopens_from_snapshot_and_log(tmp_path: Path) -> None:
    rows: dict[str, list[tuple[Any, ...]]] = {"a": [], "b": []}
    with fv.Database(tmp_path / "db") as db:
        db.execute(TABLES + VIEWS)
        updated(db, rows, 2)
        db.snapshot()
        updated(db, rows, 3)
    with fv.Database(tmp_path / "db") as db:
        check_contents(db, rows)
        updated(db, rows, 4)
        check_contents(db, rows)


def test_the_error_of_opening_a_database_without_its_ring_names_the_ring(tmp_path: Path) -> None:
    with fv.Database(tmp_path / "db") as db:
        db.execute(TABLES + VIEWS)
    code = f"import freshviews as fv; fv.Database({str(tmp_path / 'db')!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "StoreError" in done.stderr
    assert "gauss" in done.stderr
    assert "register_ring" in done.stderr


@pytest.mark.parametrize("ring", ["gauss", "poly", "modulo", "bins"])
def test_a_ring_survives_a_round_trip_through_json(ring: str) -> None:
    """A checkpoint stores it. Its family is the digest of its formulas, so no formula is lost."""
    registered = aggregate_over(ring)
    assert registered is not None
    held = json.loads(json.dumps(aggregate_to_json(registered)))
    assert aggregate_from_json(held) == registered
    with known_as({ring: replace(registered, name="other")}):
        inside = aggregate_over(ring.upper())
        assert inside is not None and inside.name == "other"
    assert aggregate_over(ring) == registered
    with pytest.raises(StoreError, match=f"ring {registered.name} was stored as .*, but this release reads {ring}"):
        aggregate_from_json({**held, "one": [7 for _ in held["one"]]})
    with pytest.raises(StoreError, match="a stored ring cannot be read: KeyError"):
        aggregate_from_json({name: one for name, one in held.items() if name != "sum"})


LARGE = fv.UserRing(
    name="large",
    arguments=("BIGINT", "BIGINT"),
    words=1,
    results="BIGINT",
    lift=lambda x: abs(x) % (2**61 - 1),
    add=lambda a, b: (a + b) % (2**61 - 1),
    multiply=lambda a, b: a * b % (2**61 - 1),
    scale=lambda a, k: a * k % (2**61 - 1),
)
"""Its products overflow although its results would not."""


def test_a_module_named_in_an_environment_variable_registers_rings(tmp_path: Path) -> None:
    (tmp_path / "my_rings.py").write_text(
        "import freshviews as fv\n"
        "fv.register_ring(fv.UserRing('mine', ('BIGINT',), 1, 'BIGINT', lift=lambda x: 2 * x))\n"
    )
    code = (
        "import freshviews as fv; db = fv.Database();"
        "db.execute('CREATE TABLE t (x INT); CREATE MATERIALIZED VIEW v AS SELECT MINE(x) AS m FROM t');"
        "db.insert('t', [(4,), (5,)]); print(list(db.view('v')))"
    )
    for modules, expected_ in (("my_rings", "[(18,)]"), ("no_rings", "module no_rings, which cannot be imported")):
        path = os.pathsep.join([str(tmp_path), *sys.path])
        environment = {**os.environ, "FRESHVIEWS_RINGS": modules, "PYTHONPATH": path}
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        assert expected_ in done.stdout + done.stderr


@pytest.mark.parametrize("strategy", ["", "recompute", "first_order", "higher_order", "crown", "incremental_trie_join"])
@pytest.mark.parametrize("name", ["LARGE", "GAUSS"])
def test_a_batch_that_overflows_is_refused_and_changes_no_view(strategy: str, name: str) -> None:
    fv.register_ring(LARGE)
    db = fv.Database()
    named_ = f"TBLPROPERTIES ('freshviews.strategy' = '{strategy}')" if strategy else ""
    db.execute(TABLES + VIEWS + f"CREATE MATERIALIZED VIEW wide {named_} AS SELECT g, {name}(a.x, b.y) AS m {JOINED}")
    rows: dict[str, list[tuple[Any, ...]]] = {"a": [], "b": []}
    updated(db, rows, 5)
    wide = sorted(map(repr, db.view("wide")))
    for _ in range(2):
        with pytest.raises(fv.EvaluationError, match="a step of a function of a registered ring does not fit 64 bits"):
            db.insert("a", [(0, 0, 3), (1, 1, 2**60), (2, 2, 2**59), (0, 2, 2**60)])
        check_contents(db, rows)
        assert sorted(map(repr, db.view("wide"))) == wide
    updated(db, rows, 6)
    check_contents(db, rows)
    again = fv.Database()
    again.execute(TABLES + f"CREATE MATERIALIZED VIEW wide AS SELECT g, {name}(a.x, b.y) AS m {JOINED}")
    for table, stored in rows.items():
        again.insert(table, stored)
    assert sorted(map(repr, db.view("wide"))) == sorted(map(repr, again.view("wide")))


def test_a_view_is_backfilled_if_undoing_a_batch_overflows() -> None:
    """The sum of the two rows of ``a`` is 0, so their product with the row of ``b`` does not overflow."""
    fv.register_ring(LARGE)
    db = fv.Database()
    db.execute(
        "CREATE TABLE a (g INT, x BIGINT); CREATE TABLE b (g INT, y BIGINT); CREATE MATERIALIZED VIEW v AS "
        "SELECT a.g, LARGE(a.x, b.y) AS m FROM a JOIN b ON a.g = b.g GROUP BY a.g;"
        "CREATE MATERIALIZED VIEW total AS SELECT SUM(y) AS s FROM b"
    )
    db.insert("a", [(0, 2**60)])
    with pytest.raises(fv.EvaluationError, match=r"view total .* overflow"), db.batch() as batch:
        batch.insert("a", [(0, 2**60 - 1)])
        batch.insert("b", [(0, 2**40), (1, 2**62), (1, 2**62)])
    db.insert("b", [(0, 1)])
    assert list(db.view("v")) == [(0, 2**60)]


def test_trusted_tables_refuse_rings_broken_by_overflow() -> None:
    db = fv.Database()
    db.execute("CREATE TABLE t (x BIGINT) TBLPROPERTIES ('freshviews.trusted' = 'true')")
    with pytest.raises(fv.CatalogError, match=r"ring modulo .* trusted table t"):
        db.execute("CREATE MATERIALIZED VIEW v AS SELECT MODULO(x, x) AS m FROM t")
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT GAUSS(x, x) AS z FROM t")


def test_an_overflow_in_a_value_function_is_an_error() -> None:
    ring = replace(GAUSS, name="squared", results="BIGINT", value=lambda a: (a[0] * a[0],))
    fv.register_ring(ring)
    db = fv.Database()
    db.execute(TABLES + "CREATE MATERIALIZED VIEW v AS SELECT SQUARED(x, x) AS s FROM a")
    db.insert("a", [(1, 1, 1_000)])
    assert list(db.view("v")) == [((1_000_000 - 1) ** 2,)]
    with pytest.raises(fv.EvaluationError, match="does not fit 64 bits"):
        db.insert("a", [(1, 1, 1_000_000)])
    assert list(db.view("v")) == [((1_000_000 - 1) ** 2,)]


def test_only_later_views_use_a_ring_that_is_registered_again() -> None:
    db = fv.Database()
    db.execute(TABLES)
    fv.register_ring(one_word(lift=lambda x: x))
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT TRIED(x) AS s FROM a")
    fv.register_ring(one_word(lift=lambda x: x * x))
    db.execute("CREATE MATERIALIZED VIEW w AS SELECT TRIED(x) AS s FROM a")
    db.insert("a", [(1, 1, 3), (1, 1, 5)])
    assert (list(db.view("v")), list(db.view("w"))) == ([(8,)], [(34,)])


def test_a_lift_is_not_called_for_rows_that_a_filter_excludes() -> None:
    fv.register_ring(one_word(lift=lambda x: 60 // x))
    db = fv.Database()
    db.execute(TABLES + "CREATE MATERIALIZED VIEW v AS SELECT TRIED(x) FILTER (WHERE x <> 0) AS s FROM a")
    db.insert("a", [(1, 1, 0), (1, 1, None), (1, 1, 7)])
    assert list(db.view("v")) == [(8,)]
    db.execute("CREATE MATERIALIZED VIEW w AS SELECT TRIED(k) AS s FROM a")
    with pytest.raises(fv.EvaluationError, match="divides by zero"):
        db.insert("a", [(0, 1, 0)])


def test_a_batch_with_a_failed_lift_is_undone_exactly() -> None:
    ring = replace(GAUSS, name="parts", lift=lambda x: (x, 60 // x))
    assert register(ring).ring.keeps_modulo
    db = fv.Database()
    db.execute(TABLES + f"CREATE MATERIALIZED VIEW v AS SELECT g, PARTS(a.x, b.y) AS z {JOINED}")
    db.execute("CREATE MATERIALIZED VIEW w AS SELECT p.g, PARTS(p.x, q.x) AS z FROM a p JOIN a q USING (k) GROUP BY 1")
    db.insert("b", [(k, y) for k in range(3) for y in (-7, 2, 3)])
    db.insert("a", [(k, g, 5 * g - 3 - k) for k in range(3) for g in range(3) if 5 * g - 3 - k])
    before = [sorted(db.view(name)) for name in ("v", "w")]
    with pytest.raises(fv.EvaluationError, match=r"table a, row 2: .* divides by zero"):
        db.insert("a", [(0, 0, 11), (1, 1, 13), (2, 2, 0), (0, 1, 17), (1, 2, 0)])
    assert [sorted(db.view(name)) for name in ("v", "w")] == before


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT GAUSS(x) FROM a", r"gauss takes 2 arguments \(BIGINT, BIGINT\), not 1"),
        ("SELECT GAUSS(x, 1.5) FROM a", r"argument 2 of gauss must be BIGINT, not DECIMAL\(2, 1\)"),
        ("SELECT GAUSS(x, x) + 1 FROM a", "several columns"),
        ("SELECT MODULO(DISTINCT x) FROM a", "DISTINCT"),
        ("SELECT x FROM a WHERE MODULO(x, x) > 1", "aggregate function cannot stand in WHERE"),
    ],
)
def test_a_wrong_call_of_a_ring_is_refused_with_the_reason(sql: str, message: str) -> None:
    db = fv.Database()
    with pytest.raises(fv.SqlError, match=message):
        db.execute(f"{TABLES} CREATE MATERIALIZED VIEW v AS {sql}")


def test_values_of_rings_may_be_used_in_expressions_and_having_clauses() -> None:
    db = fv.Database()
    db.execute("CREATE TABLE t (g INT, x INT, z DOUBLE)")
    db.execute(
        "CREATE MATERIALIZED VIEW v AS SELECT g, MODULO(x, x) + 1 AS m, BINS(z) AS b FROM t"
        " GROUP BY g HAVING MODULO(x, x) > 3"
    )
    db.insert("t", [(1, 2, -1.0), (1, 3, 50.0), (2, 1, 4.0), (3, -1_000_002, 3.0), (3, 2, None)])
    assert sorted(db.view("v")) == [(1, 14, 1 / 3, 0), (3, 6, 0.0, 0)]


def test_rings_of_all_registered_aggregates_are_found_by_name() -> None:
    for aggregate in AGGREGATES.values():
        assert named(aggregate.ring.over((0,)).name).words >= 2
    assert MODULO.words == 1
