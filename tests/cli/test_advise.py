"""``freshviews advise``, called as a user calls it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_commands import run

SCRIPT = """CREATE TABLE r1 (x1 BIGINT NOT NULL, x2 BIGINT NOT NULL);
CREATE TABLE r2 (x2 BIGINT NOT NULL, x3 BIGINT NOT NULL);
CREATE MATERIALIZED VIEW v AS SELECT r1.x1, r1.x2, r2.x3 FROM r1 JOIN r2 ON r1.x2 = r2.x2;
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "figure.sql"
    path.write_text(SCRIPT)
    return path


def write(folder: Path, n: int) -> Path:
    """Rows of r1 that stay, and n rows of r2, each deleted before the next is inserted."""
    folder.mkdir()
    r1 = ["x1,x2,_order", *(f"{i},0,{i}" for i in range(n))]
    r2 = ["x2,x3,_multiplicity,_order"]
    for i in range(n):
        r2 += [f"0,{i},1,{n + 2 * i}", f"0,{i},-1,{n + 2 * i + 1}"]
    (folder / "r1.csv").write_text("\n".join(r1) + "\n")
    (folder / "r2.csv").write_text("\n".join(r2) + "\n")
    return folder


def test_advise_prints_the_tree_with_the_least_enclosureness(script: Path, tmp_path: Path) -> None:
    result = run("advise", script, "--stream", write(tmp_path / "changes", 40))
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "view v"
    assert lines[1] == "  the stream is neither insert-only nor first-in-first-out; lambda 20.00"
    assert lines[2].split() == ["lambda_T", "1.00", "height", "1", "[x2](r1,", "r2)", "<-", "take", "this"]
    # Either relation on top: only rows of r1 enclose others.
    assert [line.split()[1] for line in lines[3:5]] == ["1.00", "20.00"]
    assert lines[5] == "  cost of an update over the chosen tree: O(1) on average"
    assert lines[6] == "  name the tree by TBLPROPERTIES ('freshviews.join_tree' = '[x2](r1, r2)')"


def test_a_view_accepts_the_tree_that_advise_prints(script: Path) -> None:
    named = SCRIPT.replace("VIEW v AS", "VIEW v TBLPROPERTIES ('freshviews.join_tree' = 'r1(r2)') AS")
    script.write_text(named)
    result = run("explain", script)
    assert result.exit_code == 0, result.output
    assert "strategy  crown: named by the user" in result.stdout
    assert "tree      r1(x1, x2)\n            r2(x2, x3)" in result.stdout


def test_the_error_of_advise_names_a_missing_file_of_a_stream(script: Path, tmp_path: Path) -> None:
    folder = write(tmp_path / "changes", 3)
    (folder / "r2.csv").unlink()
    result = run("advise", script, "--stream", folder)
    assert result.exit_code == 1
    assert "has no r2.csv or r2.parquet with the updates of table r2" in result.stderr


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("r2.parquet", b"PAR1 no more", "r2.parquet cannot be read: "),
        ("r2.csv", b"x2,x3,_order\n1,2\n", "r2.csv cannot be read: "),
        ("r2.csv", b"x2,x3,_order\n1,2,x\n", "column _order: "),
        ("r2.csv", b"x2,x3,_order\n1,2,\n", "column _order: "),
        ("r2.csv", b"x2,x3,_order\n1,\xff,3\n", "column x3"),
        ("r2.csv", b"x2,x3,_or\xffder\n1,2,3\n", "r2.csv cannot be read: "),
    ],
)
def test_the_error_of_advise_names_a_corrupt_file_of_a_stream(
    script: Path, tmp_path: Path, name: str, data: bytes, message: str
) -> None:
    folder = write(tmp_path / "changes", 3)
    (folder / "r2.csv").unlink()
    (folder / name).write_bytes(data)
    result = run("advise", script, "--stream", folder)
    assert result.exit_code == 1
    assert message in result.stderr and "inside freshviews" not in result.stderr


def test_an_incomplete_join_tree_is_refused(script: Path) -> None:
    script.write_text(SCRIPT.replace("VIEW v AS", "VIEW v TBLPROPERTIES ('freshviews.join_tree' = 'r1') AS"))
    result = run("check", script)
    assert result.exit_code == 1
    assert "a join tree must name each of r1, r2 once" in result.stderr


CYCLIC = """CREATE TABLE r (a BIGINT NOT NULL, b BIGINT NOT NULL);
CREATE TABLE s (b BIGINT NOT NULL, c BIGINT NOT NULL);
CREATE TABLE t (c BIGINT NOT NULL, a BIGINT NOT NULL);
CREATE TABLE u (b BIGINT NOT NULL, d BIGINT NOT NULL);
CREATE MATERIALIZED VIEW v AS SELECT r.a, r.b, u.d FROM r, s, t, u
  WHERE r.b = s.b AND s.c = t.c AND t.a = r.a AND u.b = r.b;
"""


def test_advise_compares_join_trees_over_the_bags_of_a_cyclic_view(tmp_path: Path) -> None:
    """Rows of u stay while the one edge of s that completes triangles of r and t is inserted and deleted."""
    n = 20
    script, folder = tmp_path / "cyclic.sql", tmp_path / "changes"
    script.write_text(CYCLIC)
    folder.mkdir()
    texts = {
        "r": ["a,b,_order", "1,7,0", "2,7,1"],
        "t": ["c,a,_order", "5,1,2", "5,2,3", "6,1,4"],
        "u": ["b,d,_order", *(f"7,{i},{5 + i}" for i in range(n))],
        "s": ["b,c,_multiplicity,_order"],
    }
    for i in range(n):
        texts["s"] += [f"7,5,1,{5 + n + 2 * i}", f"7,5,-1,{5 + n + 2 * i + 1}"]
    for name, lines in texts.items():
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    result = run("advise", script, "--stream", folder)
    assert result.exit_code == 0, result.output
    lines = [line.strip() for line in result.stdout.splitlines()]
    assert lines[1] == "r_s_t is a bag: updates of r, s, t change 80 of its rows; each change is an update of r_s_t"
    weighed = [line.split("  <-")[0].split() for line in lines if line.startswith("lambda_T")]
    found = {" ".join(words[4:]): float(words[1]) for words in weighed}
    # The lifespan of each row of u encloses those of 20 triangles; there are 60 tuples.
    assert found["u(r_s_t)"] == pytest.approx(20 * 20 / 60, abs=0.005)
    assert found["[b](r_s_t, u)"] == found["r_s_t(u)"] == 1.0
    assert "[b](r_s_t, u)" in lines[-1]
