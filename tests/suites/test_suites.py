"""Every query of the suites plans, and agrees with DuckDB over random streams, with and without declared keys."""

from __future__ import annotations

import pytest

from tests.suites import employee, mddb, order_book, simple, tpch, zeus
from tests.suites.suite import Suite, compare, database, strategies

pytestmark = pytest.mark.plain_python(only=True)

SUITES: dict[str, Suite] = {
    module.__name__.rpartition(".")[2]: module.SUITE for module in (tpch, order_book, simple, employee, zeus, mddb)
}
STREAMS = 2
MOST_STREAMS = 12
"""Streams over which a view may be empty before it has rows."""


def _cases(*, running: bool) -> list[object]:
    found = []
    for title, suite in SUITES.items():
        for name in suite.queries:
            marks = [pytest.mark.full] if running and suite.slow else []
            found.append(pytest.param(suite, name, id=f"{title}-{name}", marks=marks))
    return found


@pytest.mark.parametrize(("suite", "name"), _cases(running=False))
def test_a_query_of_the_suites_is_maintained_and_never_recomputed(suite: Suite, name: str) -> None:
    keyed = any(table.key for table in suite.read_by(suite.queries[name]))
    for keys in (True, False) if keyed else (False,):
        with database(suite, name, keys) as found:
            assert not strategies(found) & {"recompute", "trie_join"}


@pytest.mark.sample(23)
@pytest.mark.parametrize("keys", [True, False], ids=["keys", "no keys"])
@pytest.mark.parametrize(("suite", "name"), _cases(running=True))
def test_a_query_of_the_suites_agrees_with_duckdb(suite: Suite, name: str, keys: bool) -> None:
    with_rows, streams = 0, 1 if suite.slow else STREAMS
    for seed in range(MOST_STREAMS):
        if seed < streams or not (with_rows or name in suite.empty):
            with_rows += compare(suite, name, keys, seed)
    assert with_rows or name in suite.empty, f"{name} was empty over all streams"
