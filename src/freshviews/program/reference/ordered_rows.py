"""Interprets the statements over ordered rows: Scan, Top and Cross."""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from typing import Any

from freshviews.program.reference.scalars import NAN, rank
from freshviews.program.views import Order, View
from freshviews.query.block import DISCRETE, MODES, Percentile, percentile_of
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


def compare(a: Key, b: Key, orders: tuple[Order, ...], dictionary: Dictionary | None) -> int:
    """-1, 0 or 1: place ``a`` comes before place ``b``, is equal to it, or comes after it."""
    if a == b:
        return 0
    return -1 if in_order((b, a), orders, dictionary)[0] == a else 1


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


def scanned(kind: str, rows: Mapping[Key, int], orders: tuple[Order, ...], dictionary: Dictionary | None) -> int:
    """The value of a Scan over the rows, of which a percentile and a mode read the counts; 0 if there are none."""
    found = in_order(rows, orders, dictionary)
    percentile = percentile_of(kind)
    if percentile is not None:
        return _place(percentile, [row[-1] for row in found for _ in range(max(rows[row], 0))])
    if not found:
        return 0
    if kind in MODES:
        found = found[::-1] if kind == MODES[1] else found
        return max(found, key=lambda row: max(rows[row], 0))[-1]
    if kind in ("bit_and", "bit_or"):
        return reduce(operator.and_ if kind == "bit_and" else operator.or_, (row[-1] for row in found))
    return found[0 if kind in ("min", "min_by") else -1][-1]


def _place(percentile: Percentile, codes: list[int]) -> int:
    """The percentile of codes in order; 0 if there are none."""
    if not codes:
        return 0
    codes = codes[::-1] if percentile.descending else codes
    if percentile.function == DISCRETE:
        return codes[max(math.ceil(percentile.fraction * len(codes)) - 1, 0)]
    position = percentile.fraction * (len(codes) - 1)
    low, high = codes[math.floor(position)], codes[math.ceil(position)]
    if low == high:
        return low
    x, y = struct.unpack("<2d", struct.pack("<2q", low, high))
    found = (math.ceil(position) - position) * x + (position - math.floor(position)) * y
    return NAN if math.isnan(found) else int(*struct.unpack("<q", struct.pack("<d", found or 0.0)))


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
