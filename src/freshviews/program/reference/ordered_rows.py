"""Interprets the statements over ordered rows: Scan, Top and Cross."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from typing import Any

from freshviews.program.reference.scalars import rank
from freshviews.program.views import Order, View
from freshviews.types import NULL
from freshviews.types.dictionary import Dictionary

Key = tuple[int, ...]


def in_order(rows: Iterable[Key], orders: tuple[Order, ...], dictionary: Dictionary | None) -> list[Key]:
    """Keys, sorted by their last words: ``orders`` has the order of each of these words."""
    found = list(rows)
    for i in range(-1, -1 - len(orders), -1):
        order = orders[i]

        def place(key: Key, i: int = i, order: Order = order) -> Any:
            return (0,) if key[i] == NULL else rank(key[i], order.type, dictionary)

        found.sort(key=place, reverse=order.descending)
        found.sort(key=lambda key, i=i, last=order.nulls_last: (key[i] == NULL) == last)  # type: ignore[misc]
    return found


def is_between(
    code: int,
    low: tuple[int, bool] | None,
    high: tuple[int, bool] | None,
    order: Order,
    dictionary: Dictionary | None,
) -> bool:
    """True if a value lies in a range. A bound is a code, and whether it is excluded. NULL is in no range."""
    if NULL in (code, low and low[0], high and high[0]):
        return False
    value = rank(code, order.type, dictionary)
    for bound, sign in ((low, 1), (high, -1)):
        if bound is not None:
            other = rank(bound[0], order.type, dictionary)
            if (value == other and bound[1]) or (value < other if sign > 0 else value > other):
                return False
    return True


def scanned(kind: str, rows: Iterable[Key], orders: tuple[Order, ...], dictionary: Dictionary | None) -> int:
    """The value of a Scan over the rows; 0 if there are none."""
    found = in_order(rows, orders, dictionary)
    if not found:
        return 0
    if kind in ("bit_and", "bit_or"):
        return reduce(operator.and_ if kind == "bit_and" else operator.or_, (row[-1] for row in found))
    return found[0 if kind in ("min", "min_by") else -1][-1]


def window(
    rows: Mapping[Key, int], orders: tuple[Order, ...], first: int, last: int, dictionary: Dictionary | None
) -> Iterator[tuple[Key, int]]:
    """The rows at the positions ``first`` to ``last``, with the number of copies of each there. ``rows`` has all
    counts."""
    place = 0
    for key in in_order(rows, orders, dictionary):
        copies = max(rows[key], 0)
        inside = min(place + copies, last) - max(place, first)
        if inside > 0:
            yield key, inside
        place += copies


def values(view: View, rows: Mapping[Key, tuple[int, ...]], dictionary: Dictionary | None) -> Iterator[
    tuple[Key, int | None]
]:
    """The rows of one group of a running view, in order, with their values; None is NULL."""
    assert view.running is not None
    kind = view.running.value
    total = known = 0
    for key in in_order(rows, view.ordered, dictionary):
        _, weight, number, _ = rows[key]
        before = None if view.running.nullable and known <= 0 else total
        total, known = total + weight, known + number
        through = None if view.running.nullable and known <= 0 else total
        yield key, {"before": before, "through": through, "itself": key[-1], "negated": -key[-1]}[kind]
