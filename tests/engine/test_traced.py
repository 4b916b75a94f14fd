"""Compiled maintenance by trace agrees with the plain form: derivations, trace, stored intervals."""

from __future__ import annotations

import math
import random
import re
from dataclasses import replace

import numpy as np
import pytest

import freshviews as fv
from freshviews.engine.traces.traced import Edits, TracedRule
from freshviews.expr.nodes import Call, Column, Expr
from freshviews.kernel.scalar.payload import SUM_OVERFLOW
from freshviews.program.reference.incremental_trie_join.maintenance import Derivation, MaintainedRule
from freshviews.program.reference.scalars import ScalarError, encode
from freshviews.program.reference.tracing import Tracing
from freshviews.program.rule import Rule
from freshviews.program.traced import TracedJoin
from freshviews.ring import INTEGER
from freshviews.types import BIGINT, BOOLEAN, DOUBLE, NULL, SqlType
from tests.program.incremental.rules import RULES, Relations, Row, rule, shuffled
from tests.tiers import CHANGE

pytestmark = pytest.mark.compiled(8)


def as_columns(edits: dict[str, dict[Row, int]]) -> Edits:
    found = {}
    for name, rows in edits.items():
        if rows:
            columns = [np.array(column, np.int64) for column in zip(*rows, strict=True)]
            found[name] = (columns, np.array(list(rows.values()), np.int64))
    return found


def as_derivations(rows: np.ndarray) -> list[Derivation]:  # type: ignore[type-arg]
    return sorted((tuple(row[:-1]), row[-1]) for row in rows.tolist())


def compared(one: Rule, seed: int, codes: int, batches: int) -> None:
    """Run both forms over the same batches, and compare."""
    choices = random.Random(f"{one} {seed}")
    plain, traced, relations = MaintainedRule(one, INTEGER), TracedRule(one), Relations(one)
    for batch in range(batches):
        count = 40 if batch == 0 else choices.choice([0, 1, 1, 2, 9])
        edits = relations.some_edits(choices, codes, count, several=seed % 2 == 1)
        relations.apply(edits)
        delta = plain.apply(edits)
        erased, inserted = traced.apply(as_columns(edits))
        assert as_derivations(erased) == sorted(delta.erased), batch
        assert as_derivations(inserted) == sorted(delta.inserted), batch
        assert traced.held == plain.held, batch
        for name in ("operations", "surgeries", "matched", "trace", "edits"):
            assert getattr(traced.counters, name) == getattr(plain.counters, name), (name, batch)
    traced.close()


@pytest.mark.parametrize("name", RULES)
def test_every_batch_of_a_compiled_traced_join_agrees_with_the_reference(name: str) -> None:
    for seed in range(3 if CHANGE else 6):
        choices = random.Random(f"{name} {seed}")
        one = shuffled(RULES[name], choices) if seed else RULES[name]
        compared(replace(one, keep_all=seed % 3 == 2), seed, choices.choice([3, 5, 8, 30]), 14)


def test_codes_in_a_traced_join_may_be_the_least_and_the_greatest_word() -> None:
    traced = TracedRule(rule("abc", "R ab", "S bc", "T ca"))
    ends = np.array([-(2**63), 2**63 - 1, 0], np.int64)
    a, b = (column.ravel() for column in np.meshgrid(ends, ends))
    every = ([a.copy(), b.copy()], np.ones(9, np.int64))
    erased, inserted = traced.apply({"R": every, "S": every, "T": every})
    assert len(erased) == 0 and len(inserted) == 27
    for _ in range(2):
        row = ([a[:1].copy(), b[:1].copy()], np.array([-1], np.int64))
        erased, inserted = traced.apply({"S": row})
        assert len(erased) == 3 and len(inserted) == 0
        erased, inserted = traced.apply({"S": ([a[:1].copy(), b[:1].copy()], np.array([1], np.int64))})
        assert len(erased) == 0 and len(inserted) == 3


BOUNDED = [
    pytest.param("triangle of one relation", marks=pytest.mark.full),
    "two cycles", "Loomis-Whitney", "negated reversed", "compared in a cycle",
    "negated and compared", "computed", "computed and negated",
]  # fmt: skip


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", BOUNDED)
def test_operations_of_a_traced_join_are_bounded_by_the_edit_distance(name: str) -> None:
    one = RULES[name]
    choices = random.Random(name)
    relations, traced = Relations(one), TracedRule(one)
    edits = relations.some_edits(choices, 40 if name != "Loomis-Whitney" else 12, 3000)
    rows = relations.apply(edits)
    traced.apply(as_columns(edits))
    for _ in range(40):
        edits = relations.some_edits(choices, 40 if name != "Loomis-Whitney" else 12, choices.choice([1, 3, 20]))
        changes = relations.apply(edits)
        before = traced.counters
        traced.apply(as_columns(edits))
        after = traced.counters
        operations, distance = after.operations - before.operations, after.edits - before.edits
        assert operations <= 3 * math.log2(rows) * (distance + changes), edits
    assert sum(map(len, traced.indices.values())) == traced.held <= 1.25 * traced.counters.trace + 4


def comparisons(of: SqlType) -> list[Expr]:
    """All comparisons of a and b, and their negations."""
    sides = Column("a", of), Column("b", of)
    kind = "_float" if of.is_float else ""
    plain = [Call(f"{name}{kind}", sides, BOOLEAN) for name in ("eq", "ne", "lt", "le", "gt", "ge")]
    every = [*plain, Call("null_safe_eq", sides, BOOLEAN)]
    return [*every, *(Call("not", (one,), BOOLEAN) for one in every)]


@pytest.mark.parametrize("of", [BIGINT, DOUBLE], ids=str)
def test_conditions_of_traced_joins_compare_codes_like_values(of: SqlType) -> None:
    if of is DOUBLE:
        values = (0.0, -0.0, 1.5, -1.5, -2.5, math.inf, -math.inf, math.nan)
        codes = [NULL, *dict.fromkeys(encode(value, DOUBLE) for value in values)]
    else:
        codes = [NULL, NULL + 1, -1, 0, 1, 2**63 - 1]
    rows = {(code,): 1 for code in codes}
    for one in comparisons(of):
        compared_codes = replace(rule("ab", "A a", "B b"), conditions=(one,))
        plain, traced = MaintainedRule(compared_codes, INTEGER), TracedRule(compared_codes)
        expected = plain.apply({"A": rows, "B": rows}).inserted
        _, inserted = traced.apply(as_columns({"A": rows, "B": rows}))
        assert 0 < len(expected) < len(codes) ** 2
        assert as_derivations(inserted) == sorted(expected), str(one)


def test_a_condition_on_early_variables_shortens_the_trace() -> None:
    edges = {(a, b): 1 for a in range(20) for b in range(20)}
    lengths = []
    for where in ("", "a < b", "a < c"):
        traced = TracedRule(rule("abc", "R ab", "R bc", "R ca", where=where))
        traced.apply(as_columns({"R": edges}))
        lengths.append(traced.counters.trace)
    everything, first, second = lengths
    # Half of the a, b have nothing below them; all a, c are reached.
    assert first < 0.6 * everything
    assert second == everything


def test_changes_of_several_tables_in_one_version_are_maintained_together() -> None:
    script = """CREATE TABLE r (a BIGINT, b BIGINT); CREATE TABLE s (b BIGINT, c BIGINT);
        CREATE MATERIALIZED VIEW v TBLPROPERTIES ('freshviews.strategy' = 'incremental_trie_join') AS
        SELECT r.a, s.c FROM r JOIN s ON r.b = s.b;"""
    lefts = [(a, a) for a in range(40)]
    rights = [(b, c) for b in range(40) for c in range(10)]
    operations = []
    for together in (False, True):
        with fv.Database() as db:
            db.execute(script)
            db.insert("s", rights)
            before = operations_of(db.view("v").explain())
            if together:
                with db.batch() as batch:
                    batch.insert("r", lefts)
                    batch.delete("s", rights)
            else:
                db.insert("r", lefts)
                db.delete("s", rights)
            assert list(db.view("v")) == []
            operations.append(operations_of(db.view("v").explain()) - before)
            db.insert("s", [(3, 4)])
            assert list(db.view("v")) == [(3, 4)]
    apart, joint = operations
    # Separately, every row of s would be joined and then removed again.
    assert apart > 2 * len(rights)
    assert joint < apart / 5


def operations_of(explained: str) -> int:
    """The number of operations of maintenance so far."""
    (told,) = re.findall(r"by ([\d,]+) operations", explained)
    return int(told.replace(",", ""))


def test_a_batch_failing_at_its_second_table_changes_nothing() -> None:
    with fv.Database() as db:
        db.execute("""CREATE TABLE r (a BIGINT, b BIGINT); CREATE TABLE s (b BIGINT, c BIGINT);
            CREATE MATERIALIZED VIEW v TBLPROPERTIES ('freshviews.strategy' = 'incremental_trie_join') AS
            SELECT r.a, s.c FROM r JOIN s ON r.b = s.b WHERE r.a * s.c > 0;""")
        db.insert("r", [(1, 1), (2, 2)])
        db.insert("s", [(1, 5)])
        for large in ([(2, 2**62)], [(2, 8), (2, 2**62)]):
            told = rf"table s, row {len(large) - 1}: view v .* for \(b = 2, c = {2**62}\): overflow"
            with pytest.raises(fv.EvaluationError, match=told), db.batch() as batch:
                batch.insert("r", [(7, 2), (8, 1)])
                batch.insert("s", large)
            assert list(db.view("v")) == [(1, 5)]
        db.insert("s", [(2, 3)])
        assert sorted(db.view("v")) == [(1, 5), (2, 3)]


@pytest.mark.parametrize("strategy", ["incremental_trie_join", "first_order"])
def test_the_error_of_a_product_that_does_not_fit_names_the_row(strategy: str) -> None:
    large = 2**40
    with fv.Database() as db:
        db.execute(f"""CREATE TABLE r (a BIGINT, b BIGINT); CREATE TABLE s (b BIGINT, c BIGINT);
            CREATE MATERIALIZED VIEW v TBLPROPERTIES ('freshviews.strategy' = '{strategy}') AS
            SELECT r.a, s.c, COUNT(*) AS n FROM r JOIN s ON r.b = s.b GROUP BY r.a, s.c;""")
        db.apply("r", [(a, a, large) for a in range(9)])
        db.apply("s", [(5, 1, 2**22), (6, 2, 1)])
        before = sorted(db.view("v"))
        assert before == [(5, 1, 2**62), (6, 2, large)]
        edits = [(b, 7, large if b in (4, 6) else 1) for b in range(9)]
        told = r"table s, row 4: view v cannot be computed for \(b = 4, c = 7\): overflow: .* product of multiplicities"
        with pytest.raises(fv.EvaluationError, match=told):
            db.apply("s", edits)
        # Modulo 2^64 the first product is 0, and the second one the least word, which is not a multiplicity.
        for m in (2**24, 2**23):
            with pytest.raises(fv.EvaluationError, match=r"table s, row 0: view v"):
                db.apply("s", [(8, 8, m)])
        assert sorted(db.view("v")) == before
        db.apply("s", [(b, c, 1) for b, c, m in edits if m == 1])
        assert sorted(db.view("v")) == sorted([*before, *((b, 7, large) for b, _, m in edits if m == 1)])


def test_a_batch_with_an_overflowing_product_changes_no_table() -> None:
    with fv.Database() as db:
        db.execute("""CREATE TABLE r (a BIGINT, b BIGINT); CREATE TABLE s (b BIGINT, c BIGINT);
            CREATE MATERIALIZED VIEW v TBLPROPERTIES ('freshviews.strategy' = 'incremental_trie_join') AS
            SELECT r.a, s.c FROM r JOIN s ON r.b = s.b;""")
        db.insert("r", [(1, 1)])
        db.insert("s", [(1, 1)])
        told = r"table s, row 2: view v .*overflow"
        with pytest.raises(fv.EvaluationError, match=told), db.batch() as batch:
            batch.apply("r", [(1, 1, 2**40 - 1), (2, 2, 1)])
            batch.apply("s", [(3, 3, 1), (2, 2, 2**40), (1, 1, 2**40)])
        assert list(db.view("v")) == [(1, 1)]
        db.insert("s", [(1, 3)])
        assert sorted(db.view("v")) == [(1, 1), (1, 3)]


def test_compiled_and_reference_joins_agree_on_overflows() -> None:
    one = rule("ab", "A a", "B b", "C b")
    for counts, fails in (([2**40, 2**22, 1], False), ([2**40, 2**40, 1], True), ([2**40, -(2**23), -1], True)):
        edits = {name: {(1,): m} for name, m in zip("ABC", counts, strict=True)}
        pairs = tuple((name, f"{name}_edits") for name in "ABC")
        tracing = Tracing(TracedJoin(one, pairs, "#v"))
        views = {f"{name}_edits": {key: (m,) for key, m in rows.items()} for name, rows in edits.items()}
        traced = TracedRule(one)
        traced.apply(as_columns(edits))
        assert traced.failure == (SUM_OVERFLOW if fails else 0)
        if fails:
            with pytest.raises(ScalarError, match=r"overflow: .* product of multiplicities"):
                tracing.derivations(views, lambda name: None)
            continue
        ((_, m),) = tracing.derivations(views, lambda name: None)
        assert m == math.prod(counts)
