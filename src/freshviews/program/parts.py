"""Heavy and light parts of a program's views, and what is done when rows move between them."""

from __future__ import annotations

from dataclasses import dataclass

from freshviews.program.statements import Statement


@dataclass(frozen=True)
class Partition:
    """A heavy and a light part of the rows of a view, by the degree of their values at the positions ``by``.

    The degree of a value is the number of rows that have it. ``heavy`` names the view of the heavy values, keyed by
    them, ``subset`` that of the rows that have one, or is empty. With the threshold ``N ** epsilon``, N of the
    Balancing, a heavy value has at least half as many rows, a light one fewer than one and a half times as many.
    ``rise`` runs for a value (its variables are ``value``) that becomes heavy, ``sink`` for one that becomes light:
    they move its rows and the value, and bring up to date what depends on the parts.
    """

    view: str
    by: tuple[int, ...]
    heavy: str
    subset: str
    epsilon: float
    value: tuple[str, ...]
    rise: tuple[Statement, ...]
    sink: tuple[Statement, ...]


@dataclass(frozen=True)
class Procedure:
    """Statements that several moves perform, over the values of ``parameters`` and the multiplicity ``m``."""

    name: str
    parameters: tuple[str, ...]
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class Balancing:
    """The parts of a program's views, and their threshold base N.

    With D the rows of the ``stores``, ``N / 4`` (rounded down) ``<= |D| < N`` after every update. A major rebalancing
    doubles N, or halves it, parts every view strictly (a value is heavy where its degree is at least the threshold),
    empties the ``auxiliary`` views and runs ``recompute``, which fills them. ``choices``: exponents of which the engine
    may take another one at every major rebalancing; none where those of the partitions are fixed.
    """

    stores: tuple[str, ...]
    partitions: tuple[Partition, ...]
    auxiliary: tuple[str, ...]
    recompute: tuple[Statement, ...]
    procedures: tuple[Procedure, ...] = ()
    choices: tuple[float, ...] = ()

    def procedure(self, name: str) -> Procedure:
        return next(p for p in self.procedures if p.name == name)

    def partitions_of(self, view: str) -> tuple[Partition, ...]:
        """The partitions of a view."""
        return tuple(p for p in self.partitions if p.view == view)
