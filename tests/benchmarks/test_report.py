"""The table of the benchmarks says what was measured, and its verdicts are those of the figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.__main__ import GROUPS
from benchmarks.report import MARKS, Disagreement, compare_answers, table, write_page

ROOT = Path(__file__).parents[2]


def measured(workload: str, case: str, strategy: str, value: float, **more: Any) -> dict[str, Any]:
    return {"workload": workload, "case": case, "strategy": strategy, "repetition": 0, "value": value, **more}


def fixed(much: float) -> str:
    """The line of the case that is held against another one."""
    cases = [("20 MB of state", 0.4), ("2 GB of state", much)]
    return table([measured("pipeline_fixed", case, "freshviews", value) for case, value in cases]).splitlines()[-1]


def test_a_case_is_held_against_another_one() -> None:
    assert "0.50 s: reached; at most 1.2 times that with 20 MB of state: reached, 1.10" in fixed(0.44)
    assert "0.50 s: missed; at most 1.2 times that with 20 MB of state: missed, 1.50" in fixed(0.6)
    alone = table([measured("pipeline_fixed", "2 GB of state", "freshviews", 0.44)])
    assert "that with" not in alone


def test_how_far_a_peer_came_is_told() -> None:
    rows = [
        measured("pipeline_graph", "triangles", "freshviews", 20_000),
        measured("pipeline_graph", "triangles", "Spark, joining streams", 100, note="cut off after 180 s"),
    ]
    line = table(rows).splitlines()[-1]
    assert "0.10 k/s; cut off after 180 s" in line
    assert "200 times as fast | 100 times: reached" in line


def test_other_answers_are_noticed_at_the_steps_that_both_have() -> None:
    one = measured("pipeline_graph", "triangles", "freshviews", 1, answers={"0": [["1"]], "1": [["2"]]})
    same = measured("pipeline_graph", "triangles", "Spark, joining streams", 1, answers={"1": [["2"]]})
    other = measured("pipeline_graph", "triangles", "Spark, joining streams", 1, answers={"1": [["3"]]})
    compare_answers(one, same)
    with pytest.raises(Disagreement, match="after step 1"):
        compare_answers(one, other)


def test_each_group_has_its_own_part_of_the_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text((ROOT / "docs" / "benchmarks.md").read_text())
    for group in GROUPS:
        write_page(f"the figures of {group}", group, page)
    text = page.read_text()
    assert MARKS.keys() == GROUPS.keys()
    for group, (begin, end) in MARKS.items():
        assert text.split(begin)[1].split(end)[0].strip() == f"the figures of {group}"
