"""Functions that nest deeper than Python allows are split into parts with the same behaviour."""

from __future__ import annotations

import re
from typing import Any

import pytest

from freshviews import Database
from freshviews.codegen import nesting

pytestmark = [pytest.mark.plain_python, pytest.mark.compiled(0)]


def run(sources: list[str], function: str, *arguments: int) -> Any:
    names: dict[str, Any] = {"jit": lambda one: one}
    exec("\n\n".join(sources), names)
    return names[function](*arguments)


def indented(level: int, text: str) -> str:
    return "    " * level + text


def nested(depth: int, innermost: list[str], after: list[str], heads: str) -> str:
    """A function with ``depth`` nested blocks; {0} in a head becomes its number."""
    lines = ["@jit", "def on_0(state, n):", "    total = 0", "    seen = 0"]
    for i in range(depth):
        lines.append(indented(i + 1, heads.format(i)))
    lines += [indented(depth + 1, line) for line in innermost]
    for i in reversed(range(depth)):
        lines += [indented(i + 1, line.format(i)) for line in after]
    return "\n".join([*lines, "    return total * 1000 + seen"]) + "\n"


LOOP = "for x_{0} in range(1 + {0} % 2 - {0} // 8 * {0} % 2):"
LOOPS = nested(18, ["total += x_17 + n", "seen = x_3"], ["total = total + 1"], LOOP)
BRANCHES = nested(40, ["total = n"], ["else:", "    total = {0}", "    seen = n"], "if n > {0}:")
STOPS = nested(18, ["if total == n:", "    return total + 5", "total += 1"], [], LOOP)


LINES = """
total = plus(total, times(load(row, 2), m), status)
a, b = load(row, 0), load(row, 8) if a < 1.5e3 else -1
for i in range(n):
for a, (b, c) in zip(rows, [x.y for x in rows]):
while at < end and not found:
if a is None or b in (1, 2) and kind(a, of="b's c") != 0:
elif load(status, ERROR) == 0 and a <= b == c:
else:
at += 1
left //= right
rows[at] = value
asked = found = find(table, (b,))
return a, 1, [b for b in c]
return
keep = lambda at: at + total
slice_of(table, (a,))[1:2] = named(a, b=c)
"""


def test_names_found_without_a_parser_equal_those_of_a_parser() -> None:
    lines = LINES.split("\n")[1:-1]
    db = Database()
    db.execute(SCRIPT)
    for view in ("path", "ends", "triangles", "tries", "least", "kinds"):
        for block in db.view(view).state.maintained.blocks:
            written = re.sub(r'""".*?"""', "", str(block.state.compiled.source), flags=re.DOTALL).splitlines()
            lines += [line.strip() for line in written if line.startswith(" ")]
    known = 0
    for line in lines:
        found = nesting._plain_names(line)
        if found is not None:
            known += 1
            read, assigned = nesting._parsed_names(line)
            assert (sorted(found[0]), found[1]) == (sorted(read), assigned), line
    assert known > 0.9 * len(lines)


@pytest.mark.parametrize("source", [LOOPS, BRANCHES, STOPS], ids=["loops", "branches", "stops"])
@pytest.mark.parametrize(("loops", "levels"), [(1, 99), (3, 99), (99, 2), (99, 7), (4, 6)])
def test_a_split_function_behaves_as_the_whole(source: str, loops: int, levels: int, monkeypatch: Any) -> None:
    assert nesting.split([source], 0) == [source]
    monkeypatch.setattr(nesting, "MOST_LOOPS", 2)
    monkeypatch.setattr(nesting, "MOST_LEVELS", 2)
    monkeypatch.setattr(nesting, "_LOOPS", loops)
    monkeypatch.setattr(nesting, "_LEVELS", levels)
    parts = nesting.split([source], 7)
    assert ("def part_7(" in "".join(parts)) == ("for " in source or levels < 99)
    for n in range(0, 50, 7):
        assert run(parts, "on_0", 0, n) == run([source], "on_0", 0, n)


SCRIPT = """
CREATE TABLE r (a BIGINT, b BIGINT, x DOUBLE);
CREATE TABLE s (b BIGINT, c BIGINT);
CREATE TABLE t (c BIGINT, a BIGINT);
CREATE MATERIALIZED VIEW path AS SELECT a, b, c, x FROM r JOIN s USING (b);
CREATE MATERIALIZED VIEW ends AS SELECT r.a, t.a AS d, COUNT(*) AS n, SUM(x) AS x
    FROM r JOIN s USING (b) JOIN t USING (c) GROUP BY r.a, t.a;
CREATE MATERIALIZED VIEW triangles AS SELECT COUNT(*) AS n, SUM(x) AS x FROM r JOIN s USING (b) JOIN t USING (c)
    WHERE t.a = r.a;
CREATE MATERIALIZED VIEW tries TBLPROPERTIES ('freshviews.strategy' = 'trie_join') AS
    SELECT r.a, COUNT(*) AS n FROM r JOIN s USING (b) JOIN t USING (c) WHERE t.a = r.a GROUP BY r.a;
CREATE MATERIALIZED VIEW least AS SELECT a, MIN(x) AS least, COUNT(DISTINCT c) AS n FROM r JOIN s USING (b) GROUP BY a;
CREATE MATERIALIZED VIEW kinds AS
    SELECT CASE WHEN a = 0 THEN 'none' WHEN a = 1 THEN 'one' WHEN b > 2 THEN 'far' ELSE 'other' END AS kind,
    COALESCE(NULLIF(a, 1), NULLIF(b, 2), 7) AS known, COUNT(*) AS n FROM r WHERE a < 5 AND b < 5 AND x > 0 GROUP BY ALL
"""


def contents() -> list[Any]:
    """The views after each batch, and the changes passed to subscribers."""
    found: list[Any] = []
    db = Database()
    db.execute(SCRIPT)
    names = ["path", "ends", "triangles", "tries", "least", "kinds"]
    rows = {name: [(i * 7 % 4, i * 5 % 3, *((0.5 + i,) if name == "r" else ())) for i in range(9)] for name in "rst"}
    for name, inserted in rows.items():
        db.insert(name, inserted)
        found.append([sorted(db.view(view), key=repr) for view in names])
    for name, inserted in rows.items():
        db.delete(name, inserted[::2])
        found.append([sorted(db.view(view), key=repr) for view in names])
    return found


@pytest.mark.parametrize(("loops", "levels"), [(1, 99), (99, 3)])
def test_split_functions_leave_views_unchanged(loops: int, levels: int, monkeypatch: Any) -> None:
    expected = contents()
    monkeypatch.setattr(nesting, "MOST_LOOPS", 1)
    monkeypatch.setattr(nesting, "MOST_LEVELS", 3)
    monkeypatch.setattr(nesting, "_LOOPS", loops)
    monkeypatch.setattr(nesting, "_LEVELS", levels)
    assert contents() == expected


def test_a_join_of_many_tables_over_a_key_is_split_and_right() -> None:
    count = 24
    db = Database()
    db.execute(";".join(f"CREATE TABLE t{i} (k BIGINT, x{i} BIGINT)" for i in range(count)))
    joins = " ".join(f"JOIN t{i} USING (k)" for i in range(1, count))
    db.execute(f"CREATE MATERIALIZED VIEW v AS SELECT * FROM t0 {joins}")
    for i in range(count):
        db.insert(f"t{i}", [(1, 10 * i), (2, 10 * i + 1)] + [(1, 7)] * (i in (3, 20)))
    rows = sorted(db.view("v"))
    assert len(rows) == 5
    assert rows[-1] == (2, *(10 * i + 1 for i in range(count)))
    db.delete("t20", [(1, 7)])
    assert len(list(db.view("v"))) == 3
