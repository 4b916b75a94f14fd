"""Computes the enclosureness of a stream of updates, which bounds the average update time of the strategy ``crown``.

A tuple lives from its insertion to its deletion. For each tuple, find the largest number of disjoint lifespans of
other tuples within its lifespan. The enclosureness is the average of these numbers.

Source: Wang, Hu, Dai, Yi: Change Propagation Without Joins (2023), section 6.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from freshviews.engine.codes.code_batch import Codes
from freshviews.query.acyclic import JoinTree
from freshviews.records import dataclass

FOREVER = np.iinfo(np.int64).max
"""The end of a lifespan that has no deletion."""


@dataclass(frozen=True)
class Spans:
    """Lifespans: per tuple the time of its insertion (-1: before the stream) and of its deletion (or FOREVER)."""

    starts: Codes
    ends: Codes

    def __len__(self) -> int:
        return len(self.starts)


def lifespans(rows: Codes, multiplicities: Codes, times: Codes) -> Spans:
    """Lifespans of the tuples of one relation.

    ``rows``: shape (n, columns); ``multiplicities``: signed; ``times``: ascending. A tuple lives while its multiplicity
    is not zero. A deletion without an insertion shows that the tuple existed before the stream.
    """
    return lives_of(rows, multiplicities, times)[1]


def lives_of(rows: Codes, multiplicities: Codes, times: Codes) -> tuple[Codes, Spans]:
    """Lifespans as in ``lifespans``, and the tuple of each."""
    n = len(rows)
    if n == 0:
        return rows, Spans(np.empty(0, np.int64), np.empty(0, np.int64))
    if rows.shape[1] == 0:
        groups = np.zeros(n, np.int64)
    else:
        groups = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
    order = np.argsort(groups, kind="stable")
    groups, times, m = groups[order], times[order], multiplicities[order]
    first = np.flatnonzero(np.diff(groups, prepend=-1))
    total = np.cumsum(m)
    offset = np.repeat(total[first] - m[first], np.diff(first, append=n))
    after = total - offset
    least = np.minimum(np.minimum.reduceat(after, first), 0)
    after = after - np.repeat(least, np.diff(first, append=n))
    before = after - m
    begins, ends = (before == 0) & (after != 0), (before != 0) & (after == 0)
    # Per tuple, starts and ends alternate; a tuple from before the stream has one end more.
    old = np.flatnonzero(least < 0)
    starts = np.concatenate([times[begins], np.full(len(old), -1, np.int64)])
    of_start = np.concatenate([groups[begins], groups[first][old]])
    by_start = np.lexsort((starts, of_start))
    starts, of_start = starts[by_start], of_start[by_start]
    found = np.full(len(starts), FOREVER, np.int64)
    # The k-th end of a tuple belongs to its k-th start.
    place = np.arange(len(starts)) - np.searchsorted(of_start, of_start)
    of_end, end_times = groups[ends], times[ends]
    at = np.searchsorted(of_end, of_start) + place
    has = at < np.searchsorted(of_end, of_start, side="right")
    found[has] = end_times[at[has]]
    return rows[order][first[of_start]], Spans(starts, found)


def most_disjoint(inside: Spans, starts: Codes, ends: Codes) -> Codes:
    """For each pair of a start and an end, the largest number of disjoint spans of ``inside`` within it (bounds
    included)."""
    if len(inside) == 0:
        return np.zeros(len(starts), np.int64)
    order = np.lexsort((-inside.starts, inside.ends))
    s, e = inside.starts[order], inside.ends[order]
    # A span that contains another is never needed.
    needed = s > np.concatenate([[np.iinfo(np.int64).min], np.maximum.accumulate(s)[:-1]])
    s, e = s[needed], e[needed]
    n = len(s)
    jumps: list[NDArray[np.int64]] = [np.append(np.searchsorted(s, e, side="right"), n)]
    for _ in range(max(n.bit_length() - 1, 0)):
        jumps.append(jumps[-1][jumps[-1]])
    until = np.append(e, FOREVER)
    at = np.searchsorted(s, starts, side="left")
    count = ((at < n) & (until[at] <= ends)).astype(np.int64)
    at = np.where(count > 0, at, n)
    for power in range(len(jumps) - 1, -1, -1):
        further = jumps[power][at]
        goes = (further < n) & (until[further] <= ends)
        at = np.where(goes, further, at)
        count += goes.astype(np.int64) << power
    return count


def of_stream(relations: Mapping[str, Spans]) -> float:
    """The enclosureness of a stream, by atom of the query (Definition 6.1).

    Source: Wang, Hu, Dai, Yi: Change Propagation Without Joins (PVLDB 16(5), 2023), Section 6. A tuple lives from its
    insertion to its deletion. The enclosureness of a tuple is the largest number of disjoint lifespans of other tuples
    within its lifespan. The enclosureness of a stream is the average over its tuples, at least 1 (Definition 6.1).

    Times are positions in the stream. Disjoint spans are chosen greedily, the earliest end first. Jumps over 1, 2, 4,
    ... spans make this O(log n) per tuple. Unlike in the paper, both effective lifespans of a tuple may be counted, so
    the result is one to two times the enclosureness of the paper.
    """
    spans = _all(list(relations.values()))
    if len(spans) == 0:
        return 1.0
    # Strictly within: a tuple does not enclose itself.
    ends = np.where(spans.ends == FOREVER, FOREVER, spans.ends - 1)
    return max(1.0, float(most_disjoint(spans, spans.starts + 1, ends).mean()))


def of_tree(tree: JoinTree, relations: Mapping[str, Spans]) -> float:
    """The enclosureness of a stream for a join tree (Definition 6.4); ``relations`` are by atom.

    In a join tree (Definitions 6.3 and 6.4), a tuple is compared only with *effective* lifespans of tuples in the nodes
    below its node. Each tuple has two effective lifespans. The first goes from its begin to the first deletion in a
    node below, the second from the last insertion in a node below to its end. If the enclosureness for the join tree is
    lambda_T, an update takes O(lambda_T) steps on average.
    """
    total = sum(map(len, relations.values()))
    return max(1.0, sum(by_node(tree, relations).values()) / max(total, 1))


def by_node(tree: JoinTree, relations: Mapping[str, Spans]) -> dict[str, float]:
    """The sum of the enclosureness of its tuples, by atom."""
    found: dict[str, float] = {}

    def walk(node: JoinTree) -> tuple[list[Spans], list[Spans]]:
        """The lifespans of a subtree, and its effective lifespans."""
        below: list[Spans] = []
        effective: list[Spans] = []
        for child in node.children:
            spans, cut = walk(child)
            below += spans
            effective += cut
        if node.name is None:
            return below, effective
        own = relations[node.name]
        found[node.name] = float(most_disjoint(_all(effective), own.starts, own.ends).sum())
        return [*below, own], [*effective, *_effective(own, _all(below))]

    walk(tree)
    return found


def kind_of(relations: Mapping[str, Spans]) -> str:
    """``insert-only``, ``first-in-first-out``, or ``neither``."""
    spans = _all(list(relations.values()))
    if (spans.ends == FOREVER).all():
        return "insert-only"
    order = np.argsort(spans.starts, kind="stable")
    starts, ends = spans.starts[order], spans.ends[order]
    later = starts[1:] > starts[:-1]
    grows = (ends[1:] > ends[:-1]) | ((ends[1:] == FOREVER) & (ends[:-1] == FOREVER))
    return "first-in-first-out" if (grows | ~later).all() else "neither"


def _effective(own: Spans, below: Spans) -> list[Spans]:
    """Definition 6.3."""
    if len(below) == 0:
        return [own]
    deletions = np.append(np.sort(below.ends[below.ends != FOREVER]), FOREVER)
    insertions = np.concatenate([[-1], np.sort(below.starts)])
    first = deletions[np.searchsorted(deletions[:-1], own.starts, side="right")]
    last = insertions[np.searchsorted(insertions[1:], own.ends, side="left")]
    return [Spans(own.starts, np.minimum(own.ends, first)), Spans(np.maximum(own.starts, last), own.ends)]


def _all(parts: list[Spans]) -> Spans:
    empty = np.empty(0, np.int64)
    return Spans(
        np.concatenate([empty, *(p.starts for p in parts)]), np.concatenate([empty, *(p.ends for p in parts)])
    )
