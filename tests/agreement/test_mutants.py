"""Texts at random, valid or not, raise nothing but errors of freshviews; ``make mutants`` runs more of them."""

from __future__ import annotations

from collections import Counter

import pytest

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
