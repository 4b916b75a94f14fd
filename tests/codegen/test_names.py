"""Names in backquotes may contain any character, as in Spark: no character breaks generated code, files or plans."""

from __future__ import annotations

from pathlib import Path

import pytest

import freshviews as fv

pytestmark = [pytest.mark.plain_python, pytest.mark.compiled(16)]

LETTERS = [
    "\0", "\x01", "\x0b", "\x0c", "\x1a", "\x1c", "\x7f", "\x85", "\n", "\r", "\t", " ", "\u00a0", "\u2028", "\u202e",
    "\u200d", "\u0301", "'", '"', "'''", '"""', '""""', "\\", "\\n", "\\u", "\\N{", "{", "}", "{x}", "%", "%s", "`",
    "$", ".", "..", "/", "@", ":", ";", ",", "?", "*", "(", ")", "[", "]", "--", "/*", "*/", "=", "é", "日", "😀", "½",
    "²", "①", "ª", "ⅷ", "·", "ſ", "İ", "ß",
]  # fmt: skip


@pytest.mark.parametrize("letter", LETTERS, ids=ascii)
def test_a_name_in_backquotes_may_contain_any_letter(letter: str, tmp_path: Path) -> None:
    def real(name: str) -> str:
        return f"{letter}{name}{letter}"

    def quoted(name: str) -> str:
        return "`" + real(name).replace("`", "``") + "`"

    t, u, v, w, a, b, k = map(quoted, ("t", "u", "v", "w", "a", "b", "k"))
    db = fv.Database(tmp_path / "db")
    db.execute(
        f"CREATE TABLE {t} ({a} INT PRIMARY KEY, {b} STRING); CREATE TABLE {u} ({a} INT, {k} INT);"
        f"CREATE MATERIALIZED VIEW {v} AS SELECT {b}, SUM({k}) AS {k}, COUNT(*) AS n, MAX({k}) AS m "
        f"FROM {t} JOIN {u} USING ({a}) WHERE {k} > 0 GROUP BY {b};"
        f"CREATE MATERIALIZED VIEW {w} TBLPROPERTIES ('freshviews.strategy' = 'change_propagation') AS "
        f"SELECT {t}.{a}, {b}, {k} FROM {t} LEFT JOIN {u} ON {t}.{a} = {u}.{a} AND {k} > 1"
    )
    db.insert(real("t"), [(1, "p"), (2, "q")])
    db.insert(real("u"), [(1, 5), (1, 6)])
    db.delete(real("u"), [(1, 5)])
    assert db.view(real("v")).explain()
    with pytest.raises(fv.BatchError):
        db.insert(real("t"), [(1, "p")])
    db.close()
    db = fv.Database(tmp_path / "db")
    assert list(db.view(real("v"))) == [("p", 6, 1, 6)]
    assert sorted(db.view(real("w"))) == [(1, "p", 6), (2, "q", None)]
    assert db.view(real("w")).to_arrow().column_names == [real("a"), real("b"), real("k")]
    db.close()


@pytest.mark.parametrize(("one", "other"), [("ſ", "s"), ("ª", "a"), ("ﬁ", "fi"), ("é", "e\u0301"), ("½", "²")])
def test_names_with_equal_normal_forms_stay_distinct(one: str, other: str) -> None:
    db = fv.Database()
    db.execute(
        f"CREATE TABLE t (`{one}` INT, `{other}` INT); CREATE TABLE u (`{one}` INT, `{other}` INT);"
        f"CREATE MATERIALIZED VIEW v AS SELECT t.`{one}`, SUM(t.`{other}`) AS b, SUM(u.`{other}`) AS c "
        f"FROM t JOIN u USING (`{one}`) GROUP BY t.`{one}`"
    )
    db.insert("t", [(1, 2), (2, 3)])
    db.insert("u", [(1, 7)])
    assert list(db.view("v")) == [(1, 2, 7)]
