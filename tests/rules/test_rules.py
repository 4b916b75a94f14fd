"""Rules: errors and their places, meanings, and their views in a database."""

from __future__ import annotations

from pathlib import Path

import pytest

import freshviews as fv
from freshviews.rules import script_of
from tests.ring import user_rings
from tests.rules.meanings import TABLES, catalog

pytestmark = pytest.mark.compiled(8)

REFUSED = [
    ("", 1, 1, "there is no rule"),
    ("v(a) <- r(a, b)", 1, 16, "the text ends within a rule; accepted here: ,   .   ;"),
    ("v(a) <-\n  r(a, b), .", 2, 12, "'.' does not go here"),
    ("v(a) <- r(a, b) & s(b, _).", 1, 17, "'&' is not part of a rule"),
    ("v(a) <- r(a, b), b % 2 = 0.", 1, 20, "'%' is not part of a rule"),
    ("v(a + 1) <- r(a, _).", 1, 5, "'+' does not go here"),
    ("v(a) <- r(a, _), !(s(a, _)).", 1, 18, "only an atom can be negated"),
    ("v(a) <- e(a, _).", 1, 9, "unknown table, view or head e"),
    ("v(a) <- ww(a, _, _).", 1, 9, "did you mean w?"),
    ("v(a) <- r(a).", 1, 9, "r has 2 columns (a, b), not 1"),
    ("v(a, z) <- r(a, _).", 1, 6, "z is in no atom of the body"),
    ("v(a) <- r(a, b),\n !s(b, z).", 2, 8, "z is only in a negated atom"),
    ("v(a) <- r(a, _), y > 3.", 1, 18, "y has no value"),
    ("v(a) <- r(a, _), x = y, y = x.", 1, 18, "x has no value"),
    ("r(a) <- s(a, _).", 1, 1, "r is a table"),
    ("v(a, a) <- r(a, _).", 1, 6, "a is given twice in the head"),
    ("v() <- r(_, _).", 1, 1, "v() has no column"),
    ("v(a) <- a = 3.", 1, 1, "names no relation"),
    ("v(a) <- !r(a, _).", 1, 1, "names no relation"),
    ("v(a, b) <- v(b, a).", 1, 12, "recursion is not supported: v reads v"),
    ("v(a) <- r(a, _).\nx(a) <- y(a).\ny(a) <- r(a, b), !x(b).", 2, 9, "recursion is not supported"),
    ("v(a) <- r(a, _).\nv(a, b) <- r(a, b).", 2, 1, "v has 1 columns in its first rule, but 2 here"),
    ("v(n) <- agg<<n = median(a)>> r(a, _).", 1, 18, "there is no aggregate median; the aggregates are any_value, avg"),
    ("v(n) <- agg<<n = sum()>> r(a, _).", 1, 18, "sum needs an argument"),
    ("v(n) <- agg<<n = sum(a, b)>> r(a, b).", 1, 18, "sum needs an argument, as sum(x)"),
    ("v(n) <- agg<<n = count(a, b)>> r(a, b).", 1, 18, "count takes one argument, or none, as count(x)"),
    ("v(n) <- agg<<n = max_by(a)>> r(a, _).", 1, 18, "max_by needs two arguments, as max_by(x, y)"),
    ("v(a) <- agg<<n = count()>> r(a, _).", 1, 18, "n is not in the head"),
    ("v(n) <- agg<<n = count()>> r(n, _).", 1, 18, "n is the result of count"),
    ("v(n) <- agg<<n = count()>> r(_, _).\nv(n) <- r(n, _).", 2, 1, "v has aggregates and must have only one rule"),
    ("v(n) <- agg<<n = max(z)>> r(a, _).", 1, 22, "z is in no atom"),
    ("v[a] = b <- r(a, b).\nv(b, a) <- r(a, b).", 2, 1, "one rule of v has a value, as f[x] = y; write all"),
    ("v(f) <- agg<<f = cofactor()>> r(a, b).", 1, 18, "cofactor needs an argument, as cofactor(x, y, ...)"),
    ("v(f) <- agg<<f = corr_matrix(a)>> r(a, b).", 1, 18, "corr_matrix needs two arguments, as corr_matrix(x, y, ...)"),
    ("v(f) <- agg<<f = cofactor(z)>> w(_, _, n).", 1, 27, "z is in no atom"),
    ("v(f) <- agg<<f = sum(category(a))>> r(a, _).", 1, 18, "category(...) is accepted only in cofactor; leave"),
    ("v(f) <- agg<<f = cofactor(log(a))>> r(a, _).", 1, 27, "log() is not a term"),
    ("v(f) <- agg<<f = cofactor(category(z))>> r(a, _).", 1, 36, "z is in no atom"),
    ("v(f) <- r(a, f), category(a) = f.", 1, 30, "'=' does not go here"),
    ("v(t) <- agg<<t = string_agg(a, b)>> r(a, b).", 1, 18, "the separator of string_agg must be a string in quotes"),
    ("v(t) <- agg<<t = string_agg(a, ',', b)>> r(a, b).", 1, 18, "string_agg takes a term and a separator, as"),
    ("v(t) <- agg<<t = string_agg(a order by z)>> r(a, _).", 1, 40, "z is in no atom of the body"),
    ("v(t) <- agg<<t = sum(a order by a)>> r(a, _).", 1, 33, "ORDER BY is accepted only in string_agg; leave"),
    ("v(a, f, f_count) <- agg<<f = cofactor(a)>> r(a, f_count).", 1, 9, "f_count is the name of two columns"),
    ("v(f) <- agg<<f = cofactor(a, b)>> r(a, b). x(f) <- v(f).", 1, 52, "v has 6 columns (f_count, f_sum_a, f_sum_b"),
    ("v(p) <- agg<<p = provenance(a)>> r(a, _).", 1, 18, "provenance takes no argument, as provenance()"),
    ("v(p, n) <- agg<<p = provenance(), n = count()>> r(_, _).", 1, 39, "provenance must be the only aggregate"),
    ("v(p) <- agg<<p = provenance()>> r(a, b), !s(b, _).", 1, 42, "provenance has no rows for a negated atom"),
    ("v(p) <- agg<<p = provenance()>> r(_, _) ; s(_, _).", 1, 18, "provenance needs a rule with one body; write each"),
    ("v(g) <- agg<<g = gauss(a)>> r(a, _).", 1, 18, "gauss takes 2 arguments (BIGINT, BIGINT), as gauss(x1, x2)"),
    ("v(g) <- agg<<g = gauss(a, n)>> w(a, _, n).", 1, 18, "argument 2 of gauss must be BIGINT, not STRING"),
    ("v[n] = a <- agg<<n = count()>> r(a, _).", 1, 1, "the value of v must be the result of its aggregate"),
    ("v[a] = 3 <- r(a, _).", 1, 8, "'3' does not go here"),
    ("v[a] = b <- r(a, c), b = z[c] + 1.", 1, 27, "'[' does not go here"),
    ("v(f) <-\n z(f, _),\n  f * 3 > 1.", 3, 3, "BOOLEAN"),
]


@pytest.mark.parametrize(("text", "line", "column", "message"), REFUSED)
def test_errors_in_rules_have_their_line_and_column(text: str, line: int, column: int, message: str) -> None:
    with fv.Database() as db:
        db.execute(";".join(table.text.spark for table in TABLES) + "; CREATE TABLE z (f BOOLEAN, d DATE)")
        with pytest.raises(fv.RuleError) as refusal:
            db.rule(text)
        assert message in str(refusal.value)
        assert (refusal.value.line, refusal.value.column) == (line, column), str(refusal.value)
        assert db.stats()["views"] == {}


def test_a_ring_of_the_user_is_an_aggregate_of_rules(tmp_path: Path) -> None:
    """Over distinct bindings, with a negated atom, over several bodies, and after reopening the database."""
    assert user_rings.GAUSS.name == "gauss", "registered by the import"
    with fv.Database(tmp_path) as db:
        db.execute(";".join(table.text.spark for table in TABLES))
        db.rule("""
            v(a, z) <- agg<<z = gauss(b, c)>> r(a, b), s(b, c).
            alone[] = z <- agg<<z = Gauss(a, b)>> r(a, b), !s(b, _).
            both(z) <- agg<<z = gauss(x, y)>> (r(x, y) ; s(x, y)).
            first(re) <- v(1, re, _).
        """)
        db.insert("r", [(1, 2), (1, 2), (1, 3), (4, 5)])
        db.insert("s", [(2, 3), (3, 4), (3, 4)])
    with fv.Database(tmp_path) as db:
        # (2 + i)(3 + i) = 5 + 5i, (3 + i)(4 + i) = 11 + 7i, (4 + i)(5 + i) = 19 + 9i, (1 + i)(2 + i) = 1 + 3i
        assert db.view("v").schema.names == ["a", "z_re", "z_im"]
        assert list(db.view("v")) == [(1, 16, 12)] and list(db.view("first")) == [(16,)]
        assert list(db.view("alone")) == [(19, 9)]
        assert list(db.view("both")) == [(1 + 2 + 19 + 5 + 11, 3 + 4 + 9 + 5 + 7)]
        db.delete("s", [(3, 4)])
        assert list(db.view("v")) == [(1, 16, 12)], "the row is still there, once"
        db.delete("s", [(3, 4)])
        assert list(db.view("v")) == [(1, 5, 5)] and list(db.view("first")) == [(5,)]


def test_the_columns_of_a_cofactor_have_the_names_of_the_variables() -> None:
    with fv.Database() as db:
        db.execute(";".join(table.text.spark for table in TABLES))
        db.rule("""
            v[x] = f <- agg<<f = cofactor(y, y + z)>> r(x, y), s(y, z).
            w2(x, m) <- v(x, n, m, _, _, _, _), n > 0.
        """)
        names = ("count", "sum_y", "sum_arg2", "sum_y_y", "sum_y_arg2", "sum_arg2_arg2")
        assert db.view("v").schema.names == ["x", *(f"f_{name}" for name in names)]
        db.insert("r", [(1, 2), (1, 3)])
        db.insert("s", [(2, 10), (3, 20)])
        assert list(db.view("v")) == [(1, 2, 5, 35, 13, 2 * 12 + 3 * 23, 12**2 + 23**2)]
        assert list(db.view("w2")) == [(1, 5)]


def test_the_provenance_of_a_head_contains_all_rows_of_its_atoms() -> None:
    """Includes rows that differ only where the body has ``_``, and equal rows. Other heads are inputs."""
    with fv.Database() as db:
        db.execute(";".join(table.text.spark for table in TABLES) + "; CREATE TABLE r_2 (a BIGINT); "
                   "CREATE TABLE times (a BIGINT)")  # fmt: skip
        db.rule("""
            p(a, by) <- agg<<by = provenance()>> r(a, b), s(b, _).
            two(by) <- agg<<by = provenance()>> r(a, b), r(b, _), r_2(a), times(a).
            over[a] = by <- agg<<by = provenance()>> far(a, b), t(b, _).
            far(a, c) <- r(a, b), s(b, c).
        """)
        db.insert("r", [(1, 2), (1, 2), (2, 2)])
        db.insert("s", [(2, 3), (2, 4)])
        db.insert("t", [(3, 9)])
        db.insert("r_2", [(1,)])
        db.insert("times", [(1,)])
        assert sorted(db.view("p")) == [
            (1, '[{"r": [1, 2], "s": [2, 3], "times": 2}, {"r": [1, 2], "s": [2, 4], "times": 2}]'),
            (2, '[{"r": [2, 2], "s": [2, 3], "times": 1}, {"r": [2, 2], "s": [2, 4], "times": 1}]'),
        ]
        assert list(db.view("two")) == [
            ('[{"r_1": [1, 2], "r_2_": [2, 2], "r_2": [1], "times_4": [1], "times": 2}]',)
        ]
        db.delete("s", [(2, 4)])
        assert sorted(db.view("over")) == [
            (1, '[{"far": [1, 3], "t": [3, 9], "times": 1}]'), (2, '[{"far": [2, 3], "t": [3, 9], "times": 1}]')
        ]  # fmt: skip


def test_comments_and_both_arrows_are_accepted() -> None:
    one = script_of("v(a) <- r(a, _).", catalog())
    other = script_of("// heads\nv(a) :- /* of\n r */ r(a, _). // done", catalog())
    assert one.text == other.text


def test_a_string_is_the_text_between_its_quotes_without_escapes() -> None:
    with fv.Database() as db:
        db.execute(TABLES[3].text.spark)
        db.rule("""v(a) <- w(a, _, "it's a \\ here").""")
        db.insert("w", [(1, 1, "it's a \\ here"), (2, 1, "its")])
        assert list(db.view("v")) == [(1,)]


def test_a_rule_with_an_existing_head_is_refused() -> None:
    with fv.Database() as db:
        db.execute(";".join(table.text.spark for table in TABLES))
        db.rule("v(a) <- r(a, _).")
        with pytest.raises(fv.RuleError, match="line 1, column 19: view v exists already"):
            db.rule("x(a) <- r(a, _).  v(a) <- s(a, _).")
        assert set(db.stats()["views"]) == {"v"}


@pytest.mark.parametrize("strategy", ["trie_join", "first_order", "crown"])
def test_the_named_strategy_maintains_a_rule(strategy: str) -> None:
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


def test_rules_survive_a_reopen_of_the_database(tmp_path: Path) -> None:
    with fv.Database(tmp_path) as db:
        db.execute(TABLES[0].text.spark)
        db.rule("v(a, n) <- agg<<n = count()>> r(a, b).")
        db.insert("r", [(1, 2), (1, 3)])
    with fv.Database(tmp_path) as db:
        assert list(db.view("v")) == [(1, 2)]


def test_two_values_of_a_functional_head_are_refused(tmp_path: Path) -> None:
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
        # One version may delete the old value and insert the new one.
        with db.batch() as batch:
            batch.insert("r", [(1, 7)])
            batch.delete("r", [(1, 2), (1, 2)])
        assert sorted(db.view("f")) == sorted(db.view("g")) == [(1, 7), (3, 4)]
        db.insert("r", [(2, 7)])
        with pytest.raises(fv.EvaluationError, match="for b = 7, a has two values, 1 and 2"):
            db.rule("h[b] = a <- r(a, b).")
        assert "h" not in db.views
