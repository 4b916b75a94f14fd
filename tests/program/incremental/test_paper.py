"""The examples of the paper: surgery with its figures; the unary join with an instance that fits the paper's text,
which lacks the diagram; the indices of section 4.2."""

from __future__ import annotations

from dataclasses import replace

from freshviews.program.reference.incremental_trie_join.maintenance import Delta, MaintainedRule
from freshviews.program.reference.incremental_trie_join.surgery import surgeries
from freshviews.program.reference.incremental_trie_join.versions import Version
from freshviews.ring import INTEGER
from tests.program.incremental.describe import explained, intervals, oracle
from tests.program.incremental.rules import RULES, rule


def version(*rows: tuple[int, ...]) -> Version:
    return Version().edited((row, 1) for row in rows)


def test_tree_surgery_makes_the_same_operations_as_in_the_paper() -> None:
    """Section 4.2.1."""
    old = version((0, 30, 80), (0, 30, 81), (1, 35, 60), (1, 35, 61), (3, 40, 90), (3, 50, 91), (3, 50, 92))
    new = version((0, 30, 80), (1, 35, 60), (1, 35, 61), (3, 50, 91), (4, 60, 71))
    assert [str(operation) for operation in surgeries(old, new)] == [
        "ERASE 0-30-81",
        "ERASE 3-40-90",
        "ERASE 3-40",
        "ERASE 3-50-92",
        "INSERT 4",
        "INSERT 4-60",
        "INSERT 4-60-71",
    ]


def test_a_branch_of_several_rows_is_erased_once_and_after_its_leaves() -> None:
    old, new = version((1, 2, 3), (1, 2, 4), (1, 5, 6), (7, 8, 9)), version((7, 8, 9))
    assert [str(operation) for operation in surgeries(old, new)] == [
        "ERASE 1-2-3", "ERASE 1-2-4", "ERASE 1-2", "ERASE 1-5-6", "ERASE 1-5", "ERASE 1",
    ]  # fmt: skip
    assert [str(operation) for operation in surgeries(new, old)] == [
        "INSERT 1", "INSERT 1-2", "INSERT 1-2-3", "INSERT 1-2-4", "INSERT 1-5", "INSERT 1-5-6",
    ]  # fmt: skip


def unary() -> MaintainedRule:
    maintained = MaintainedRule(replace(RULES["two sets"], keep_all=True), INTEGER)
    maintained.apply({"A": {(x,): 1 for x in (0, 4, 6, 9)}, "B": {(x,): 1 for x in (0, 2, 6)}})
    return maintained


def test_intervals_of_a_unary_join_equal_the_intervals_of_the_paper() -> None:
    """Section 4.1.1: at 0, a key is no longer in B; the walk goes on to the oracle's next interval where one has
    appeared."""
    maintained = unary()
    assert intervals(maintained).splitlines() == [
        "A(x) at x: [-inf, 0]",
        "A(x) at x: [1, 4]",
        "A(x) at x: [6, 6]",
        "A(x) at x: [7, 9]",
        "B(x) at x: [-inf, 0]",
        "B(x) at x: [4, 6]",
        "B(x) at x: [9, inf]",
    ]
    delta = maintained.apply({"B": {(0,): -1, (9,): 1}})
    assert oracle(maintained.oracle, ("x",)).splitlines() == ["x in [-inf, 0]", "x in [9, inf]"]
    assert delta == Delta(erased=(((0,), 1),), inserted=(((9,), 1),))
    assert intervals(maintained).splitlines() == [
        "A(x) at x: [-inf, 0]",
        "A(x) at x: [2, 4]",
        "A(x) at x: [6, 6]",
        "A(x) at x: [7, 9]",
        "A(x) at x: [10, inf]",
        "B(x) at x: [-inf, 2]",
        "B(x) at x: [4, 6]",
        "B(x) at x: [9, 9]",
    ]


def test_a_seek_ignores_changes_below_the_code_that_it_seeks() -> None:
    """Section 4.1: the step that seeks 4 in B is sensitive at 4 and 5 but not at 3: it finds a least upper bound of
    4."""
    maintained = unary()
    maintained.apply({"B": {(3,): 1}})
    assert oracle(maintained.oracle, ("x",)) == ""
    maintained.apply({"B": {(5,): 1}})
    assert oracle(maintained.oracle, ("x",)) == "x in [4, 6]"
    maintained.apply({"B": {(4,): 1}})
    assert oracle(maintained.oracle, ("x",)) == "x in [4, 5]"


def test_atoms_over_a_prefix_need_no_sensitivity_index() -> None:
    """Section 4.2: of R(a, b), S(b, c), T(a, c) in the order a, b, c."""
    maintained = MaintainedRule(rule("abc", "R ab", "S bc", "T ac"), INTEGER)
    maintained.apply({"R": {(1, 2): 1, (3, 2): 1}, "S": {(2, 4): 1}, "T": {(1, 4): 1, (3, 9): 1}})
    assert explained(maintained).splitlines() == [
        "order a, b, c",
        "  R(a, b) at a: dropped: a prefix of the order",
        "  T(a, c) at a: dropped: a prefix of the order",
        "  R(a, b) at b: dropped: a prefix of the order",
        "  S(b, c) at b: 2 intervals",
        "  S(b, c) at c: 4 intervals",
        "  T(a, c) at c: 2 intervals",
    ]
