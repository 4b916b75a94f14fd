"""EXPLAIN of a maintained rule: the order, the indices that are stored or left out, and the stored intervals."""

from __future__ import annotations

from freshviews.program.reference.incremental_trie_join.maintenance import MaintainedRule, Trace
from freshviews.program.reference.incremental_trie_join.oracle import Region
from freshviews.program.reference.incremental_trie_join.versions import BEFORE, END
from freshviews.program.rule import Cursor, Rule
from freshviews.program.traced import of_runs


def explained(maintained: MaintainedRule) -> str:
    """The order of the variables; per cursor whether it has an index, and the number of its intervals."""
    rule = maintained.rule
    lines = [f"order {', '.join(rule.order)}"]
    for number, cursor in _cursors(rule):
        index = maintained.indices.get((number, cursor.atom))
        held = "dropped: a prefix of the order" if index is None else f"{len(index)} intervals{of_runs(cursor)}"
        lines.append(f"  {_name(rule, cursor)} at {rule.order[number]}: {held}")
    return "\n".join(lines)


def intervals(maintained: MaintainedRule) -> str:
    """The records of all indices, in the order of the paper: (codes above; interval; codes beside)."""
    lines = []
    for number, cursor in _cursors(maintained.rule):
        index = maintained.indices.get((number, cursor.atom))
        for above, record in index.records() if index is not None else ():
            parts = (", ".join(map(str, above)), interval(record.low, record.high), ", ".join(map(str, record.beside)))
            lines.append(f"{_name(maintained.rule, cursor)} at {maintained.rule.order[number]}: " + _joined(parts))
    return "\n".join(lines)


def oracle(region: Region, order: tuple[str, ...]) -> str:
    """A change oracle as the disjunction that it stands for."""
    lines = []
    for binding, low, high in region.intervals():
        bound = [f"{v} = {code}" for v, code in zip(order, binding, strict=False)]
        lines.append(", ".join([*bound, f"{order[len(binding)]} in {interval(low, high)}"]))
    return "\n".join(lines)


def interval(low: int, high: int) -> str:
    """An interval of codes, ends included."""
    left = "-inf" if low == BEFORE else str(low)
    return f"[{left}, {'inf' if high == END else high}]"


def _cursors(rule: Rule) -> list[tuple[int, Cursor]]:
    return [(i, cursor) for i, level in enumerate(rule.levels) for cursor in (*level.cursors, *level.negated)]


def _name(rule: Rule, cursor: Cursor) -> str:
    return str(rule.atoms[cursor.atom])


def _joined(parts: tuple[str, str, str]) -> str:
    above, middle, beside = parts
    return f"({above}; {middle}; {beside})" if above or beside else middle


def edit_distance(before: Trace, after: Trace) -> int:
    """The number of operations to remove from one trace and to add to it to get the other. A trace has an operation
    once under a binding."""
    return len(set(before) ^ set(after))
