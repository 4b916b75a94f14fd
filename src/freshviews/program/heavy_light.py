"""Defines which values of a program's views are heavy and which are light, and when a value changes sides.

Source: Kara, Ngo, Nikolic, Olteanu, Zhang: Counting Triangles under Updates in Worst-Case Optimal Time (ICDT 2019),
Definition 6 and Figure 4.

- The *threshold base* N follows the number D of stored rows: ``N / 4 <= D < N`` after every update.
- The *degree* of a value is its number of rows in a view; the *threshold* is N^epsilon.
- A *major rebalancing* changes N; a value is then heavy if its degree is at least the threshold.
- A *minor rebalancing* moves one value: to heavy at 3/2 of the threshold, to light below 1/2 of it.
"""

from __future__ import annotations

import math

from freshviews.program.statements import Body
from freshviews.records import dataclass

HALVES = (3, 1)
"""A light value becomes heavy at the first number of halves of the threshold, a heavy one light below the second."""


def thresholds(base: int, epsilon: float) -> tuple[int, int, int]:
    """Three degrees for the threshold base N, rounded up to whole rows.

    A value is heavy from the first on at a major rebalancing. A light value becomes heavy from the second on. A heavy
    one becomes light below the third. ``kernel.hash.heavy_light.set_base`` computes the same.
    """
    threshold = float(base) ** epsilon
    rise, sink = HALVES
    return math.ceil(threshold), math.ceil(rise * threshold / 2), math.ceil(sink * threshold / 2)


@dataclass(frozen=True)
class Partition:
    """A heavy and a light part of the rows of ``view``, by the degrees of their values at the positions ``by``.

    ``heavy`` names the view of the heavy values, keyed by them. ``subset`` names the subset of the rows with a heavy
    value; it is empty if nothing loops over these. ``value`` are the variables of a value in ``rise``, which runs if it
    becomes heavy, and in ``sink``, which runs if it becomes light. They add the value to ``heavy`` or take it out, move
    its rows, and update what depends on the parts.
    """

    view: str
    by: tuple[int, ...]
    heavy: str
    subset: str
    epsilon: float
    value: tuple[str, ...]
    rise: Body
    sink: Body


@dataclass(frozen=True)
class Procedure:
    """Statements that several moves run, with values for ``parameters`` and for the multiplicity ``m``."""

    name: str
    parameters: tuple[str, ...]
    body: Body


@dataclass(frozen=True)
class Balancing:
    """The parts of a program's views and how they are rebalanced.

    The threshold base follows the rows of ``stores``. A major rebalancing partitions every view, empties the
    ``auxiliary`` views and runs ``recompute``, which computes them from the stores. ``choices``: exponents among which
    the engine may choose at every major rebalancing; empty if the exponents are fixed. ``reads_heavy``: the enumeration
    of the result goes through heavy values, so that its delay grows with their number.

    - The *threshold base* N follows the number D of rows of the stores: ``N / 4 <= D < N`` after every update, with N /
      4 rounded down. If D reaches N, N is doubled. If D falls below N / 4, N becomes N / 2 - 1. Each change of N is a
      *major rebalancing*: all values are classified again and the auxiliary views are recomputed.
    - The *degree* of a value is the number of rows of a view that have it at given positions of the key.
    - The *threshold* is N^epsilon. A major rebalancing makes a value heavy if its degree is at least the threshold, and
      light otherwise.
    - A *minor rebalancing* moves one value: a light value becomes heavy at 3/2 of the threshold, a heavy value becomes
      light below 1/2 of the threshold. So a heavy value has at least 1/2 N^epsilon rows, and a light value fewer than
      3/2 N^epsilon.
    """

    stores: tuple[str, ...]
    partitions: tuple[Partition, ...]
    auxiliary: tuple[str, ...]
    recompute: Body
    procedures: tuple[Procedure, ...] = ()
    choices: tuple[float, ...] = ()
    reads_heavy: bool = False

    @property
    def bodies(self) -> tuple[Body, ...]:
        """Its statements: those of major rebalancings, of procedures, and of minor rebalancings."""
        moves = (body for one in self.partitions for body in (one.rise, one.sink))
        return (self.recompute, *(one.body for one in self.procedures), *moves)

    def procedure(self, name: str) -> Procedure:
        return next(p for p in self.procedures if p.name == name)

    def partitions_of(self, view: str) -> tuple[Partition, ...]:
        return tuple(p for p in self.partitions if p.view == view)
