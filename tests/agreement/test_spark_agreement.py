"""Random queries have the answers of Spark that ``make spark-agreement`` has recorded."""

from __future__ import annotations

import pytest

from tests.agreement.choices import seeded
from tests.agreement.spark_agreement import ERROR, REFUSED, Answer, Asked, here, queries, recorded, verdict

pytestmark = [pytest.mark.plain_python, pytest.mark.compiled(0)]


@pytest.mark.parametrize(("asked", "answer"), recorded(), ids=lambda one: getattr(one, "construct", ""))
def test_a_random_query_gives_the_answer_recorded_from_spark(asked: Asked, answer: Answer) -> None:
    ours = here(asked)
    assert verdict(ours, answer) == "equal", f"{asked}\nhere:  {ours}\nSpark: {answer}"


def test_the_same_seed_makes_the_same_queries() -> None:
    made = [[str(one) for one in queries(seeded(seed))] for seed in (3, 4, 3)]
    assert made[0] == made[2] != made[1]


@pytest.mark.parametrize(
    ("ours", "spark", "found"),
    [
        ([(1,), (None,)], [(None,), (1,)], "equal"),
        ([(1.0,)], [(1.0 + 1e-14,)], "equal"),
        ([(1,)], [(1.0,)], "different"),
        ([(1,)], [(1,), (1,)], "different"),
        ([(1,)], ERROR, "different"),
        (ERROR, [(1,)], "different"),
        (ERROR, ERROR, "equal"),
        (REFUSED, [(1,)], "refused"),
        ([(1,)], REFUSED, "only here"),
    ],
)
def test_answers_are_compared_as_bags_with_types_and_errors(ours: Answer, spark: Answer, found: str) -> None:
    assert verdict((ours, ""), spark) == found
