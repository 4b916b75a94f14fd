"""The benchmark of the planner's choice: all strategies get the same batches, and the choice is compared with each."""

from __future__ import annotations

from types import SimpleNamespace

import pyarrow as pa
import pytest

from benchmarks.measuring.strategies import PLANNED
from benchmarks.measuring.stream import Relation, Step, Stream, interleaved
from benchmarks.timing import choice

pytestmark = pytest.mark.plain_python(only=True)


def joined() -> Stream:
    relations = (Relation("r", "a BIGINT, b BIGINT", ("a",)), Relation("s", "b BIGINT, c BIGINT", ("b",)))
    rows = {
        "r": pa.table({"a": range(60), "b": [i % 7 for i in range(60)]}),
        "s": pa.table({"b": [i % 7 for i in range(40)], "c": range(40)}),
    }
    steps = interleaved(rows, 2)
    steps += [Step(-1, step.table, step.rows) for step in steps[:10]]
    return Stream(relations, "SELECT COUNT(*) AS n FROM r JOIN s ON r.b = s.b", tuple(steps), (len(steps) - 1,))


def test_the_choice_of_the_planner_is_compared_with_every_accepted_strategy(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "module_of", lambda name: SimpleNamespace(stream=lambda case: joined()))
    monkeypatch.setattr(choice, "ENOUGH", 0.0)
    monkeypatch.setattr(choice, "BEHIND", 1e9)
    found = choice.measure("any: case", PLANNED)
    assert found["strategy_taken"] == "view_tree" and found["rounds"] == 1 and found["value"] >= 1
    # ivm_eps_linear maintains cyclic joins over three relations only.
    assert "ivm_eps_linear" not in found["note"]
    # The choice is the same program as view_tree, which then has no databases of its own.
    assert "view_tree" not in found["note"].partition(";")[0]
    for name in ("first_order", "higher_order", "change_propagation", "crown"):
        assert name in found["note"]
    assert found["replanned"] in choice.NAMED and "times the best" in found["note"].partition(";")[2]


def test_slow_strategies_are_left_out_of_the_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "BEHIND", 0.0)
    taken: list[str] = []
    monkeypatch.setattr(choice, "_take", lambda db, step: taken.append(step.table))
    clock = iter(range(1_000_000))
    monkeypatch.setattr(choice, "time", SimpleNamespace(process_time=lambda: next(clock) * 1e-3))
    times, rows, strategy = choice._round(joined())
    assert list(times) == [PLANNED] and strategy == "view_tree"
    # Each piece takes a thousandth of a second: after twenty of them only the two databases of the choice continue.
    steps = joined().steps
    assert 2 * len(steps) < len(taken) < 6 * len(steps)
    assert rows == sum(len(one.rows) for one in steps[1:])
