"""Maintenance by trace: right after every batch, in time and space bounded by the trace."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from freshviews.program.reference.incremental_trie_join import maintenance
from freshviews.program.reference.incremental_trie_join.maintenance import MaintainedRule
from freshviews.program.reference.incremental_trie_join.sensitivity import SensitivityIndex
from freshviews.ring import INTEGER
from tests.program.incremental.describe import edit_distance
from tests.program.incremental.rules import RULES, Relations, Row, rule, shuffled, taken_in


def unaccounted(maintained: MaintainedRule, codes: int) -> list[tuple[Row, int]]:
    """Bindings and codes that break the invariant of the records: each code is emitted and every cursor is sensitive at
    it, or some cursor that lacks it is sensitive at it."""
    found: list[tuple[Row, int]] = []

    def look(binding: Row) -> None:
        if len(binding) == len(maintained.rule.order):
            return
        level = maintained.rule.levels[len(binding)]
        for code in range(-1, codes + 1):
            for_it, sensitive = [], []
            for cursor in (*level.cursors, *level.negated):
                above = tuple(binding[i] for i in cursor.above)
                beside = tuple(binding[i] for i in cursor.beside)
                there = maintained.present(cursor.atom, (*above, code))
                for_it.append(there != (cursor in level.negated))
                index = maintained.indices.get((len(binding), cursor.atom), SensitivityIndex())
                sensitive.append(cursor.pointed or any(r.beside == beside for r in index.stab(above, code)))
            if all(for_it):
                if not all(sensitive):
                    found.append((binding, code))
                look((*binding, code))
            elif not any(s and not f for f, s in zip(for_it, sensitive, strict=True)):
                found.append((binding, code))

    look(())
    return found


@pytest.mark.parametrize("name", RULES)
def test_every_batch_of_a_maintained_rule_agrees_with_nested_loops(name: str) -> None:
    for seed in range(6):
        choices = random.Random(f"{name} {seed}")
        one = shuffled(RULES[name], choices) if seed else RULES[name]
        one = replace(one, keep_all=seed % 3 == 2)
        maintained, relations = MaintainedRule(one, INTEGER), Relations(one)
        held: dict[Row, int] = {}
        codes = choices.choice([3, 5, 8])
        for batch in range(14):
            count = 12 if batch == 0 else choices.choice([0, 1, 1, 2, 9])
            edits = relations.some_edits(choices, codes, count, several=seed % 2 == 1)
            relations.apply(edits)
            held = taken_in(held, maintained.apply(edits))
            assert held == relations.derivations(), (seed, batch)
        # Without conditions: the check does not know their part in it.
        assert one.conditions or unaccounted(maintained, codes) == []


def test_derivations_are_right_after_an_early_stop() -> None:
    """Without slack, the old walk stops at the end of a contribution, and the new one covers what it had covered."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(maintenance, "SLACK", 0)
        for name in ("three sets", "three sets below another", "triangle with its corners", "star"):
            for seed in range(8):
                choices = random.Random(f"{name} {seed}")
                one = replace(RULES[name], keep_all=seed % 2 == 1)
                maintained, relations = MaintainedRule(one, INTEGER), Relations(one)
                held: dict[Row, int] = {}
                for batch in range(25):
                    edits = relations.some_edits(choices, 30, 60 if batch == 0 else choices.choice([1, 3, 9]))
                    relations.apply(edits)
                    held = taken_in(held, maintained.apply(edits))
                    assert held == relations.derivations(), (name, seed, batch)
                assert unaccounted(maintained, 30) == []


@pytest.mark.parametrize("name", RULES)
def test_the_operations_of_a_batch_are_bounded_by_edit_distance_and_changes(name: str) -> None:
    """Every batch: operations of iterators are at most 3 log2(N) (edit distance + changes)."""
    for seed in range(2):
        choices = random.Random(f"{name} {seed}")
        one = shuffled(RULES[name], choices)
        maintained, relations = MaintainedRule(one, INTEGER), Relations(one)
        edits = relations.some_edits(choices, 12, 120)
        relations.apply(edits)
        maintained.apply(edits)
        trace = maintained.trace()
        for _ in range(8):
            edits = relations.some_edits(choices, 12, choices.choice([1, 1, 3, 10]), several=seed == 1)
            changed = relations.apply(edits)
            done = maintained.counters.operations
            maintained.apply(edits)
            done = maintained.counters.operations - done
            before, trace = trace, maintained.trace()
            size = sum(map(len, relations.rows.values()))
            assert done <= 3 * math.log2(size) * (edit_distance(before, trace) + changed)


@pytest.mark.parametrize("name", RULES)
def test_a_maintained_rule_stores_few_extra_intervals(name: str) -> None:
    """After many batches, growing and shrinking, the number is close to that of a new evaluation."""
    choices = random.Random(name)
    one = RULES[name]
    maintained, relations = MaintainedRule(one, INTEGER), Relations(one)
    for batch in range(40):
        edits = relations.some_edits(choices, 9, 30 if batch == 0 else 4)
        relations.apply(edits)
        maintained.apply(edits)
    assert maintained.held <= 1.25 * recorded_anew(maintained) + 4
    for name_, rows in relations.rows.items():
        maintained.apply({name_: dict.fromkeys(rows, -1)})
    assert maintained.held <= recorded_anew(maintained) + 4


def recorded_anew(maintained: MaintainedRule) -> int:
    """The number of intervals that a new evaluation would record."""
    levels = maintained.rule.levels
    cursors = {(i, c.atom): c for i, level in enumerate(levels) for c in (*level.cursors, *level.negated)}
    steps = ((cursors[level, atom], low, high) for level, atom, _, low, high, _ in maintained.trace())
    return sum(cursor.kept and (not cursor.pointed or low < high) for cursor, low, high in steps)


def test_sensitivity_indexes_store_exactly_the_intervals_of_the_trace() -> None:
    for name in ("two sets", "triangle", "path", "two cycles", "negated", "negated set", "negated sets below another"):
        choices = random.Random(name)
        one = replace(RULES[name], keep_all=True)
        maintained, relations = MaintainedRule(one, INTEGER), Relations(one)
        trace: set[tuple[int, int, Row, int, int]] = set()
        for batch in range(30):
            trace_before = trace if batch else None
            edits_before = maintained.counters.edits
            edits = relations.some_edits(choices, 7, 40 if batch == 0 else 3)
            relations.apply(edits)
            maintained.apply(edits)
            trace = {(level, atom, binding, low, high) for level, atom, binding, low, high, _ in maintained.trace()}
            held = set()
            for (level, atom), index in maintained.indices.items():
                at_level = maintained.rule.levels[level]
                cursor = next(c for c in (*at_level.cursors, *at_level.negated) if c.atom == atom)
                for above, record in index.records():
                    codes = dict(zip((*cursor.above, *cursor.beside), (*above, *record.beside), strict=True))
                    binding = tuple(codes[i] for i in range(level))
                    held.add((level, atom, binding, record.low, record.high))
            assert held == trace, (name, batch)
            assert maintained.counters.trace == len(trace)
            if trace_before is not None:
                assert maintained.counters.edits - edits_before == len(trace ^ trace_before)


def test_the_cost_of_an_edit_does_not_depend_on_other_rows() -> None:
    costs = []
    for size in (100, 400):
        maintained = MaintainedRule(RULES["triangle"], INTEGER)
        ring = {(i, i + 1): 1 for i in range(size)}
        maintained.apply({"R": ring, "S": ring, "T": {(i + 2, i): 1 for i in range(size)}})
        done = maintained.counters.operations
        delta = maintained.apply({"S": {(50, 51): -1}})
        assert delta.erased == (((49, 50, 51), 1),)
        costs.append(maintained.counters.operations - done)
    assert costs[0] == costs[1] < 20


def test_a_join_repeats_no_operations_below_an_unchanged_code() -> None:
    """A new code before a heavy one changes the step to the heavy one, and nothing below it."""
    maintained = MaintainedRule(rule("bac", "R ab", "S ac", "T a"), INTEGER)
    heavy = {(9, c): 1 for c in range(200)}
    maintained.apply({"R": {(9, 0): 1}, "S": heavy, "T": {(9,): 1}})
    done = maintained.counters.operations
    delta = maintained.apply({"T": {(5,): 1}, "S": {(5, 1): 1}})
    assert delta.erased == delta.inserted == ()
    assert maintained.counters.operations - done < 30


def test_a_second_copy_of_a_row_changes_payloads() -> None:
    maintained = MaintainedRule(RULES["path"], INTEGER)
    maintained.apply({"R": {(1, 2): 1}, "S": {(2, 3): 2, (2, 4): 1}})
    delta = maintained.apply({"R": {(1, 2): 2}})
    assert delta.erased == (((1, 2, 3), 2), ((1, 2, 4), 1))
    assert delta.inserted == (((1, 2, 3), 6), ((1, 2, 4), 3))


def test_a_batch_that_changes_nothing_takes_no_operation() -> None:
    maintained = MaintainedRule(RULES["triangle"], INTEGER)
    maintained.apply({"R": {(1, 2): 1}, "S": {(2, 3): 1}, "T": {(3, 1): 1}})
    done = replace(maintained.counters)
    delta = maintained.apply({"R": {(1, 2): 0}})
    assert delta.erased == delta.inserted == () and maintained.counters == done
