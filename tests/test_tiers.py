"""Selection of tests by tier, and stored cases."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tiers import SHARE_OF_A_FILE

ROOT = Path(__file__).parents[1]
TESTS = """
import pytest
from hypothesis import given, strategies as st

@pytest.mark.diagonal
@pytest.mark.parametrize("x", range(3))
@pytest.mark.parametrize("y", range(5))
def test_grid(x, y): pass

@pytest.mark.sample(4)
@pytest.mark.parametrize("x", range(8))
def test_sampled(x): pass

@pytest.mark.full
def test_full(): pass

@pytest.mark.plain_python(only=True)
def test_plain(): pass

@pytest.mark.compiled(8)
@pytest.mark.parametrize("x", range(8))
def test_compiled(x): pass

@pytest.mark.large(3)
@pytest.mark.parametrize("x", [0, *(pytest.param(i, marks=[pytest.mark.full]) for i in range(1, 7))])
def test_large(x): pass

@pytest.mark.large(0)
@pytest.mark.parametrize("x", [0, *(pytest.param(i, marks=[pytest.mark.full]) for i in range(1, 4))])
def test_largest(x): pass

@pytest.mark.full
@pytest.mark.kills
def test_killed(): pass

@pytest.mark.seeds(10)
def test_of_a_seed(seed): assert seed != 5 * 2**16 + 3

@given(st.integers(0, 10**6))
def test_drawn(x): assert x < 990_000
"""


SEEDED = {"of_a_seed": 1, "drawn": 1}


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., tuple[dict[str, int], str]]:
    """``run(FRESHVIEWS_...=...)``: how many cases of each of TESTS ran, and the output."""
    (tmp_path / "tests").mkdir()
    for name in ("conftest.py", "tiers.py", "found.py", "seconds.json", "__init__.py"):
        (tmp_path / "tests" / name).write_text((ROOT / "tests" / name).read_text())
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    (tmp_path / "tests" / "test_some.py").write_text(TESTS)

    def started(**variables: str) -> tuple[dict[str, int], str]:
        ours = {name: value for name, value in os.environ.items() if not name.startswith("FRESHVIEWS_")}
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "tests"],
            cwd=tmp_path,
            env=ours | variables,
            capture_output=True,
            text=True,
        )
        lines = [line for line in done.stdout.splitlines() if line.startswith("tests/") and "%]" in line]
        counts: dict[str, int] = {}
        for line in lines:
            name = line.partition("::")[2].partition(" ")[0].partition("[")[0].removeprefix("test_")
            counts[name] = counts.get(name, 0) + 1
        return counts, done.stdout

    return started


@pytest.mark.full
@pytest.mark.parametrize("pure", ["", "1"], ids=["compiled", "plain"])
@pytest.mark.parametrize("tier", ["quick", "change"])
def test_the_tests_of_a_tier_fit_into_its_time(tier: str, pure: str) -> None:
    """Collecting a tier fails if its tests take too long, by tests/seconds.json."""
    done = _collected(ROOT, FRESHVIEWS_TESTS=tier, FRESHVIEWS_PURE_PYTHON=pure)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def test_a_tier_runs_fewer_cases_of_a_slow_file_and_fails_if_they_take_too_long(
    run: Callable[..., tuple[dict[str, int], str]], tmp_path: Path
) -> None:
    quarter = SHARE_OF_A_FILE["change"] / 4
    seconds = {tier: {"plain": {}, "compiled": {"tests/test_some.py": quarter}} for tier in ("quick", "change")}
    (tmp_path / "tests" / "seconds.json").write_text(json.dumps(seconds))
    change, _ = run(FRESHVIEWS_TESTS="change")
    assert change == {"grid": 2, "sampled": 1, "full": 1, "compiled": 1, "large": 1, "largest": 1, **SEEDED}
    quick, _ = run(FRESHVIEWS_TESTS="quick")
    assert quick == {"grid": 1}
    seconds["change"]["compiled"] = {"tests/test_some.py": 1000.0}
    (tmp_path / "tests" / "seconds.json").write_text(json.dumps(seconds))
    done = _collected(tmp_path, FRESHVIEWS_TESTS="change")
    assert done.returncode != 0 and "the compiled tests of the change tier take" in done.stderr


def _collected(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("FRESHVIEWS_")}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "tests"],
        cwd=folder,
        env=ours | variables,
        capture_output=True,
        text=True,
        check=False,
    )


def test_each_tier_runs_its_share_of_the_cases(run: Callable[..., tuple[dict[str, int], str]]) -> None:
    seeded = {"of_a_seed": 10, "drawn": 1}
    full, _ = run()
    assert full == {"grid": 15, "sampled": 8, "full": 1, "compiled": 8, "large": 7, "largest": 4, "killed": 1, **seeded}
    change, _ = run(FRESHVIEWS_TESTS="change")
    del full["killed"]
    assert change == full | {"compiled": 1, "large": 3, "largest": 1, "of_a_seed": 1}
    plain, _ = run(FRESHVIEWS_TESTS="change", FRESHVIEWS_PURE_PYTHON="1")
    assert plain == {"plain": 1, "compiled": 8}
    quick, _ = run(FRESHVIEWS_TESTS="quick")
    assert quick == {"grid": 5, "sampled": 2, "compiled": 1, "large": 1, "largest": 1, "of_a_seed": 1, "drawn": 1}
    plain, _ = run(FRESHVIEWS_TESTS="quick", FRESHVIEWS_PURE_PYTHON="1")
    assert plain == {"plain": 1, "compiled": 8}
    plain, _ = run(FRESHVIEWS_PURE_PYTHON="1")
    assert plain == {"plain": 1}


def test_a_failure_found_by_fuzzing_is_stored_and_replayed(run: Callable[..., tuple[dict[str, int], str]]) -> None:
    _, before = run(FRESHVIEWS_TESTS="quick")
    assert "failed" not in before
    counts, found = run(FRESHVIEWS_TESTS="fuzz", FRESHVIEWS_SEED="5", FRESHVIEWS_PURE_PYTHON="1")
    assert counts == {"of_a_seed": 10, "drawn": 1} and "2 failed" in found
    assert found.count("replay it: ") == 2
    counts, after = run(FRESHVIEWS_TESTS="quick")
    assert counts["of_a_seed"] == 2 and "2 failed" in after
