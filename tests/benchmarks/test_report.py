"""Tables, verdicts, pages and charts of the benchmarks show the measured figures."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from benchmarks.measuring.answers import Disagreement, compare_answers, hashed
from benchmarks.reporting.comparison import draw_overview, draw_part, rows_of
from benchmarks.reporting.curves import draw_curves
from benchmarks.reporting.headlines import HEADLINES
from benchmarks.reporting.pages import MARK, fill, parts, write_pages
from benchmarks.reporting.tables import states, table
from benchmarks.reporting.verdicts import ahead
from benchmarks.running import results

ROOT = Path(__file__).parents[2]


def measured(workload: str, case: str, strategy: str, value: float | None, /, **more: Any) -> dict[str, Any]:
    key = "value" if workload in ("pipeline_fixed", "pipeline_graph", "single_rows") else "rows_per_second"
    figures = {} if value is None else {key: value}
    return {"workload": workload, "case": case, "strategy": strategy, "repetition": 0, **figures, **more}


def fixed(much: float) -> str:
    """The line of a case that is compared with another one."""
    cases = [("20 MB of state", 0.4), ("2 GB of state", much)]
    return table([measured("pipeline_fixed", case, "freshviews", value) for case, value in cases]).splitlines()[-1]


def test_a_case_shows_the_ratio_to_its_target() -> None:
    assert "0.50 s: reached; at most 1.2 times that with 20 MB of state: reached, 1.10" in fixed(0.44)
    assert "0.50 s: missed; at most 1.2 times that with 20 MB of state: missed, 1.50" in fixed(0.6)
    alone = table([measured("pipeline_fixed", "2 GB of state", "freshviews", 0.44)])
    assert "that with" not in alone


def test_the_table_shows_when_a_peer_was_cut_off() -> None:
    rows = [
        measured("pipeline_graph", "triangles", "freshviews", 20_000),
        measured("pipeline_graph", "triangles", "Spark, stream joins", 100, note="cut off after 180 s"),
    ]
    line = table(rows).splitlines()[-1]
    assert "0.10 k/s" in line and "cut off after 180 s" in line
    assert "200 times as fast" in line and "100 times: reached" in line


def test_the_table_shows_why_a_strategy_has_no_figure() -> None:
    rows = [
        measured("snb", "posts of friends", "freshviews", 1e6),
        measured("snb", "posts of friends", "Flink", None, missing="not installed"),
        measured("snb", "posts of friends", "Pathway", None, cut="out of memory, with 8.1 GiB, in the first batch"),
        measured("tpch", "q13", "freshviews", None, refused="LEFT JOIN is not supported"),
    ]
    text = table(rows)
    for words in ("missing: not installed", "out of memory, with 8.1 GiB", "refused: LEFT JOIN is not supported"):
        assert words in text
    assert "tpch, q13: `LEFT JOIN is not supported`" in ahead(rows)


def test_faster_peers_are_listed_before_faster_strategies() -> None:
    rows = [
        measured("orderbook", "axf", "freshviews", 100.0),
        measured("orderbook", "axf", "DuckDB", 300.0),
        measured("orderbook", "bsv", "freshviews", 300.0),
        measured("orderbook", "bsv", "DuckDB", 100.0),
        measured("orderbook", "bsp", "freshviews", 100.0),
        measured("orderbook", "bsp", "first_order", 150.0),
        measured("single_rows", "trusted tables", "freshviews", 2.0),
        measured("single_rows", "trusted tables", "DuckDB", 1.0),
    ]
    rows += [
        measured("orderbook", "vwap", "freshviews", None, refused="a scalar subquery is not supported"),
        measured("orderbook", "vwap", "DuckDB", 2_000.0),
    ]
    peers, rest = ahead(rows).split("Strategies of freshviews")
    own, alone = rest.split("Peers with a figure")
    assert "vwap: DuckDB, 2.00 k/s" in alone
    assert "axf: DuckDB, 3.00 times as fast" in peers and "bsv" not in peers
    assert "single rows, trusted tables: DuckDB, 2.00 times as fast" in peers
    assert "bsp: first_order, 1.50 times as fast" in own
    assert "**behind**: 3.00 times as slow" in table(rows)


def test_a_difference_within_the_spread_counts_as_equally_fast() -> None:
    ours = [measured("orderbook", "axf", "freshviews", value) for value in (80.0, 100.0, 120.0)]
    theirs = measured("orderbook", "axf", "DuckDB", 115.0)
    assert "- none" in ahead([*ours, theirs])
    assert "| as fast |" in table([*ours, theirs])


def test_memory_is_shown_beside_the_space_bound() -> None:
    more = {"rows": 10, "state_rows": 4, "state_bytes": 400, "space": "O(N + |result|)", "ready_seconds": 0.5}
    line = states([measured("snb", "posts of friends", "view_tree", 1.0, **more)]).splitlines()[-1]
    assert "| 10 | 4 | 400 | 100 | O(N + \\|result\\|) | 0.50 s |" in line
    assert states([measured("snb", "posts of friends", "DuckDB", 1.0)]) == ""


def test_different_answers_of_two_systems_after_one_step_are_reported() -> None:
    one = measured("pipeline_graph", "triangles", "freshviews", 1, answers={"0": [["1"]], "1": [["2"]]})
    same = measured("pipeline_graph", "triangles", "Spark, stream joins", 1, answers={"1": [["2"]]})
    other = measured("pipeline_graph", "triangles", "Spark, stream joins", 1, answers={"1": [["3"]]})
    compare_answers(one, same)
    with pytest.raises(Disagreement, match="after step 1"):
        compare_answers(one, other)


def test_a_hash_depends_on_rows_and_not_on_their_order() -> None:
    import numpy as np

    a, b = np.arange(100), np.arange(100) * 7
    order = np.random.default_rng(1).permutation(100)
    assert hashed([a, b]) == hashed([a[order], b[order]])
    assert hashed([a, b]) != hashed([b, a])
    assert hashed([a, b]) != hashed([a, b[order]])
    assert hashed([a, b]) != hashed([a[:99], b[:99]])


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """README.md and docs/ in a folder of their own."""
    shutil.copy(ROOT / "README.md", tmp_path)
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    return tmp_path


def test_committed_pages_equal_the_pages_generated_from_the_results(copied: Path) -> None:
    for written in write_pages(copied):
        committed = ROOT / written.relative_to(copied)
        assert written.read_text() == committed.read_text(), f"{committed.name}: run python -m benchmarks page"


def test_committed_charts_equal_the_charts_drawn_from_the_results(copied: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib", reason="pictures need the extra bench")
    committed = sorted((ROOT / "docs" / "plots").iterdir())
    if f"Matplotlib v{matplotlib.__version__}," not in committed[0].read_text():
        pytest.skip("another version of matplotlib drew them")
    shutil.rmtree(copied / "docs" / "plots")
    write_pages(copied)
    drawn = sorted((copied / "docs" / "plots").iterdir())
    assert [file.name for file in drawn] == [file.name for file in committed]
    for file, other in zip(drawn, committed, strict=True):
        assert file.read_text() == other.read_text(), f"{file.name}: run python -m benchmarks page"


def test_every_chart_is_on_a_page() -> None:
    texts = "".join(page.read_text() for page in (ROOT / "docs").rglob("*.md"))
    for file in (ROOT / "docs" / "plots").iterdir():
        assert f"plots/{file.name})" in texts, file.name


def test_headlines_compare_freshviews_with_every_kind_of_peer() -> None:
    assert {peer for _, _, peer, _ in HEADLINES} >= {"differential dataflow", "DBSP", "C++", "DuckDB", "Flink"}


def test_the_report_shows_the_newest_results_of_each_benchmark_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "FOLDER", tmp_path)

    def write(name: str, date: str, *groups: str) -> None:
        measured = [{"group": group, "workload": "star", "case": "shuffled", "strategy": "DuckDB"} for group in groups]
        (tmp_path / f"{date}{name}.json").write_text(json.dumps({"machine": {"date": date}, "measured": measured}))

    def dates() -> dict[str, str]:
        return {group: machine["date"] for group, (machine, _) in parts().items()}

    write("", "2026-02-01", "tables", "engine")
    write("-tables", "2026-01-31", "tables")
    assert dates() == {"tables": "2026-02-01", "engine": "2026-02-01"}
    write("-tables", "2026-02-02", "tables")
    assert dates() == {"tables": "2026-02-02", "engine": "2026-02-01"}
    write("", "2026-02-03", "engine")
    assert dates() == {"tables": "2026-02-02", "engine": "2026-02-03"}


def test_generated_text_is_put_between_the_marks_of_its_part(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("\n".join(MARK.format(part, word) for part in "ab" for word in ("begin", "end")))
    for part in "ab":
        fill(page, part, f"the figures of {part}")
    for part in "ab":
        begin, end = (MARK.format(part, word) for word in ("begin", "end"))
        assert page.read_text().split(begin)[1].split(end)[0].strip() == f"the figures of {part}"
    with pytest.raises(ValueError):
        fill(page, "c", "")


def test_a_chart_begins_with_the_worst_case_of_freshviews() -> None:
    rows = [
        measured("orderbook", "axf", "freshviews", 300.0),
        measured("orderbook", "axf", "DuckDB", 100.0),
        measured("orderbook", "bsv", "freshviews", 100.0),
        measured("orderbook", "bsv", "DuckDB", 400.0),
        measured("orderbook", "bsv", "first_order", 50.0),
        measured("orderbook", "bsp", "freshviews", 100.0),
        measured("orderbook", "bsp", "first_order", 50.0),
    ]
    worst, best = rows_of(rows)
    assert worst == ("order book, bsv", [("DuckDB", 0.25)]) and best == ("order book, axf", [("DuckDB", 3.0)])
    assert len(rows_of(rows, own=True)) == 3


def test_the_same_figures_give_the_same_charts(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pictures need the extra bench")

    def drawn() -> list[bytes]:
        found = parts()
        assert draw_part(found["engine"][1], tmp_path / "engine.svg")
        draw_overview({"graph": found["graph"][1]}, tmp_path / "overview.svg")
        curves = [file for group in ("batches", "windows") for file, _ in draw_curves(group, found[group][1], tmp_path)]
        assert len(curves) == 3
        return [file.read_bytes() for file in sorted(tmp_path.iterdir())]

    assert drawn() == drawn()


def test_a_case_without_a_peer_has_no_chart(tmp_path: Path) -> None:
    assert not draw_part([measured("snb", "posts of friends", "freshviews", 1.0)], tmp_path / "none.svg")
