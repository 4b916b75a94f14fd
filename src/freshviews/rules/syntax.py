"""Defines the syntax tree of rules. Every node has its line and column, for error messages."""

from __future__ import annotations

from collections.abc import Iterator

from freshviews.records import dataclass


@dataclass(frozen=True)
class Place:
    line: int
    column: int


@dataclass(frozen=True)
class Variable:
    name: str
    place: Place


@dataclass(frozen=True)
class Anything:
    """``_``: any value, without a name."""

    place: Place


@dataclass(frozen=True)
class Constant:
    """A number or a string, as SQL writes it."""

    sql: str
    place: Place


@dataclass(frozen=True)
class Operation:
    """Arithmetic; with one argument, its negative."""

    sign: str
    arguments: tuple[Term, ...]
    place: Place


Term = Variable | Anything | Constant | Operation


@dataclass(frozen=True)
class Atom:
    """A relation and its arguments.

    ``negated``: no such row exists. ``functional``: written ``f[x] = y``; the last argument is the value for the
    others.
    """

    relation: str
    arguments: tuple[Term, ...]
    place: Place
    negated: bool = False
    functional: bool = False


@dataclass(frozen=True)
class Comparison:
    sign: str
    left: Term
    right: Term
    place: Place


@dataclass(frozen=True)
class Either:
    """A disjunction in parentheses."""

    alternatives: tuple[Conjunction, ...]
    place: Place


Literal = Atom | Comparison | Either
Conjunction = tuple[Literal, ...]
Plain = tuple[Atom | Comparison, ...]
"""A conjunction without disjunctions."""


@dataclass(frozen=True)
class Key:
    """A term of ORDER BY, and ``asc`` or ``desc`` if it is written."""

    term: Term
    direction: str
    place: Place


@dataclass(frozen=True)
class Category:
    """``category(term)``, an argument of a cofactor."""

    term: Term
    place: Place


@dataclass(frozen=True)
class Aggregate:
    """``name = function(arguments order by keys)``. ``categories``: the positions of arguments in ``category(...)``."""

    name: str
    function: str
    arguments: tuple[Term, ...]
    place: Place
    order: tuple[Key, ...] = ()
    categories: tuple[int, ...] = ()

    @property
    def terms(self) -> tuple[Term, ...]:
        """The arguments, and those of ORDER BY."""
        return (*self.arguments, *(key.term for key in self.order))


@dataclass(frozen=True)
class Rule:
    head: Atom
    aggregates: tuple[Aggregate, ...]
    alternatives: tuple[Conjunction, ...]

    @property
    def conjunctions(self) -> tuple[Plain, ...]:
        """The body as a disjunction of conjunctions."""
        return tuple(plain for one in self.alternatives for plain in _spread(one))


def _spread(conjunction: Conjunction) -> Iterator[Plain]:
    """The conjunctions that a conjunction with disjunctions expands to."""
    if not conjunction:
        yield ()
        return
    first, *rest = conjunction
    for after in _spread(tuple(rest)):
        if isinstance(first, Either):
            for alternative in first.alternatives:
                for before in _spread(alternative):
                    yield (*before, *after)
        else:
            yield (first, *after)


def variables_in(term: Term) -> Iterator[Variable]:
    """The variables of a term, in order."""
    if isinstance(term, Variable):
        yield term
    elif isinstance(term, Operation):
        for argument in term.arguments:
            yield from variables_in(argument)


def terms_of(literal: Atom | Comparison) -> tuple[Term, ...]:
    """The terms of a literal."""
    return literal.arguments if isinstance(literal, Atom) else (literal.left, literal.right)
