"""Negated atoms are read as complements: the work grows with the gaps of a relation, not with its rows."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

import freshviews as fv
from freshviews.engine.traces.traced import TracedRule
from freshviews.kernel.memory.mem import PURE_PYTHON
from freshviews.program.reference.incremental_trie_join.maintenance import MaintainedRule
from freshviews.program.rule import Rule
from freshviews.ring import INTEGER
from tests.engine.test_traced import as_columns, as_derivations, operations_of
from tests.program.incremental.rules import Row, rule

pytestmark = pytest.mark.compiled(9)

Edits = dict[str, dict[Row, int]]
SIZES = (1000, 4000 if PURE_PYTHON else 32_000)
COVERED = {
    "a prefix of the order": rule("x", "A x", "!B x"),
    "below another variable": rule("ax", "D a", "A x", "!B x"),
    "a variable above": rule("ax", "A ax", "!B ax"),
    "two of them": rule("x", "A x", "!B x", "!C x"),
}


class Compared:
    """A rule as compiled code and in the plain form, which must agree; returns what a batch erases and inserts, and the
    operations."""

    def __init__(self, one: Rule, compare: bool = True) -> None:
        self.plain, self.traced = MaintainedRule(one, INTEGER), TracedRule(one)
        self._compare = compare

    def apply(self, edits: Edits) -> tuple[int, int, int]:
        before = self.traced.counters.operations
        erased, inserted = self.traced.apply(as_columns(edits))
        if self._compare:
            delta = self.plain.apply(edits)
            assert as_derivations(erased) == sorted(delta.erased) and as_derivations(inserted) == sorted(delta.inserted)
            assert self.traced.counters.operations == self.plain.counters.operations
            assert self.traced.held == self.plain.held
        return len(erased), len(inserted), self.traced.counters.operations - before


@pytest.mark.parametrize("name", COVERED)
def test_the_cost_of_operations_on_complements_does_not_grow_with_negated_rows(name: str) -> None:
    one = COVERED[name]
    width = {atom.relation: len(atom.variables) for atom in one.atoms}

    def rows(relation: str, codes: list[int]) -> dict[Row, int]:
        return {(7,) * (width[relation] - 1) + (code,): 1 for code in codes}

    done = []
    for size in SIZES:
        both = Compared(one, compare=size == SIZES[0])
        gaps = {size // 3, size // 2, size - 1}
        covered = [code for code in range(size) if code not in gaps]
        edits = {"A": rows("A", list(range(size))), "B": rows("B", covered)}
        if "C" in width:
            # Each covers what the other lacks, except for the last gap.
            edits["C"] = rows("C", [size // 3])
        if "D" in width:
            edits["D"] = {(7,): 1}
        left = len(gaps) - ("C" in width)
        first = both.apply(edits)
        assert first[:2] == (0, left)
        middle = rows("B", [size // 4])
        uncovered = both.apply({"B": dict.fromkeys(middle, -1)})
        assert uncovered[:2] == (0, 1)
        covered_again = both.apply({"B": middle})
        assert covered_again[:2] == (1, 0)
        elsewhere = both.apply({"B": dict.fromkeys(rows("B", [size - 2]), -1), "A": dict.fromkeys(rows("A", [9]), -1)})
        assert elsewhere[:2] == (0, 1)
        gone = both.apply({"A": dict.fromkeys(rows("A", [c for c in range(size) if c != 9]), -1)})
        assert gone[:2] == (left + 1, 0)
        done.append([first[2], uncovered[2], covered_again[2], elsewhere[2], gone[2]])
        both.traced.close()
    assert done[0] == done[1], done
    assert done[0][0] <= 40 and max(done[0][1:4]) <= 20, done


def test_the_cost_of_a_complement_grows_with_its_gaps() -> None:
    done = []
    for size in SIZES:
        with fv.Database() as db:
            db.execute("""CREATE TABLE r (day DATE NOT NULL); CREATE TABLE s (day DATE NOT NULL, shop BIGINT);
                CREATE MATERIALIZED VIEW closed
                TBLPROPERTIES ('freshviews.strategy' = 'incremental_trie_join') AS
                SELECT day FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.day = r.day);""")
            costs = []

            def cost(db: fv.Database = db, costs: list[int] = costs) -> None:
                costs.append(operations_of(db.view("closed").explain()) - sum(costs))

            days = [date(1900, 1, 1) + timedelta(i) for i in range(size)]
            assert "!s(day) at day of runs" in db.view("closed").explain()
            cost()
            db.insert("s", [(day, 1) for day in days if day != date(1900, 2, 3)])
            db.insert("r", [(day,) for day in days])
            cost()
            assert list(db.view("closed")) == [(date(1900, 2, 3),)]
            db.delete("s", [(date(1901, 5, 6), 1)])
            cost()
            assert sorted(db.view("closed")) == [(date(1900, 2, 3),), (date(1901, 5, 6),)]
            done.append(costs)
    assert done[0] == done[1] and max(done[0]) <= 12, done


def test_complements_include_the_least_and_greatest_code() -> None:
    ends = [-(2**63), -(2**63) + 1, 2**63 - 2, 2**63 - 1]
    some = {(code,): 1 for code in ends}
    plain = MaintainedRule(rule("x", "A x", "!B x"), INTEGER)
    traced = TracedRule(plain.rule)

    def apply(edits: Edits) -> tuple[int, int]:
        delta = plain.apply(edits)
        erased, inserted = traced.apply(as_columns(edits))
        assert as_derivations(erased) == sorted(delta.erased) and as_derivations(inserted) == sorted(delta.inserted)
        return len(erased), len(inserted)

    assert apply({"A": some, "B": some}) == (0, 0)
    for code in ends:
        assert apply({"B": {(code,): -1}}) == (0, 1)
        assert apply({"B": {(code,): 1}}) == (1, 0)
    assert apply({"B": dict.fromkeys(some, -1)}) == (0, 4)
    traced.close()
