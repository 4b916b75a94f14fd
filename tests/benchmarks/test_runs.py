"""A measurement ends at its limit of time or memory and reports its progress; a stopped run can be continued."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.measuring import processes
from benchmarks.measuring.catalogue import module_of
from benchmarks.measuring.processes import Worker
from benchmarks.measuring.strategies import OURS, PEERS
from benchmarks.running import check, run, schedule
from benchmarks.running.results import Unfinished
from benchmarks.running.run import Limits
from benchmarks.running.schedule import Entry
from freshviews.plan import STRATEGIES as BY_NAME

PROGRESS = 'print(\'{"progress": {"steps_done": 3, "rows": 300, "wall_seconds": 0.5}}\', flush=True)'


def worker(program: str, limit: float = 100.0, memory: float = 1e12) -> dict[str, Any]:
    return Worker([sys.executable, "-c", program], limit, memory).run()


def test_a_slow_process_is_ended_and_its_rate_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "GRACE", 0.5)
    found = worker(f"{PROGRESS}\nimport time; time.sleep(60)", limit=1.0)
    assert found["cut"] == "cut off after 1 s, in batch 4"
    assert found["rows_per_second"] == 300.0


def test_a_process_ended_before_its_first_batch_has_no_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "START", 0.5)
    monkeypatch.setattr(processes, "GRACE", 0.5)
    found = worker("import time; time.sleep(60)", limit=0.5)
    assert found["cut"].endswith("before the first batch") and "rows_per_second" not in found
    monkeypatch.setattr(processes, "START", 60.0)
    begun = PROGRESS.replace("3, ", "0, ").replace("300", "0")
    found = worker(f"{begun}\nimport time; time.sleep(60)", limit=0.5)
    assert found["cut"] == "cut off after 0.5 s, in the first batch" and "rows_per_second" not in found


def test_a_process_that_takes_too_much_memory_is_ended() -> None:
    found = worker("import time; x = bytearray(300 << 20); time.sleep(60)", memory=200 << 20)
    assert found["cut"].startswith("out of memory, with 0.") and found["peak_bytes"] > 200 << 20


def test_the_measured_memory_includes_child_processes() -> None:
    child = "import time; x = bytearray(300 << 20); time.sleep(60)"
    found = worker(f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])", memory=200 << 20)
    assert found["cut"].startswith("out of memory")


def test_a_failed_process_reports_its_error() -> None:
    found = worker("import warnings; warnings.warn('careful'); raise ValueError('what was wrong')")
    assert found == {"failed": "ValueError: what was wrong"}


def test_a_result_is_read_from_the_last_line_that_a_process_prints() -> None:
    found = worker(f"{PROGRESS}\nprint('noise')\nprint('{{\"value\": 7}}')")
    assert found["value"] == 7


def test_a_peer_that_is_not_installed_is_reported_as_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.measuring.environments.FOLDER", tmp_path)
    found = processes.measured("graph", "triangle, skew 2.5 tenth", "Pathway")
    assert found == {"missing": "not installed: python -m benchmarks install pathway"}


class Fake:
    """Stands in for processes: the result of each strategy, and the strategies that were run."""

    def __init__(self, **found: dict[str, Any]) -> None:
        self.found = found
        self.asked: list[str] = []

    def __call__(self, workload: str, case: str, strategy: str, **_: Any) -> dict[str, Any]:
        self.asked.append(strategy)
        return dict(self.found[strategy])


ENTRY = Entry("graph", "graph", "triangle, skew 2.5 tenth", ("a", "b", "c", "d"))
LIMITS = Limits(1.0, 1e9, 1.0)


def test_a_stopped_benchmark_run_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Fake(
        a={"rows_per_second": 1.0, "answers": {"1": [["5"]]}},
        b={"rows_per_second": 2.0, "answers": {"1": [["6"]]}},
        c={"rows_per_second": 3.0, "cut": "cut off"},
        d={"rows_per_second": 4.0, "answers": {"1": [["5"]]}},
    )
    monkeypatch.setattr(run, "measured", fake)
    path = tmp_path / "run.jsonl"
    kept = Unfinished(path, {"date": "today"}, go_on=False)
    assert not run.measure([ENTRY], 2, Limits(1.0, 1e9, 0.0), kept)
    assert not run.all_measured([ENTRY], kept.measured)
    assert run.measure([ENTRY], 2, LIMITS, kept)
    # b is wrong and c was cut off: neither is repeated.
    assert fake.asked == ["a", "b", "c", "d", "a", "d"]
    assert run.all_measured([ENTRY], kept.measured)
    wrong = next(one for one in kept.measured if one["strategy"] == "b")
    assert "after step 1" in wrong["wrong"] and "rows_per_second" not in wrong
    again = Unfinished(path, {"date": "tomorrow"}, go_on=True)
    assert again.about == {"date": "today"} and again.measured == kept.measured
    assert run.measure([ENTRY], 3, LIMITS, again)
    assert fake.asked[6:] == ["a", "d"]
    written = json.loads(again.finish(tmp_path / "results" / "done.json").read_text())
    assert len(written["measured"]) == 8 and not path.exists()
    assert not any("answers" in one for one in written["measured"])


def test_the_check_accepts_ratios_down_to_two_thirds_but_no_additional_steps() -> None:
    floor = {"ratios": {"x": 3.0}, "steps": {"s": 3.0}}
    assert check.fallen({"ratios": {"x": 2.01}, "steps": {"s": 3.0}}, floor) == []
    assert check.fallen({"ratios": {"x": 30.0}, "steps": {"s": 3.0}}, floor) == []
    assert "less than two thirds" in check.fallen({"ratios": {"x": 1.99}, "steps": {"s": 3.0}}, floor)[0]
    assert "takes 4 steps, not 3" in check.fallen({"ratios": {"x": 3.0}, "steps": {"s": 4.0}}, floor)[0]
    assert len(check.fallen({"ratios": {}, "steps": {"t": 3.0}}, floor)) == 3


def test_the_committed_floor_lists_exactly_the_guarded_cases() -> None:
    entries = list(schedule.guard())
    rows = [
        {"workload": e.workload, "case": e.case, "strategy": s, "value": 1, "rows_per_cpu_second": 1.0}
        for e in entries
        for s in e.strategies
    ]
    found = check.figures(rows)
    floor = json.loads(check.FLOOR.read_text())
    assert {kind: set(floor[kind]) for kind in floor} == {kind: set(found[kind]) for kind in found}
    assert len(found["ratios"]) == 6


def test_a_case_with_wrong_answers_ends_the_check() -> None:
    with pytest.raises(SystemExit, match="wrong: different"):
        check.figures([{"workload": "w", "case": "c", "strategy": "freshviews", "wrong": "different"}])


@pytest.mark.parametrize("entries", [schedule.quick, schedule.full, schedule.guard, schedule.apart])
def test_the_schedule_lists_only_existing_cases_and_strategies(entries: Any) -> None:
    for entry in schedule.merged(entries()):
        assert entry.group in schedule.GROUPS
        module = module_of(entry.workload)
        if hasattr(module, "stream"):
            assert set(entry.strategies) <= {*OURS, *BY_NAME, *PEERS}, entry
        else:
            assert entry.case in module.CASES and entry.strategies == module.STRATEGIES[: len(entry.strategies)], entry
        assert entry.strategies[0] == "freshviews", "answers of others are held against ours"


@pytest.mark.parametrize("parts", [(schedule.quick,), (schedule.full, schedule.apart)])
def test_every_peer_is_scheduled(parts: Any) -> None:
    entries = [entry for part in parts for entry in part()]
    assert schedule.peers_of(entries) == list(PEERS)
