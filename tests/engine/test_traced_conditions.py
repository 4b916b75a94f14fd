"""Conditions compiled into a trace: nothing is below excluded bindings, and failures raise the usual errors."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import freshviews as fv
from freshviews.engine.traces.traced import TracedRule
from freshviews.kernel.memory.mem import PURE_PYTHON
from freshviews.program.reference.incremental_trie_join.maintenance import MaintainedRule
from freshviews.ring import INTEGER
from tests.engine.test_traced import as_columns, compared
from tests.program.incremental.rules import rule
from tests.two_processes import printed_by_two

pytestmark = pytest.mark.compiled(6)

SCRIPT = """
import sys
from freshviews.codegen import conditions
from freshviews.expr.nodes import Call, Column
from freshviews.types import BIGINT, BOOLEAN

a, b = Column("a", BIGINT), Column("b", BIGINT)
condition = Call("lt", (Call("add_int", (a, b), BIGINT), b), BOOLEAN)
made = conditions.compile_conditions([condition], ("a", "b"))
print("numba" in sys.modules, made.addresses[0] != 0)
"""


def test_conditions_of_one_level_shorten_the_trace() -> None:
    edges = {(a, b): 1 for a in range(12) for b in range(12)}
    lengths = []
    for where in ("", "( a + b ) < 6", "( a + c ) < 6", "( ( a + b ) + c ) < 6"):
        one = rule("abc", "R ab", "R bc", "R ca", where=where)
        plain, traced = MaintainedRule(one, INTEGER), TracedRule(one)
        plain.apply({"R": edges})
        traced.apply(as_columns({"R": edges}))
        assert traced.counters.trace == plain.counters.trace
        lengths.append(traced.counters.trace)
    everything, early, last, of_three = lengths
    # 21 of 144 a, b are left, and the others have nothing below them; all a, b, c are reached.
    assert early < 0.25 * everything
    assert last == of_three == everything


def test_a_trace_keeps_bindings_for_which_a_condition_cannot_be_computed() -> None:
    for seed, where in enumerate(["( 10 % ( a * b ) ) < 2", "( 10 % ( a * b ) ) < 2, ( a + c ) < ( 7 % b )"]):
        one = rule("abc", "R ab", "S bc", "T ac", where=where)
        compared(one, seed, 4, 12)
        plain = MaintainedRule(one, INTEGER)
        delta = plain.apply({name: {(0, 0): 1, (3, 3): 1, (6, 6): 1} for name in "RST"})
        # 10 % 36 is not less than 2, nor 3 + 3 less than 7 % 3; for 0 the condition fails.
        assert [row for row, _ in delta.inserted] == [(0, 0, 0), (3, 3, 3)][: 2 - seed]


def view(where: str, order: str = "a, b, c, d") -> str:
    return f"""CREATE TABLE r (a BIGINT, b BIGINT, w STRING); CREATE TABLE s (b BIGINT, c BIGINT, w STRING);
        CREATE TABLE t (c BIGINT, d BIGINT);
        CREATE MATERIALIZED VIEW v TBLPROPERTIES
        ('freshviews.strategy' = 'incremental_trie_join', 'freshviews.key_order' = '{order}') AS
        SELECT r.a, s.c, t.d FROM r JOIN s ON r.b = s.b JOIN t ON s.c = t.c WHERE {where};"""


def test_conditions_shorten_the_trace_of_a_view() -> None:
    with fv.Database() as db:
        db.execute(view("r.a + s.c < 4 OR (r.a > 90 AND NOT s.c > 2)"))
        db.insert("r", [(a, 1, "") for a in range(10)])
        db.insert("s", [(1, c, "") for c in range(10)])
        db.insert("t", [(c, d) for c in range(10) for d in range(10)])
        assert sorted(db.view("v")) == [(a, c, d) for a in range(4) for c in range(4 - a) for d in range(10)]
        explained = db.view("v").explain()
        assert "filters   ((a + c) < 4) or ((a > 90) and not(c > 2)) at c\n" in explained
        (length,) = re.findall(r"trace of v: ([\d,]+) operations", explained)
        # There are 1,000 rows without the condition, each of which has an operation at d.
        assert int(length) < 400
        db.insert("r", [(91, 1, "")])
        assert len(list(db.view("v"))) == 130


def test_a_failing_condition_is_an_error_only_for_joined_rows() -> None:
    with fv.Database() as db:
        db.execute(view("10 % (r.a - s.c) > 0 AND r.a + s.c < 100"))
        db.insert("r", [(1, 1, "")])
        # There is no derivation, because t is empty.
        db.insert("s", [(1, 1, ""), (1, 4, "")])
        db.insert("t", [(4, 7)])
        assert list(db.view("v")) == [(1, 4, 7)]
        told = r"table t, row 1: view v cannot be computed for \(c = 1.*division by zero"
        with pytest.raises(fv.EvaluationError, match=told):
            db.insert("t", [(4, 8), (1, 9)])
        assert list(db.view("v")) == [(1, 4, 7)]
        db.delete("s", [(1, 1, "")])
        db.insert("t", [(4, 8), (1, 9)])
        assert sorted(db.view("v")) == [(1, 4, 7), (1, 4, 8)]
        with pytest.raises(fv.EvaluationError, match=r"table r, row 0: .*overflow"):
            db.insert("r", [(-(2**63) + 1, 1, "")])
        # A binding that the other condition excludes is not an error.
        db.insert("r", [(60, 2, "")])
        db.insert("s", [(2, 60, ""), (2, 39, "")])
        db.insert("t", [(60, 1), (39, 1)])
        assert sorted(db.view("v")) == [(1, 4, 7), (1, 4, 8), (60, 39, 1)]


def test_conditions_compare_constant_strings() -> None:
    with fv.Database() as db:
        where = "CASE WHEN r.a < s.c THEN r.w ELSE 'x' END = s.w OR (s.w IN ('y', r.w) AND r.a > s.c)"
        db.execute(view(where, "a, b, r_w, c, s_w, d"))
        lefts = [(a, w) for a in range(3) for w in ("w", "x", None)]
        rights = [(c, w) for c in range(3) for w in ("w", "x", "y", None)]
        db.insert("t", [(c, 0) for c in range(3)])
        db.insert("s", [(1, c, w) for c, w in rights])
        db.insert("r", [(a, 1, w) for a, w in lefts])
        db.delete("r", [(1, 1, "w")])
        lefts.remove((1, "w"))
        expected = [
            (a, c, 0)
            for a, left in lefts
            for c, right in rights
            if right is not None
            and ((left if a < c else "x") == right or (a > c and right in ("y", left)))
        ]
        assert sorted(db.view("v")) == sorted(expected)
        assert " at s_w" in db.view("v").explain()


@pytest.mark.skipif(PURE_PYTHON, reason="nothing is compiled")
def test_another_process_finds_compiled_conditions_on_disk(tmp_path: Path) -> None:
    assert printed_by_two(SCRIPT, tmp_path) == [["True", "True"], ["False", "True"]]
