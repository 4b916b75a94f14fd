"""Agreement of databases that run independent views, or lanes of one view, in threads, with kernels and generated code
as plain Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest

from freshviews.engine.blocks import lanes
from freshviews.engine.commit import threads
from freshviews.errors import UnsupportedSql
from tests.agreement.agreement import check
from tests.agreement.choices import seeded
from tests.agreement.sql_places import places_scenario, range_scenario
from tests.agreement.sql_queries import scenario
from tests.agreement.sql_sets import set_scenario
from tests.agreement.sql_top import top_scenario
from tests.agreement.sql_windows import windows_scenario
from tests.agreement.states import Totals, run_number
from tests.agreement.views_of_script import definitions_of
from tests.in_threads import in_threads

pytestmark = pytest.mark.plain_python(only=True)

_GENERATORS = (scenario, places_scenario, scenario, set_scenario, scenario, top_scenario, scenario, range_scenario)


@pytest.fixture(autouse=True, params=["views", "lanes"])
def threads_at_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with in_threads(monkeypatch, 3, views=request.param == "views"):
        yield


@pytest.mark.seeds(40)
def test_random_views_in_threads_agree_with_the_oracle(seed: int) -> None:
    found = _GENERATORS[seed % len(_GENERATORS)](seeded(seed))
    try:
        definitions_of(found)
    except UnsupportedSql:
        return
    check(found, (None,), database="durable" if seed % 5 == 4 else "live")


@pytest.mark.parametrize("threads_at_once", ["views"], indirect=True)
def test_random_scenarios_run_views_in_parallel(monkeypatch: pytest.MonkeyPatch) -> None:
    run, sizes = threads.Threads._run, []

    def noted(self: threads.Threads, runs: list[object], applied: object) -> None:
        sizes.append(len(runs))
        run(self, runs, applied)  # type: ignore[arg-type]

    monkeypatch.setattr(threads.Threads, "_run", noted)
    for seed in (7, 12, 20, 22):
        check(scenario(seeded(seed)), (None,), database="live")
    assert max(sizes) > 1


@pytest.mark.parametrize("threads_at_once", ["lanes"], indirect=True)
def test_random_scenarios_run_lanes_in_parallel(monkeypatch: pytest.MonkeyPatch) -> None:
    run_together, sizes = lanes.run_together, []

    def noted(jobs: Sequence[Callable[[], None]], count: int) -> None:
        sizes.append(len(jobs))
        run_together(jobs, count)

    monkeypatch.setattr(lanes, "run_together", noted)
    for seed in (7, 12, 20, 22):
        check(scenario(seeded(seed)), (None,), database="live")
    assert max(sizes) > 2 and len(sizes) > 20


@pytest.mark.seeds(20)
def test_window_functions_in_threads_agree_with_duckdb(seed: int) -> None:
    shown: list[str] = []
    assert not run_number(3, seed, Totals(), shown.append, (windows_scenario,)), "\n".join(shown)
