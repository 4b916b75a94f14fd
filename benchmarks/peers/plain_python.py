"""Plain Python: a hand-written program for each pattern of a graph, with adjacency sets and degree maps.

Those for an order book are in ``plain_order_book``.

A class per pattern; ``change(a, b, sign)`` inserts or deletes the edge, ``count`` is the answer. A count is maintained
by changing one occurrence of the edge after the other, so an edge may occur several times in one match. There are no
loops.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from benchmarks.measuring.answers import answer, hashed
from benchmarks.measuring.course import Course
from benchmarks.measuring.stream import Stream
from benchmarks.peers import plain_order_book


class Graph:
    """Adjacency sets of both directions, and the count."""

    def __init__(self) -> None:
        self.after: defaultdict[int, set[int]] = defaultdict(set)
        self.before: defaultdict[int, set[int]] = defaultdict(set)
        self.count = 0

    def link(self, a: int, b: int, sign: int) -> None:
        if sign > 0:
            self.after[a].add(b)
            self.before[b].add(a)
        else:
            self.after[a].remove(b)
            self.before[b].remove(a)


class TwoHop(Graph):
    """The sum over nodes of edges in times edges out; only degrees are needed."""

    def __init__(self) -> None:
        super().__init__()
        self.into: defaultdict[int, int] = defaultdict(int)
        self.out: defaultdict[int, int] = defaultdict(int)

    def change(self, a: int, b: int, sign: int) -> None:
        self.count += sign * self.into[a]
        self.out[a] += sign
        self.count += sign * self.out[b]
        self.into[b] += sign


class ThreeHop(Graph):
    """The sum over edges (a, b) of edges into a times edges out of b."""

    def change(self, a: int, b: int, sign: int) -> None:
        after, before = self.after, self.before
        if sign < 0:
            self.link(a, b, sign)
        self.count += sign * sum(len(before[u]) for u in before[a])
        # If a comes after b, the new edge is one more out of it.
        self.count += sign * sum(len(after[w]) + (w == a) for w in after[b])
        self.count += sign * len(before[a]) * len(after[b])
        if sign > 0:
            self.link(a, b, sign)


class FourHop(Graph):
    """The sum over nodes of paths of two edges into it times those out of it."""

    def __init__(self) -> None:
        super().__init__()
        self.into: defaultdict[int, int] = defaultdict(int)
        self.out: defaultdict[int, int] = defaultdict(int)
        self.into2: defaultdict[int, int] = defaultdict(int)
        self.out2: defaultdict[int, int] = defaultdict(int)

    def change(self, a: int, b: int, sign: int) -> None:
        if sign < 0:
            self.link(a, b, sign)
        into2, out2 = self.into2, self.out2
        found = 0
        for u in self.before[a]:
            out2[u] += sign
            found += into2[u]
        for w in self.after[b]:
            into2[w] += sign
            found += out2[w]
        self.out[a] += sign
        self.into[b] += sign
        out2[a] += sign * self.out[b]
        found += into2[a] * self.out[b]
        into2[b] += sign * self.into[a]
        found += out2[b] * self.into[a]
        self.count += sign * found
        if sign > 0:
            self.link(a, b, sign)


class Star(Graph):
    """The sum over nodes of the third power of the number of outgoing edges."""

    def __init__(self) -> None:
        super().__init__()
        self.out: defaultdict[int, int] = defaultdict(int)

    def change(self, a: int, b: int, sign: int) -> None:
        self.count -= self.out[a] ** 3
        self.out[a] += sign
        self.count += self.out[a] ** 3


class TwoComb(Graph):
    """The sum over edges (a, b) of edges out of a times edges out of b; ``reach`` is that of the ends of its edges."""

    def __init__(self) -> None:
        super().__init__()
        self.reach: defaultdict[int, int] = defaultdict(int)

    def change(self, a: int, b: int, sign: int) -> None:
        after, reach = self.after, self.reach
        if sign < 0:
            self.link(a, b, sign)
            reach[a] -= len(after[b])
        # One edge more out of a: the nodes before a reach one more, and a's own edges count once more.
        for u in self.before[a]:
            self.count += sign * len(after[u])
            reach[u] += sign
        self.count += sign * (reach[a] + (len(after[a]) + 1) * len(after[b]))
        if sign > 0:
            reach[a] += len(after[b])
            self.link(a, b, sign)


class Triangle(Graph):
    """The size of an intersection for each edge; a triangle is three occurrences."""

    def change(self, a: int, b: int, sign: int) -> None:
        self.link(a, b, sign)
        self.count += sign * 3 * len(self.after[b] & self.before[a])


class FourCycle(Graph):
    """Closed walks of four edges: for each edge the paths of three others that close it, from four beginnings."""

    def change(self, a: int, b: int, sign: int) -> None:
        if sign < 0:
            self.link(a, b, sign)
        after, closing = self.after, self.before[a]
        found = 4 * sum(len(after[c] & closing) for c in after[b])
        if a in after[b]:
            found += 2  # there and back twice, from either end
        self.count += sign * found
        if sign > 0:
            self.link(a, b, sign)


class Dumbbell(Graph):
    """The sum over edges (a, b) of triangles that begin at a times triangles that begin at b."""

    def __init__(self) -> None:
        super().__init__()
        self.triangles: defaultdict[int, int] = defaultdict(int)

    def change(self, a: int, b: int, sign: int) -> None:
        if sign < 0:
            self.count -= self.triangles[a] * self.triangles[b]
            self.link(a, b, sign)
        third = self.after[b] & self.before[a]
        if third:
            self._more(a, sign * len(third))
            self._more(b, sign * len(third))
            for c in third:
                self._more(c, sign)
        if sign > 0:
            self.link(a, b, sign)
            self.count += self.triangles[a] * self.triangles[b]

    def _more(self, node: int, number: int) -> None:
        triangles = self.triangles
        for w in self.after[node]:
            self.count += number * triangles[w]
        for u in self.before[node]:
            self.count += number * triangles[u]
        triangles[node] += number


class TriangleListed(Graph):
    """Triangles as a set of triples."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: set[tuple[int, int, int]] = set()

    def change(self, a: int, b: int, sign: int) -> None:
        self.link(a, b, sign)
        for c in self.after[b] & self.before[a]:
            three = ((a, b, c), (b, c, a), (c, a, b))
            if sign > 0:
                self.rows.update(three)
            else:
                self.rows.difference_update(three)


class TwoHopListed(Graph):
    """Paths of two edges, enumerated from the adjacency sets when read."""

    def change(self, a: int, b: int, sign: int) -> None:
        self.link(a, b, sign)

    @property
    def rows(self) -> list[tuple[int, int, int]]:
        return [(a, b, c) for b, sources in self.before.items() for a in sources for c in self.after.get(b, ())]


PROGRAMS: dict[str, type[Graph]] = {
    "2-hop": TwoHop,
    "3-hop": ThreeHop,
    "4-hop": FourHop,
    "star": Star,
    "2-comb": TwoComb,
    "triangle": Triangle,
    "4-cycle": FourCycle,
    "dumbbell": Dumbbell,
    "triangle listed": TriangleListed,
    "2-hop listed": TwoHopListed,
}
"""By the name of the pattern."""


def run(stream: Stream) -> dict[str, Any]:
    """Maintain a pattern by its program; edges are lists of Python integers before the clock starts."""
    name = str(stream.pattern.get("name"))
    program: Any = PROGRAMS.get(name)
    if name in plain_order_book.PROGRAMS:
        return _of_rows(stream, plain_order_book.PROGRAMS[name]())
    if program is None:
        return {"missing": "no program by hand for this view"}
    batches = []
    for step in stream.steps:
        edges = []
        for sign, rows in step.parts:
            src, dst = (column.to_pylist() for column in rows.columns)
            edges += [(a, b, sign) for a, b in zip(src, dst, strict=True)]
        batches.append(edges)
    kept = program()
    course = Course(stream)
    for i, _ in course:
        change = kept.change
        course.go()
        for a, b, sign in batches[i]:
            change(a, b, sign)
        course.stop()
        if i in course.compared:
            course.go()
            rows = getattr(kept, "rows", None)
            rows = None if rows is None else list(rows)
            course.stop()
            course.answers[str(i)] = _answer(kept, rows)
    return course.result()


def _of_rows(stream: Stream, kept: Any) -> dict[str, Any]:
    """Maintain a view over several tables; rows are tuples of Python integers before the clock starts."""
    batches = []
    for step in stream.steps:
        changes = []
        for sign, rows in step.parts:
            changes += [(row, sign) for row in zip(*(column.to_pylist() for column in rows.columns), strict=True)]
        batches.append(changes)
    course = Course(stream)
    for i, step in course:
        change, table = kept.change, step.table
        course.go()
        for row, sign in batches[i]:
            change(table, row, sign)
        found = kept.rows()
        course.stop()
        if i in course.compared:
            course.answers[str(i)] = answer(found)
    return course.result()


def _answer(kept: Any, rows: list[tuple[int, ...]] | None) -> Any:
    if rows is None:
        return answer([(kept.count,)])
    if len(rows) <= 2000:
        return answer(rows)
    return hashed(list(np.array(rows, np.int64).T))
