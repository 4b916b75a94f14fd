"""Defines a Query, one join with sums.

``Q(free)`` is the product of atoms, conditions and lifts, summed over the bound variables. Atoms are the joined tables
and views. Lifts are the factors of a summed value. For ``SELECT a, SUM(x) FROM R JOIN S USING (a) GROUP BY a``::

    Query(name="v", free=("a",),
          atoms=(Atom("R", "R", ("a",), (Column("a"),), ()),
                 Atom("S", "S", ("a",), (Column("a"),), ())),
          aggregates=(Aggregate("count", "integer", ()),
                      Aggregate("sum_x", "integer", (Lift("S", Column("x")),))))
"""

from __future__ import annotations

from freshviews.expr.nodes import Expr, columns_of
from freshviews.records import dataclass


@dataclass(frozen=True)
class Atom:
    """One occurrence of a relation in FROM.

    ``name`` is unique in the query. ``columns[i]``: the expression of ``variables[i]`` over the relation's columns.
    Only rows for which every filter is TRUE take part. If the column of a join variable may be NULL, the atom has a
    filter ``is_not_null``, so that plans compare codes alone.

    ``given``: None for an ordinary atom. Otherwise the atom is *optional*, the right side of an outer join: other atoms
    bind these variables, and if no row has their values, the atom has a *default row*, with NULL in its other
    variables, a count of 1, and 0 for each of its lifts. A variable of the atom that is not given has a plain column.
    """

    name: str
    relation: str
    variables: tuple[str, ...]
    columns: tuple[Expr, ...]
    filters: tuple[Expr, ...] = ()
    given: tuple[str, ...] | None = None

    @property
    def opened(self) -> tuple[str, ...]:
        """The variables that are NULL in the default row of an optional atom."""
        return () if self.given is None else tuple(v for v in self.variables if v not in self.given)


@dataclass(frozen=True)
class Lift:
    """A factor of an aggregate: an expression over the columns of one atom's relation, or over variables of the query
    if ``atom`` is None. ``place``: in an aggregate of several variables, the number of the one whose value it is; a
    lift without a place is an integer there. If the ring has several words, a lift may also be an element
    (``expr.nodes.WORDS``)."""

    atom: str | None
    expr: Expr
    place: int | None = None


@dataclass(frozen=True)
class Aggregate:
    """A component of the payload: the sum, over derivations, of the product of its lifts.

    ``ring``: ``integer`` (counts, exact sums of integers and decimals), ``real`` (exact sums of doubles; one lift
    only), or ``cofactor.integer`` or ``cofactor.double``: the count, sums and sums of products of the variables that
    the lifts have places for. The ring of a view's component is then over the variables below it. Where a lift is an
    element, the ring is named with its range, as ``cofactor.integer(0 1)``. A lift is never NULL: SUM(x) is given as
    coalesce(x, 0), COUNT(x) as a lift of 0 or 1. If an optional atom has lifts with a place, one of its lifts is an
    integer, which is 0 for the default row.
    """

    name: str
    ring: str
    lifts: tuple[Lift, ...] = ()


@dataclass(frozen=True)
class Query:
    """A join block.

    ``conditions``: predicates over variables of several atoms. ``negated``: atoms without a matching row; their
    variables occur in other atoms, and their relations have no negative multiplicities.

    A column becomes a variable only if it joins, is free, or is needed by a condition or lift over several atoms. Other
    columns, like x, are read when a row arrives, but not stored.
    """

    name: str
    free: tuple[str, ...]
    atoms: tuple[Atom, ...]
    aggregates: tuple[Aggregate, ...] = (Aggregate("count", "integer"),)
    conditions: tuple[Expr, ...] = ()
    negated: tuple[Atom, ...] = ()

    @property
    def occurrences(self) -> tuple[Atom, ...]:
        """All occurrences of relations: the atoms and the negated ones."""
        return (*self.atoms, *self.negated)

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(v for atom in self.atoms for v in atom.variables))

    @property
    def joined(self) -> tuple[str, ...]:
        """The variables of the ordinary atoms."""
        return tuple(dict.fromkeys(v for atom in self.atoms if atom.given is None for v in atom.variables))

    @property
    def bound(self) -> tuple[str, ...]:
        return tuple(v for v in self.variables if v not in self.free)

    def atom(self, name: str) -> Atom:
        """The occurrence with this name."""
        return next(atom for atom in self.occurrences if atom.name == name)

    @property
    def is_inner(self) -> bool:
        """True if no atom is optional or negated."""
        return not self.negated and all(atom.given is None for atom in self.atoms)

    def is_ordinary(self, atom: Atom) -> bool:
        """True if the atom is neither optional nor negated."""
        return atom.given is None and atom not in self.negated

    @property
    def factors(self) -> tuple[tuple[str, ...], ...]:
        """Variable sets of the factors: conditions, lifts that span atoms, and negated atoms, in this order."""
        spanning = [lift.expr for a in self.aggregates for lift in a.lifts if lift.atom is None]
        negated = [atom.variables for atom in self.negated]
        return (*(columns_of(expr) for expr in (*self.conditions, *spanning)), *negated)
