"""Random texts, valid or not, raise only errors of freshviews; ``make mutants`` runs more of them."""

from __future__ import annotations

from collections import Counter

import pytest

from freshviews import Database
from tests.agreement.mutants import run_number

pytestmark = pytest.mark.plain_python(only=True)

_TEXTS = 10


@pytest.mark.seeds(400)
def test_a_random_text_raises_only_errors_of_freshviews(seed: int) -> None:
    outcomes: Counter[str] = Counter()
    for number in range(seed * _TEXTS, (seed + 1) * _TEXTS):
        found = run_number(number, outcomes)
        if found is not None:
            made, error = found
            again = f"python -m tests.agreement.mutants --first {number} --seconds 0.001"
            raise AssertionError(f"{again}\n{made}") from error


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        (
            "SELECT 'x' AS c, MAX('y') OVER (PARTITION BY 'x') AS m FROM (VALUES (1), (2)) AS w (k) GROUP BY 'x'",
            [("x", "y")],
        ),
        (
            "SELECT COFACTOR(x) AS m, a, b FROM r GROUP BY ROLLUP (a, b) ORDER BY b NULLS LAST, a NULLS LAST",
            [
                (1, 2.0, 4.0, 2, 3),
                (1, 1.0, 1.0, 1, 4),
                (1, 1.0, 1.0, 1, None),
                (1, 2.0, 4.0, 2, None),
                (2, 3.0, 5.0, None, None),
            ],
        ),
    ],
)
def test_queries_of_fixed_bugs_return_their_rows(query: str, rows: list[tuple[object, ...]]) -> None:
    with Database() as database:
        database.execute(f"CREATE TABLE r (a INT, b INT, x DOUBLE NOT NULL); CREATE MATERIALIZED VIEW v AS {query}")
        database.insert("r", [(1, 4, 1.0), (2, 3, 2.0)])
        assert list(database.view("v")) == rows
