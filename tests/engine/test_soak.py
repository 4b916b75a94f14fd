"""The short form of ``make soak``: strings of rows that have left a window are freed."""

from __future__ import annotations

from tests.soak import moved


def test_memory_is_flat_while_a_window_moves() -> None:
    seen = list(moved(rows=120_000, live=10_000, batch=1000))
    half = seen[len(seen) // 2 :]
    assert max(held.codes for held in half) <= 2 * 10_000
    assert max(held.heap for held in half) <= 20_000 * 70
    assert max(held.process for held in half) - half[0].process < 8 << 20


def test_strings_of_large_batches_are_freed_as_fast_as_they_are_added() -> None:
    """A step after a commit of 100,000 rows was once so short that strings were added faster than freed."""
    held = list(moved(rows=1_500_000, live=100_000, batch=100_000))[-1]
    assert held.codes <= 5 * 100_000
