"""The trigger language: the waist between strategies and back ends.

A Program declares views and, per relation, triggers. A trigger runs for each update (a row and its
multiplicity ``m``) and is made of few kinds of statement. Names in a trigger are variables of the query;
payloads are reached through the alias of the row they belong to. The triangle count under first-order IVM::

    on R(a, b) += m:
        for c, s in S[b]:
            if t := T[c, a]:
                Q[] += m * s * t
        R[a, b] += m

Semantics in one place: ``freshviews.program.reference.interpreter``. A rule that every strategy keeps, so that back
ends may hold row addresses: a loop or lookup on a view never encloses an Add to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from freshviews.expr.nodes import Expr
from freshviews.program.order import Order, Scan, Top
from freshviews.program.traced import Traced

if TYPE_CHECKING:
    from freshviews.program.parts import Balancing

COUNT = "count"


@dataclass(frozen=True)
class Component:
    """A component of a payload: its name (of an Aggregate, or ``count``) and its ring."""

    name: str
    ring: str


@dataclass(frozen=True)
class Part:
    """A component of the payload of the row known by ``alias``."""

    alias: str
    component: str


@dataclass(frozen=True)
class Value:
    """A variable as a ring element: the multiplicity ``m``, or a lift that a parameter or Let computed."""

    name: str
    ring: str = "integer"


MULTIPLICITY = Value("@m")
"""The multiplicity of the update; printed ``m``. No column can have its name."""


@dataclass(frozen=True)
class Monomial:
    """``coefficient`` times the product of the factors; at most one of them is of ring ``real``."""

    factors: tuple[Part | Value, ...]
    coefficient: int = 1


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


@dataclass(frozen=True)
class Subset:
    """A named set of rows of a view, which rows enter and leave by statements, with indexes of its own."""

    name: str
    indexes: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class View:
    """A keyed store of payloads.

    ``indexes`` are tuples of key positions that loops bind. ``ordered``: the orders of the last key columns, one
    each, where the view keeps its rows in order of them within the rest of the key; ``folds``: kinds of Scan that it
    keeps, over subtrees of that order, of the last key column. ``journal``: old payloads are kept during a batch, so
    that the change can be read off. ``tally`` names the component, the last, that does not count for a row's presence:
    it goes where the others are zero. ``definition`` is for EXPLAIN.
    """

    name: str
    key: tuple[str, ...]
    components: tuple[Component, ...]
    indexes: tuple[tuple[int, ...], ...] = ()
    ordered: tuple[Order, ...] = ()
    folds: tuple[str, ...] = ()
    journal: bool = False
    definition: str = ""
    subsets: tuple[Subset, ...] = ()
    tally: str = ""

    def place_of_index(self, bound: tuple[int, ...], among: str = "") -> int:
        """Which of all indexes of the view, those of every row first, one is."""
        if not among:
            return self.indexes.index(bound)
        first = len(self.indexes)
        for subset in self.subsets:
            if subset.name == among:
                return first + subset.indexes.index(bound)
            first += len(subset.indexes)
        raise ValueError(f"view {self.name} has no subset {among}")

    def component(self, name: str) -> Component:
        return next(c for c in self.components if c.name == name)


@dataclass(frozen=True)
class Trie:
    """The rows of a view in order of its key, whose positions come in this ``order``; made when it is needed."""

    name: str
    view: str
    order: tuple[int, ...]


@dataclass(frozen=True)
class Parameter:
    """A variable of a trigger and what it is, over the columns of the relation."""

    name: str
    expr: Expr


@dataclass(frozen=True)
class Trigger:
    """What an update of a relation does: for one occurrence of it, or for all that share a store.

    ``filters`` are over the relation's columns; the trigger runs for rows where all are TRUE. Triggers of
    one relation run one after the other, each over the whole batch.
    """

    relation: str
    parameters: tuple[Parameter, ...]
    filters: tuple[Expr, ...]
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class Rows:
    """Of a listing: rows of a view that agree on the ``bound`` positions of ``key``, as in Loop; they bind the rest."""

    view: str
    key: tuple[str, ...]
    bound: tuple[int, ...]
    among: str = ""


@dataclass(frozen=True)
class Union:
    """Of a listing: values of ``variables``, each once, though several of its sets have them: the rows ``light``,
    and one listing ``inner`` for each row of ``heavy``.

    ``has`` is a body that emits where ``inner`` has values, those and the row of ``heavy`` being bound. The sets are
    put together by the union algorithm of Durand and Strozecki (CSL 2011), see
    ``freshviews.program.reference.listing``.
    """

    variables: tuple[str, ...]
    light: Rows | None
    heavy: Rows
    inner: tuple[Source, ...]
    has: tuple[Statement, ...]


Source = Rows | Union
"""What binds variables in a listing: a listing is the nested loop over its sources, none of which repeats itself."""


@dataclass(frozen=True)
class Program:
    """What a strategy makes of a query.

    ``output`` names the view that holds the result, keyed by ``free`` (with ``journal`` set); or it is None,
    and then ``enumerate`` emits the result's rows from the views, and triggers emit the change. ``awake`` runs
    once when changes begin to be wanted: it brings up to date what triggers keep only while they are. ``member``
    emits the row of the result with given free variables, where there is one. ``emitted`` are the components of
    what is emitted: the count alone, a row's multiplicity, or the payload of a group, those of 64 bits first.

    Or else the result is *listed*: ``listing`` binds the free variables, each of their values once, ``member``, one
    Sum whose components are the payload, emits the row, and ``delta`` names the view in which triggers gather, by
    group, what payloads grow by while somebody wants that.

    ``evaluate``: the views that it adds to are not kept by triggers, but made anew by it, from ``tries`` over the
    others, when the triggers have run; what it adds to ``scratch`` it clears first and is gone after it.
    ``once``: counts of the result say no more than that a row is there. ``traced``: joins kept by their traces, whose
    derivations are batches of relations of their own.
    """

    name: str
    free: tuple[str, ...]
    views: tuple[View, ...]
    triggers: tuple[Trigger, ...]
    output: str | None
    enumerate: tuple[Statement, ...] = ()
    strategy: str = ""
    bounds: tuple[tuple[str, str], ...] = ()
    awake: tuple[Statement, ...] = ()
    member: tuple[Statement, ...] = ()
    emitted: tuple[Component, ...] = (Component(COUNT, "integer"),)
    balancing: Balancing | None = None
    listing: tuple[Source, ...] = ()
    delta: str = ""
    tries: tuple[Trie, ...] = ()
    evaluate: tuple[Statement, ...] = ()
    scratch: tuple[View, ...] = ()
    once: bool = False
    traced: tuple[Traced, ...] = ()

    @property
    def gathered(self) -> str | None:
        """The view that has the components of the result's payload: the result itself, or its changes."""
        return self.output or self.delta or None

    def view(self, name: str) -> View:
        return next(view for view in (*self.views, *self.scratch) if view.name == name)


def bodies(statement: Statement) -> tuple[tuple[Statement, ...], ...]:
    """The nested bodies of a statement."""
    match statement:
        case If() | Loop() | Changed() | Exists() | Tally() | Leap() | Top():
            return (statement.body,)
        case Lookup(body=body, otherwise=otherwise):
            return (body, otherwise)
        case Enter(events=events) | Leave(events=events):
            return tuple(body for event in events for body in (event.alone, event.others))
        case Smaller(left=left, right=right):
            return (left.body, right.body)
        case Sum(body=body, then=then):
            return (body, then)
        case Add(appear=appear, vanish=vanish, stay=stay):
            return (appear, vanish, stay)
        case _:
            return ()
