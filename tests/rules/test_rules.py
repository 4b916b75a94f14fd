"""Rules: what is refused and where, what they mean, and that they are views like others."""

from __future__ import annotations

from pathlib import Path

import pytest

import freshviews as fv
from freshviews.rules import script_of
from tests.rules.meanings import TABLES, catalog

pytestmark = pytest.mark.compiled(8)

REFUSED = [
    ("", 1, 1, "there is no rule"),
    ("v(a) <- r(a, b)", 1, 16, "the text ends within a rule; accepted here: ,   .   ;"),
    ("v(a) <-\n  r(a, b), .", 2, 12, "'.' does not go here"),
    ("v(a) <- r(a, b) & s(b, _).", 1, 17, "'&' is no part of a rule"),
    ("v(a) <- r(a, b), b % 2 = 0.", 1, 20, "'%' is no part of a rule"),
    ("v(a + 1) <- r(a, _).", 1, 5, "'+' does not go here"),
    ("v(a) <- r(a, _), !(s(a, _)).", 1, 18, "only an atom is negated"),
    ("v(a) <- e(a, _).", 1, 9, "unknown table, view or head e"),
    ("v(a) <- ww(a, _, _).", 1, 9, "did you mean w?"),
    ("v(a) <- r(a).", 1, 9, "r has 2 columns (a, b), not 1"),
    ("v(a, z) <- r(a, _).", 1, 6, "z is in no atom of the body"),
    ("v(a) <- r(a, b),\n !s(b, z).", 2, 8, "z stands only in a negated atom"),
    ("v(a) <- r(a, _), y > 3.", 1, 18, "y has no value"),
    ("v(a) <- r(a, _), x = y, y = x.", 1, 18, "x has no value"),
    ("r(a) <- s(a, _).", 1, 1, "r is a table"),
    ("v(a, a) <- r(a, _).", 1, 6, "a stands twice in the head"),
    ("v() <- r(_, _).", 1, 1, "v() has no column"),
    ("v(a) <- a = 3.", 1, 1, "names no relation"),
    ("v(a) <- !r(a, _).", 1, 1, "names no relation"),
    ("v(a, b) <- v(b, a).", 1, 12, "recursion is not supported: v reads v"),
    ("v(a) <- r(a, _).\nx(a) <- y(a).\ny(a) <- r(a, b), !x(b).", 2, 9, "recursion is not supported"),
    ("v(a) <- r(a, _).\nv(a, b) <- r(a, b).", 2, 1, "v has 1 columns in its first rule and 2 here"),
    ("v(n) <- agg<<n = median(a)>> r(a, _).", 1, 18, "there is no aggregate median; there are avg, bit_and"),
    ("v(n) <- agg<<n = sum()>> r(a, _).", 1, 18, "sum needs an argument"),
    ("v(n) <- agg<<n = sum(a, b)>> r(a, b).", 1, 18, "sum needs an argument, as sum(x)"),
    ("v(n) <- agg<<n = count(a, b)>> r(a, b).", 1, 18, "count takes one argument, or none, as count(x)"),
    ("v(n) <- agg<<n = max_by(a)>> r(a, _).", 1, 18, "max_by needs two arguments, as max_by(x, y)"),
    ("v(a) <- agg<<n = count()>> r(a, _).", 1, 18, "n is not in the head"),
    ("v(n) <- agg<<n = count()>> r(n, _).", 1, 18, "n is what count makes"),
    ("v(n) <- agg<<n = count()>> r(_, _).\nv(n) <- r(n, _).", 2, 1, "v has aggregates and so one rule"),
    ("v(n) <- agg<<n = max(z)>> r(a, _).", 1, 22, "z is in no atom"),
    ("v[a] = b <- r(a, b).\nv(b, a) <- r(a, b).", 2, 1, "v has a value, in [ ] =, in one of its rules"),
    ("v[n] = a <- agg<<n = count()>> r(a, _).", 1, 1, "the value of v is what its aggregate makes"),
    ("v[a] = 3 <- r(a, _).", 1, 8, "'3' does not go here"),
    ("v[a] = b <- r(a, c), b = z[c] + 1.", 1, 27, "'[' does not go here"),
    ("v(f) <-\n z(f, _),\n  f * 3 > 1.", 3, 3, "BOOLEAN"),
]


@pytest.mark.parametrize(("text", "line", "column", "message"), REFUSED)
def test_what_is_refused_is_told_with_its_place(text: str, line: int, column: int, message: str) -> None:
    with fv.Database() as db:
        db.execute(";".join(table.text.spark for table in TABLES) + "; CREATE TABLE z (f BOOLEAN, d DATE)")
        with pytest.raises(fv.RuleError) as refusal:
            db.rule(text)
        assert message in str(refusal.value)
        assert (refusal.value.line, refusal.value.column) == (line, column), str(refusal.value)
        assert db.stats()["views"] == {}


def test_comments_and_either_arrow_are_read() -> None:
    one = script_of("v(a) <- r(a, _).", catalog())
    other = script_of("// heads\nv(a) :- /* of\n r */ r(a, _). // done", catalog())
    assert one.text == other.text


def test_strings_are_what_is_between_the_quotes() -> None:
    with fv.Database() as db:
        db.execute(TABLES[3].text.spark)
        db.rule("""v(a) <- w(a, _, "it's a \\ here").""")
        db.insert("w", [(1, 1, "it's a \\ here"), (2, 1, "its")])
        assert list(db.view("v")) == [(1,)]


def test_a_head_that_exists_is_refused_and_nothing_is_left() -> None:
    with fv.Database() as db:
        db.execute(";".join(table.text.spark for table in TABLES))
        db.rule("v(a) <- r(a, _).")
        with pytest.raises(fv.RuleError, match="line 1, column 19: view v exists already"):
            db.rule("x(a) <- r(a, _).  v(a) <- s(a, _).")
        assert set(db.stats()["views"]) == {"v"}


@pytest.mark.parametrize("strategy", ["trie_join", "first_order", "crown"])
def test_a_rule_is_kept_by_the_strategy_that_is_named(strategy: str) -> None:
    with fv.Database() as db:
        db.execute(";".join(table.text.spark for table in TABLES))
        db.insert("r", [(1, 2), (1, 2), (4, 2)])
        db.rule("tri(a, b, c) <- r(a, b), s(b, c), t(c, a).", {"freshviews.strategy": strategy})
        db.insert("s", [(2, 3)])
        db.insert("t", [(3, 1)])
        assert list(db.view("tri")) == [(1, 2, 3)]
        assert db.stats()["views"]["tri"]["strategy"] == strategy
        db.delete("r", [(1, 2)])
        assert list(db.view("tri")) == [(1, 2, 3)]
        db.delete("r", [(1, 2)])
        assert list(db.view("tri")) == []


def test_rules_are_there_when_a_database_is_opened_again(tmp_path: Path) -> None:
    with fv.Database(tmp_path) as db:
        db.execute(TABLES[0].text.spark)
        db.rule("v(a, n) <- agg<<n = count()>> r(a, b).")
        db.insert("r", [(1, 2), (1, 3)])
    with fv.Database(tmp_path) as db:
        assert list(db.view("v")) == [(1, 2)]


def test_two_values_of_a_functional_head_refuse_the_batch_and_name_key_and_values(tmp_path: Path) -> None:
    rules = "f[a] = b <- r(a, b). all[] = c <- s(_, c). g[b] = c <- f[b] = c, !s(b, 9)."
    with fv.Database(tmp_path / "db") as db:
        db.execute(";".join(table.text.spark for table in TABLES))
        db.rule(rules)
        db.insert("r", [(1, 2), (1, 2), (3, 4)])
        db.insert("s", [(1, 5)])
    with fv.Database(tmp_path / "db") as db:
        seen = {name: sorted(db.view(name)) for name in ("f", "all", "g")}
        assert seen == {"f": [(1, 2), (3, 4)], "all": [(5,)], "g": [(1, 2), (3, 4)]}
        version = db.version
        with pytest.raises(fv.EvaluationError, match="for a = 1, b has two values, 2 and 7; one is allowed"):
            db.insert("r", [(5, 6), (1, 7)])
        with pytest.raises(fv.EvaluationError, match="for a = 3, b has two values, NULL and 4"):
            db.insert("r", [(3, None)])
        with pytest.raises(fv.EvaluationError, match="view all cannot be computed: c has two"), db.batch() as batch:
            batch.insert("r", [(8, 9)])
            batch.insert("s", [(1, 6)])
        assert db.version == version and {name: sorted(db.view(name)) for name in seen} == seen
        assert sorted(db.table("r")) == [(1, 2), (1, 2), (3, 4)]
        # One version may take the old value away and bring the new one.
        with db.batch() as batch:
            batch.insert("r", [(1, 7)])
            batch.delete("r", [(1, 2), (1, 2)])
        assert sorted(db.view("f")) == sorted(db.view("g")) == [(1, 7), (3, 4)]
        db.insert("r", [(2, 7)])
        with pytest.raises(fv.EvaluationError, match="for b = 7, a has two values, 1 and 2"):
            db.rule("h[b] = a <- r(a, b).")
        assert "h" not in db.views
