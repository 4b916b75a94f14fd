"""Statements of the trigger language.

A trigger runs for each update (a row and its multiplicity ``m``). Names in a trigger are variables of the query;
a payload is reached through the alias of its row. The triangle count under first-order IVM::

    on R(a, b) += m:
        for c, s in S[b]:
            if t := T[c, a]:
                Q[] += m * s * t
        R[a, b] += m

``freshviews.program.reference.interpreter`` defines the semantics. Every strategy keeps one rule, so that back ends may
hold row addresses: a loop or lookup on a view never encloses an Add to it.
"""

from __future__ import annotations

from dataclasses import dataclass

from freshviews.expr.nodes import Expr
from freshviews.program.payload import Component, Monomial


@dataclass(frozen=True)
class Let:
    """``variable`` is the value of an expression over variables, for the rest of the enclosing body."""

    variable: str
    expr: Expr


@dataclass(frozen=True)
class If:
    """The body runs where the condition is TRUE."""

    condition: Expr
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class Lookup:
    """The body runs where the view has the key; ``alias`` is its row. Where it has not, ``otherwise`` runs."""

    view: str
    key: tuple[str, ...]
    alias: str
    body: tuple[Statement, ...]
    otherwise: tuple[Statement, ...] = ()


@dataclass(frozen=True)
class Loop:
    """The body runs for each row of the view that agrees on the ``bound`` positions of the key.

    ``key`` names a variable per position; those at other positions are bound by the loop. ``bound`` is
    empty for a scan of the whole view, else a declared index of it. ``among`` names a subset whose rows alone
    are visited; ``bound`` is then an index of the subset, which may be the empty one.
    """

    view: str
    key: tuple[str, ...]
    bound: tuple[int, ...]
    alias: str
    body: tuple[Statement, ...]
    among: str = ""


@dataclass(frozen=True)
class Cursor:
    """A place in a trie: below the node that all variables of ``key`` but the last lead to, at a value of the last.

    ``alias`` names the row where ``key`` has all words of the trie.
    """

    trie: str
    key: tuple[str, ...]
    alias: str = ""


@dataclass(frozen=True)
class Leap:
    """The body runs for each value that all cursors have, in order: a leapfrog join of one variable, the last of the
    key of every cursor."""

    cursors: tuple[Cursor, ...]
    body: tuple[Statement, ...]

    @property
    def variable(self) -> str:
        return self.cursors[0].key[-1]


@dataclass(frozen=True)
class Smaller:
    """Runs the one of two loops whose slice has fewer rows (the left one on a tie)."""

    left: Loop
    right: Loop


@dataclass(frozen=True)
class Sum:
    """``alias`` is zero, the body runs and adds to it with Into, then ``then`` runs unless it is zero.

    ``once``: the body ends as soon as it has added. ``remembered``: the variables that the sum depends on, where it may
    be kept for when they come again.
    """

    alias: str
    components: tuple[Component, ...]
    body: tuple[Statement, ...]
    then: tuple[Statement, ...]
    once: bool = False
    remembered: tuple[str, ...] = ()


@dataclass(frozen=True)
class Into:
    """Add to the Sum known by ``alias``, a monomial per component of it."""

    alias: str
    payload: tuple[Monomial, ...]


@dataclass(frozen=True)
class Add:
    """Add to the payload of a key, a monomial per name in ``components``.

    ``appear`` runs where the row was absent before and is present after, ``vanish`` the other way round, ``stay``
    where it was present before and after. Within them the row is known by ``alias``, where that is given; in
    ``vanish`` it is still in its subsets, which it leaves afterwards.
    """

    view: str
    key: tuple[str, ...]
    components: tuple[str, ...]
    payload: tuple[Monomial, ...]
    appear: tuple[Statement, ...] = ()
    vanish: tuple[Statement, ...] = ()
    stay: tuple[Statement, ...] = ()
    alias: str = ""


@dataclass(frozen=True)
class Clear:
    """All rows of a view of the program's ``scratch`` go."""

    view: str


@dataclass(frozen=True)
class Exists:
    """The body runs where a slice has a row: one that agrees with ``key`` on the ``bound`` positions.

    ``key`` names a variable per bound position; ``bound`` is an index of the view, or of the subset ``among``.
    """

    view: str
    key: tuple[str, ...]
    bound: tuple[int, ...]
    body: tuple[Statement, ...]
    among: str = ""


@dataclass(frozen=True)
class Tally:
    """Add ``amount`` to the tally of the row known by ``alias``, in place.

    The body runs where the tally has thereby become ``full``; for a negative amount, where it was ``full``
    before; for the amount 0, where it is ``full``.
    """

    alias: str
    component: str
    amount: int
    full: int
    body: tuple[Statement, ...] = ()


@dataclass(frozen=True)
class Event:
    """What is done about the slice by ``bound`` that a row enters or leaves: ``alone`` where no other row is in
    it, else ``others``."""

    bound: tuple[int, ...]
    alone: tuple[Statement, ...] = ()
    others: tuple[Statement, ...] = ()


@dataclass(frozen=True)
class Enter:
    """The row known by ``alias`` enters a subset of its view, in which it was not; then the events run, in order."""

    alias: str
    subset: str
    events: tuple[Event, ...] = ()


@dataclass(frozen=True)
class Leave:
    """The events run, in order, while the row known by ``alias`` is still in the subset; then it leaves.

    A row that is not in the subset may leave it, without events.
    """

    alias: str
    subset: str
    events: tuple[Event, ...] = ()


@dataclass(frozen=True)
class Balance:
    """Restore what the program's Balancing promises, after an Add to a row of a store of it.

    As in Kara et al. (ICDT 2019, Figure 4): a major rebalancing where the sizes of the stores have left their bounds;
    else, for each partition of the view, a minor one where the degree of the row's value has left those of its part.
    """

    view: str
    key: tuple[str, ...]


@dataclass(frozen=True)
class Perform:
    """Run a procedure of the program's Balancing for these values, with ``sign`` as the multiplicity ``m``."""

    procedure: str
    arguments: tuple[str, ...]
    sign: int


@dataclass(frozen=True)
class Changed:
    """The body runs only while somebody wants the view's change."""

    body: tuple[Statement, ...]


@dataclass(frozen=True)
class Emit:
    """Emit a row of the result: its variables, and a monomial per component of what the program emits."""

    row: tuple[str, ...]
    payload: tuple[Monomial, ...]


@dataclass(frozen=True)
class Scan:
    """Set a component of ``view[key]`` to what the rows ``source[within, ...]`` come to in a semigroup.

    Where ``source`` keeps them in order of all words after ``within``, ``kind`` is ``min`` or ``min_by``, ``max`` or
    ``max_by``: the last word of the first row, or of the last. Or it is a fold that ``source`` keeps, of the last
    words: ``bit_and`` or ``bit_or``, and where ``within`` is shorter, ``min`` or ``max`` in their order. The component
    becomes zero where no row is left. The row of ``view`` is made where there was none.
    """

    view: str
    key: tuple[str, ...]
    component: str
    source: str
    within: tuple[str, ...]
    kind: str


@dataclass(frozen=True)
class Top:
    """The row known by ``alias``, of a view whose whole key is in order, has just grown: its count by ``grown``.

    The rows of the view, in order and each as often as it counts, are a sequence. The body runs for each row of which
    copies thereby come among those from place ``first`` up to ``last``, or go: ``key`` is bound to its words,
    ``change`` to how many come; a row may come up several times. It runs within appear, vanish or stay of the Add.
    """

    alias: str
    grown: str
    first: int
    last: int
    key: tuple[str, ...]
    change: str
    body: tuple[Statement, ...]


Statement = (
    Let
    | If
    | Lookup
    | Loop
    | Leap
    | Exists
    | Smaller
    | Sum
    | Into
    | Add
    | Tally
    | Enter
    | Leave
    | Balance
    | Perform
    | Scan
    | Top
    | Clear
    | Changed
    | Emit
)

Body = tuple[Statement, ...]


def is_always(appear: Body, vanish: Body, stay: Body) -> bool:
    """Whether a Top follows an Add whatever became of its row, so that it is printed and written once."""
    return bool(stay) and isinstance(stay[0], Top) and appear == vanish == stay
