"""Heads against the same aggregates recomputed from the current derivations."""

from __future__ import annotations

import random
import struct
from fractions import Fraction

import pytest

from freshviews.program.reference.incremental_trie_join.maintenance import Delta, MaintainedRule
from freshviews.ring import INTEGER, REAL, ProductRing, Real
from tests.program.incremental.heads import Conflict, Function, Grouped, Scan, Scanned
from tests.program.incremental.rules import Relations, rule

ONE = rule("abc", "R ab", "S bc")


def test_groups_and_scans_over_several_levels_are_right_after_every_batch() -> None:
    choices = random.Random(3)
    maintained, relations = MaintainedRule(ONE, INTEGER), Relations(ONE)
    projected = Grouped(ONE.order, ("a",))
    listed = Grouped(ONE.order, ONE.order)
    scanned = Scanned(ONE.order, ("a", "b", "c"), (Scan(2, max), Scan(1, min), Scan(0, max)))
    for _ in range(40):
        edits = relations.some_edits(choices, 5, choices.choice([1, 6]), several=True)
        relations.apply(edits)
        delta = maintained.apply(edits)
        before = dict(projected.groups)
        changed = projected.apply(delta)
        listed.apply(delta)
        scanned.apply(delta)
        there = relations.derivations()
        support: dict[tuple[int, ...], int] = {}
        for (a, _, _), m in there.items():
            support[a,] = support.get((a,), 0) + m
        assert projected.groups == support
        keys = before.keys() | support.keys()
        assert changed == {
            key: (before.get(key, 0), support.get(key, 0)) for key in keys if before.get(key) != support.get(key)
        }
        assert listed.groups == there
        for scan, result in zip(scanned.scans, scanned.results, strict=True):
            groups: dict[tuple[int, ...], list[int]] = {}
            for row in there:
                groups.setdefault(row[: scan.depth], []).append(row[-1])
            assert result == {group: scan.combine(min(c), max(c)) for group, c in groups.items()}


def code_of(x: float) -> int:
    (code,) = struct.unpack("<q", struct.pack("<d", x))
    return int(code)


def test_sums_are_exact_after_a_huge_value_is_deleted() -> None:
    """A count and a sum in one product: 1e300 is inserted and deleted; 0.1 added three times is rounded once."""
    ring = ProductRing(("count", "sum"), (INTEGER, REAL))
    maintained = MaintainedRule(rule("ab", "R ab", "S b"), ring)
    head = Grouped(("a", "b"), ("a",), ring)

    def row(x: float, times: int = 1) -> tuple[int, Real]:
        return (times, REAL.scale(REAL.lift(code_of(x)), times))

    once = (1, Real(Fraction(1)))
    edits = {"R": {(1, 1): row(0.1), (1, 2): row(0.1), (1, 3): row(0.1), (1, 4): row(1e300)}}
    head.apply(maintained.apply({**edits, "S": {(b,): once for b in range(1, 5)}}))
    assert head.groups[1,][0] == 4
    head.apply(maintained.apply({"R": {(1, 4): row(1e300, -1)}}))
    count, total = head.groups[1,]
    assert (count, total.finite) == (3, 3 * Fraction(0.1))
    assert REAL.value(total) == code_of(float(3 * Fraction(0.1)))
    head.apply(maintained.apply({"S": {(b,): ring.negate(once) for b in range(1, 5)}}))
    assert head.groups == {}


def test_a_functional_head_erases_values_before_inserts() -> None:
    head = Function(("a", "v"), ("a",), "v")
    head.apply(Delta((), (((1, 10), 1),)))
    head.apply(Delta((((1, 10), 1),), (((1, 11), 1),)))
    assert head.values == {(1,): (11, 1)}
    with pytest.raises(Conflict, match=r"v of \(1,\) is 11, and would be 12 as well"):
        head.apply(Delta((), (((1, 12), 1),)))
