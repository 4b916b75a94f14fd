"""Set-up of all tests: golden files, small cells, tiers, and seeds.

The tier (tests/tiers.py) and the marks of tests (pyproject.toml) decide here which tests run:

- Without FRESHVIEWS_PURE_PYTHON=1 all tests run that need compiled code or work either way. With it, tests with the
  mark ``plain_python`` run, as a job of their own; ``python -m tests`` runs both jobs.
- The quick tier leaves out ``full`` tests and most cases of tests with ``sample`` or ``diagonal``; the change tier
    leaves out most cases of tests with ``large``. Both leave out tests with ``kills``. Of a file with the mark
    ``compiled(n)`` they run the quick tier's part as plain Python, and few tests with compiled code, too.
- Hypothesis draws the same examples in every run, except in the fuzz tier, whose failures are stored (tests/found.py).
"""

from __future__ import annotations

import json
import math
import os
import signal
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings
from hypothesis.internal.conjecture import providers

from tests.found import Found, cases_of
from tests.tiers import (
    BUDGET,
    CHANGE,
    FUZZ,
    LONG,
    QUICK,
    QUICK_JAVA,
    SECONDS,
    SEED,
    SHARE_OF_A_FILE,
    SLOWEST,
    TIER,
    USUAL,
    compiled,
    examples,
    seeds,
)

# Many images, as cells of tests are small. Set before anything reads it; Spark's workers inherit it from its Java.
os.environ.setdefault("FRESHVIEWS_SMALLEST_IMAGE", "20000")

# Tests run compiled code from the start; those of the other way start processes of their own.
os.environ.setdefault("FRESHVIEWS_COMPILE", "ahead")

# Of Spark's driver, of the program that builds its command line, and of masters and workers.
for variable in ("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS", "SPARK_DAEMON_JAVA_OPTS"):
    os.environ.setdefault(variable, QUICK_JAVA)

# A shell that runs tests in the background may ignore Ctrl-C, and all their processes would ignore it, too.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

GOLDEN = Path(__file__).parent / "golden"
PLAIN_PYTHON = os.environ.get("FRESHVIEWS_PURE_PYTHON") == "1"
JOB = "plain" if PLAIN_PYTHON else "compiled"

# Hypothesis also draws constants from all modules of the source tree, generated ones included. Which modules these are
# depends on earlier tests, and reading them takes a quarter of a minute in each process.
providers._get_local_constants = lambda: providers._local_constants

settings.register_profile("fixed", derandomize=True, print_blob=False, deadline=None)
settings.register_profile("fuzz", database=None, print_blob=False, deadline=None)
settings.load_profile("fuzz" if FUZZ else "fixed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--regenerate", action="store_true", help="write golden files instead of comparing")
    parser.addoption("--measure", action="store_true", help="write the seconds per test of each file that ran")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """``golden(name, text)``: compares the text with the golden file of this name."""

    def check(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--regenerate"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert path.exists(), f"{path} is missing; make it with pytest --regenerate"
        assert text == path.read_text(), f"{path} differs; if that is meant, pytest --regenerate"

    return check


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """``seeds(n)`` gives a test its argument ``seed``: the seeds of the tier, and those of stored cases."""
    mark = metafunc.definition.get_closest_marker("seeds")
    if mark is not None:
        known = [case.seed for case in cases_of(metafunc.definition.nodeid)]
        metafunc.parametrize("seed", list(dict.fromkeys([*known, *seeds(mark.args[0])])))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    kept = [item for item in items if _belongs(item)]
    if QUICK or CHANGE:
        kept = _few(kept)
        kept = _within_the_budget(kept)
    # One worker of xdist has the first half of the list: all tests of the one Spark session.
    kept.sort(key=lambda item: "spark" not in getattr(item, "fixturenames", ()))
    chosen = set(kept)
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = kept


def _belongs(item: pytest.Item) -> bool:
    """True if the test belongs to this tier and this job."""
    if FUZZ:
        return _is_random(item)
    mark = item.get_closest_marker("plain_python")
    if PLAIN_PYTHON:
        return mark is not None or ((QUICK or CHANGE) and item.get_closest_marker("compiled") is not None)
    return mark is None or not mark.kwargs.get("only", False)


def _is_random(item: pytest.Item) -> bool:
    return item.get_closest_marker("seeds") is not None or is_hypothesis_test(getattr(item, "obj", None))


def _few(items: list[pytest.Item]) -> list[pytest.Item]:
    """The tests that the quick tier or the change tier runs; tests with stored cases always run."""
    files: Counter[Path] = Counter()
    kept: list[pytest.Item] = []
    for cases in _grouped(items, "[").values():
        if cases[0].get_closest_marker("kills") is not None:
            continue
        mark = cases[0].get_closest_marker("compiled")
        # Plain Python is slow for tests that are meant to be compiled.
        quick = QUICK or (PLAIN_PYTHON and mark is not None)
        for item in _sampled(cases, quick):
            if not quick or item.get_closest_marker("full") is None or any(cases_of(item.nodeid)):
                share = 1 if PLAIN_PYTHON or mark is None else compiled(mark.args[0])
                if share and files[item.path] % share == 0:
                    kept.append(item)
                files[item.path] += 1
    return kept


def _within_the_budget(items: list[pytest.Item]) -> list[pytest.Item]:
    """Of each file as many tests as its share of the time allows, from all over the file, and those with stored cases.
    UsageError if all take too long."""
    kept: list[pytest.Item] = []
    total = 0.0
    for file, own in _grouped(items, "::").items():
        each = SECONDS[TIER][JOB].get(file, USUAL)
        if QUICK and each > SLOWEST:
            continue
        step = math.ceil(len(own) / max(1, int(SHARE_OF_A_FILE[TIER] / each)))
        groups = [own] if QUICK else _grouped(own, "[").values()
        few = {item for group in groups for item in group[::step]}
        few |= {item for item in own if any(cases_of(item.nodeid))}
        kept += [item for item in own if item in few]
        total += each * len(few)
    most = BUDGET[TIER][JOB]
    if total > 2 * most:
        raise pytest.UsageError(
            f"the {JOB} tests of the {TIER} tier take {total / 2:.0f} s in each of two processes, of {most:.0f} s: "
            "mark slow tests with full, or lower SHARE_OF_A_FILE in tests/tiers.py"
        )
    return kept


def _grouped(items: list[pytest.Item], end: str) -> dict[str, list[pytest.Item]]:
    """Tests by the part of their names before ``end``."""
    groups: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        groups[item.nodeid.partition(end)[0]].append(item)
    return groups


def _sampled(cases: list[pytest.Item], quick: bool) -> list[pytest.Item]:
    """The sampled cases of one test, by its marks ``sample(n)``, ``large(n)`` and ``diagonal``; all without a mark."""
    if not quick:
        mark = cases[0].get_closest_marker("large")
        # The cases of the quick tier, and every n-th of the others.
        rest = [case for case in cases if case.get_closest_marker("full") is not None]
        if mark is None:
            return cases
        every = mark.args[0]
        return [case for case in cases if case not in rest] + (rest[::every] if every else [])
    if cases[0].get_closest_marker("diagonal") is not None:
        return _diagonal(cases)
    mark = cases[0].get_closest_marker("sample")
    return cases if mark is None else cases[:: mark.args[0]]


def _diagonal(cases: list[pytest.Item]) -> list[pytest.Item]:
    """Few cases in which each value of each parameter occurs at least once."""
    values = {case: [(name, repr(value)) for name, value in _parameters(case).items()] for case in cases}
    used: Counter[tuple[str, str]] = Counter()
    kept: set[pytest.Item] = set()
    wanted = {value for several in values.values() for value in several}
    while wanted - used.keys():
        # The case with the most new values, and of these the one whose other values are used least.
        best = min(cases, key=lambda c: (-sum(v not in used for v in values[c]), sum(used[v] for v in values[c])))
        kept.add(best)
        used.update(values[best])
    return [case for case in cases if case in kept]


def _parameters(case: pytest.Item) -> dict[str, Any]:
    return case.callspec.params if hasattr(case, "callspec") else {}


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[None]:
    """A Hypothesis test draws as many examples as its tier sets, after the stored cases."""
    test = pyfuncitem.obj
    if not is_hypothesis_test(test):
        return (yield)
    full = test._hypothesis_internal_use_settings
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    try:
        for case in cases_of(pyfuncitem.nodeid):
            _draw(test, settings(full, max_examples=case.examples, derandomize=False, database=None), case.seed)
            test(**arguments)
        drawn = examples(full.max_examples)
        _draw(test, settings(full, max_examples=drawn, suppress_health_check=list(HealthCheck)), SEED if FUZZ else None)
        return (yield)
    finally:
        _draw(test, full, None)


def _draw(test: Any, how: settings, seed: int | None) -> None:
    test._hypothesis_internal_use_settings = how
    test._hypothesis_internal_use_seed = seed


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[pytest.TestReport]:
    """In the fuzz tier a failure is stored, and the report says where, and how to replay it."""
    report: pytest.TestReport = yield
    if FUZZ and report.when == "call" and report.failed and _is_random(item):
        by_seed = item.get_closest_marker("seeds") is not None
        test = item.nodeid.partition("[")[0] if by_seed else item.nodeid
        seed = item.callspec.params["seed"] if by_seed else SEED  # type: ignore[attr-defined]
        drawn = 1 if by_seed else examples(item.obj._hypothesis_internal_use_settings.max_examples)  # type: ignore[attr-defined]
        path = Found(test, seed, drawn, report.longreprtext[-20_000:]).store()
        report.sections.append(
            ("stored case", f"{path}\nreplay it: FRESHVIEWS_PURE_PYTHON=1 .venv/bin/python -m pytest '{item.nodeid}'")
        )
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Reports tests that took long without a reason, where the time went, and whether the previous job failed."""
    reports = [one for several in terminalreporter.stats.values() for one in several if hasattr(one, "duration")]
    if terminalreporter.config.getoption("--measure"):
        _write_seconds(reports)
    slow = [one for one in reports if one.duration > LONG and "long" not in one.keywords]
    if slow:
        terminalreporter.section(f"more than {LONG} s without a reason: @pytest.mark.long(reason) gives one")
        for one in slow:
            terminalreporter.line(f"{one.duration:.0f} s  {one.nodeid}")
    if CHANGE:
        folders: Counter[str] = Counter()
        for one in reports:
            folders[one.nodeid.partition("::")[0].split("/")[1]] += one.duration
        terminalreporter.section("seconds")
        terminalreporter.line(f"before: {os.environ.get('FRESHVIEWS_PARTS', '')}")
        spent = ", ".join(f"{name} {seconds:.0f}" for name, seconds in folders.most_common())
        terminalreporter.line(f"of all processes, by folder: {spent}")
    if os.environ.get("FRESHVIEWS_FAILED_BEFORE"):
        terminalreporter.section("the tests in plain Python FAILED, see above", red=True)


def _write_seconds(reports: list[Any]) -> None:
    """Write the average seconds of the tests of each file, where they are more than usual."""
    total: Counter[str] = Counter()
    tests: dict[str, set[str]] = defaultdict(set)
    for one in reports:
        file = one.nodeid.partition("::")[0]
        total[file] += one.duration
        tests[file].add(one.nodeid)
    known = SECONDS[TIER][JOB] | {file: round(seconds / len(tests[file]), 2) for file, seconds in total.items()}
    SECONDS[TIER][JOB] = {file: each for file, each in sorted(known.items()) if each > USUAL}
    (Path(__file__).parent / "seconds.json").write_text(json.dumps(SECONDS, indent=1) + "\n")
