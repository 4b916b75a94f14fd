"""Defines ``Rule``, a join to be evaluated by leapfrog triejoin.

A rule is a conjunction of atoms and conditions, with an order of its variables.
"""

from __future__ import annotations

from functools import cached_property

from freshviews.expr.nodes import Expr, columns_of
from freshviews.records import dataclass


@dataclass(frozen=True)
class Atom:
    """A relation, with a different variable per column. ``negated``: the relation must not have the row; all variables
    of the atom are then variables of other atoms."""

    relation: str
    variables: tuple[str, ...]
    negated: bool = False

    def __str__(self) -> str:
        return f"{'!' if self.negated else ''}{self.relation}({', '.join(self.variables)})"


@dataclass(frozen=True)
class Cursor:
    """An atom at the level of one of its variables. ``depth`` is the variable's level in the atom's trie, from 1.

    ``above`` are the levels, from 0, of the atom's variables above it; ``beside`` those of the other bound variables.
    ``kept``: it has a sensitivity index. ``pointed``: the atom's variables up to here are a prefix of the order, so a
    change determines its binding. Then no index is needed, except an index of runs for a negated atom.
    """

    atom: int
    depth: int
    above: tuple[int, ...]
    beside: tuple[int, ...]
    kept: bool
    pointed: bool


@dataclass(frozen=True)
class Level:
    """A variable: the cursors whose leapfrog join binds it, and the negated atoms and conditions that it completes."""

    variable: str
    cursors: tuple[Cursor, ...]
    negated: tuple[Cursor, ...]
    conditions: tuple[Expr, ...]


@dataclass(frozen=True)
class Rule:
    """Atoms and conditions over variables, which are bound in ``order``.

    A condition excludes bindings for which it is FALSE or NULL. A binding for which it fails to evaluate stays, since
    it may be part of no derivation; the consumer of the derivations evaluates such conditions again, and reports the
    error. ``keep_all``: every cursor has a sensitivity index, needed or not.

    Raises ValueError if the order lacks or repeats variables, or a negated atom or condition has others.
    """

    order: tuple[str, ...]
    atoms: tuple[Atom, ...]
    conditions: tuple[Expr, ...] = ()
    keep_all: bool = False

    def __post_init__(self) -> None:
        bound = {v for atom in self.atoms if not atom.negated for v in atom.variables}
        if set(self.order) != bound or len(self.order) != len(bound):
            raise ValueError(f"the order {self.order} must have each of the variables {tuple(sorted(bound))} once")
        used = {v for atom in self.atoms for v in atom.variables}.union(*map(columns_of, self.conditions))
        if not used <= bound:
            raise ValueError(
                f"a condition or a negated atom uses {tuple(sorted(used - bound))}, which no other atom binds"
            )
        for atom in self.atoms:
            if not atom.variables or len(set(atom.variables)) != len(atom.variables):
                raise ValueError(f"{atom}: give each column of an atom a variable of its own")

    def permutation(self, atom: Atom) -> tuple[int, ...]:
        """The columns of an atom in the order of its trie."""
        return tuple(sorted(range(len(atom.variables)), key=lambda i: self.order.index(atom.variables[i])))

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """A level per variable, in order."""
        return tuple(self._level(i) for i in range(len(self.order)))

    def _level(self, number: int) -> Level:
        variable = self.order[number]
        cursors: list[Cursor] = []
        negated: list[Cursor] = []
        for i, atom in enumerate(self.atoms):
            places = sorted(self.order.index(v) for v in atom.variables)
            if number not in places or (atom.negated and places[-1] != number):
                continue
            above = tuple(place for place in places if place < number)
            beside = tuple(place for place in range(number) if place not in above)
            pointed = not beside and not self.keep_all
            cursor = Cursor(i, len(above) + 1, above, beside, kept=atom.negated or not pointed, pointed=pointed)
            (negated if atom.negated else cursors).append(cursor)
        bound = set(self.order[: number + 1])
        conditions = tuple(c for c in self.conditions if variable in columns_of(c) and bound.issuperset(columns_of(c)))
        return Level(variable, tuple(cursors), tuple(negated), conditions)
