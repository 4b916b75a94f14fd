"""LIKE finds its segments from left to right and never goes back."""

from __future__ import annotations

import random

import pytest

from freshviews.expr.strings import ilike, like


def by_definition(text: str, pattern: str) -> bool:
    """LIKE over a pattern whose escape is ``!``, by its recursive definition."""
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(by_definition(text[i:], pattern[1:]) for i in range(len(text) + 1))
    if pattern[0] == "!":
        return text[:1] == pattern[1] and by_definition(text[1:], pattern[2:])
    return bool(text) and pattern[0] in ("_", text[0]) and by_definition(text[1:], pattern[1:])


PARTS = ("a", "b", "%", "%", "_", "_", "\n", ".", "!%", "!_", "!!")


@pytest.mark.seeds(20)
def test_the_like_operator_agrees_with_its_recursive_definition(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(1000):
        text = "".join(chance.choices("ab\n%_.!", k=chance.randrange(8)))
        pattern = "".join(chance.choices(PARTS, k=chance.randrange(7)))
        assert like(text, pattern, "!") == by_definition(text, pattern), (text, pattern)
        assert ilike(text.upper(), pattern, "!") == like(text, pattern, "!")


MANY = ("%a" * 40 + "%b", "%a_" * 40 + "%b", "%" * 50 + "b", "a%" * 40 + "_b", "%_a_%" * 20 + "b_")


@pytest.mark.parametrize("pattern", MANY)
def test_many_wildcards_do_not_slow_down_like(pattern: str) -> None:
    """A search that goes back takes a minute for 8 wildcards and 61 characters."""
    assert not like("a" * 20_000, pattern)
    assert like("a" * 20_000 + "bb", pattern + "%")
