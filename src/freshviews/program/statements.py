"""Defines the statements of the trigger language. ``freshviews.program.reference.interpreter`` defines what they do.

The trigger of a triangle count, where ``m`` is the multiplicity of an update, and s and t are payloads::

    on R(a, b) += m:
        for c, s in S[b]:
            if t := T[c, a]:
                Q[] += m * s * t
        R[a, b] += m

A loop or lookup on a view never encloses an Add to that view.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from freshviews.expr.nodes import Expr
from freshviews.program.payload import Component, Monomial, hashed_once
from freshviews.program.roles import Columns, Often, Role, Runs
from freshviews.records import dataclass

Variables = tuple[str, ...]
ReadView = Annotated[str, Role.VIEW]
ChangedView = Annotated[str, Role.CHANGED]
Reads = Annotated[Variables, Role.READS]
Key = Annotated[Variables, Role.READS, Columns()]
Opened = Annotated[Variables, Role.BINDS, Columns()]
ReadVariable = Annotated[str, Role.READS]
BoundVariable = Annotated[str, Role.BINDS]
Alias = Annotated[str, Role.ALIAS]
RowAlias = Annotated[str, Role.ROW]
UpdatedRow = Annotated[str, Role.UPDATED]
Subset = Annotated[str, Role.AMONG]
SumAlias = Annotated[str, Role.SUM]
Payload = Annotated[tuple[Monomial, ...], Role.PAYLOAD]
Expression = Annotated[Expr, Role.EXPRESSION]


@hashed_once
@dataclass(frozen=True)
class Let:
    """Binds ``variable`` to the value of an expression over variables, for the rest of the enclosing body."""

    variable: Annotated[str, Role.DEFINES]
    expr: Expression


@hashed_once
@dataclass(frozen=True)
class If:
    """Runs the body if the condition is TRUE."""

    condition: Expression
    body: Annotated[Body, Runs(Often.HOLDS)]


@hashed_once
@dataclass(frozen=True)
class Lookup:
    """Looks up a row by its whole key. Runs the body with ``alias`` as the row, or ``otherwise`` if there is none.

    ``optional``: if there is none, the body runs with the default row of the view, which has a count of 1 and 0 in all
    other components.
    """

    view: ReadView
    key: Key
    alias: Alias
    body: Annotated[Body, Runs(Often.FOUND)]
    otherwise: Annotated[Body, Runs(Often.MISSING)] = ()
    optional: bool = False


@hashed_once
@dataclass(frozen=True)
class Loop:
    """Runs the body for each row of the view whose key agrees with the variables at the ``bound`` positions.

    ``key`` names a variable per position; the loop binds those at the other positions. ``bound`` is empty for a scan of
    the whole view, else an index that the view declares. With ``among``, the loop visits the rows of that subset only,
    and ``bound`` is an index of the subset, possibly the empty one. ``optional``: if there is no such row, the body
    runs once, with the default row of the view and NULL for the variables that the loop binds.
    """

    view: ReadView
    key: Annotated[Variables, Role.UNBOUND, Columns()]
    bound: tuple[int, ...]
    alias: Alias
    body: Annotated[Body, Runs(Often.EACH)]
    among: Subset = ""
    optional: bool = False


@dataclass(frozen=True)
class Cursor:
    """A position in a trie: the values of the last variable of ``key`` below the node that the other variables lead to.

    ``alias`` names the row, if ``key`` has a variable for every level of the trie.
    """

    trie: Annotated[str, Role.TRIE]
    key: Annotated[Variables, Role.LAST, Columns()]
    alias: Alias = ""


@hashed_once
@dataclass(frozen=True)
class Leap:
    """A leapfrog join of one variable, the last of every cursor's key: runs the body for each value that all cursors
    have, in order."""

    cursors: tuple[Cursor, ...]
    body: Annotated[Body, Runs()]

    @property
    def variable(self) -> str:
        return self.cursors[0].key[-1]


@hashed_once
@dataclass(frozen=True)
class Smaller:
    """Runs the loop whose slice has fewer rows, the left one on a tie."""

    left: Annotated[Loop, Role.SIDE, Runs(Often.SHORTER)]
    right: Annotated[Loop, Role.SIDE, Runs(Often.SHORTER)]


@hashed_once
@dataclass(frozen=True)
class Sum:
    """Sets the sum ``alias`` to zero, runs the body, which adds to it with Into, then runs ``then`` unless it is zero.

    ``once``: the body ends after its first addition. ``remembered``: the variables that the sum depends on, if a back
    end may cache it by their values.
    """

    alias: Alias
    components: tuple[Component, ...]
    body: Annotated[Body, Runs(Often.SUMMED)]
    then: Annotated[Body, Runs(Often.NONZERO)]
    once: bool = False
    remembered: Reads = ()


@hashed_once
@dataclass(frozen=True)
class Into:
    """Adds to the Sum ``alias``: a monomial per component of it."""

    alias: SumAlias
    payload: Payload


@hashed_once
@dataclass(frozen=True)
class Add:
    """Adds to the payload of a key: a monomial per name in ``components``.

    ``appear`` runs if the row was absent before and is present after, ``vanish`` if it was present before and is absent
    after, ``stay`` if it was present before and after. In these bodies ``alias``, if given, is the row. During
    ``vanish`` the row is still in its subsets; it leaves them afterwards.
    """

    view: ChangedView
    key: Key
    components: tuple[str, ...]
    payload: Payload
    appear: Annotated[Body, Runs(Often.APPEARS)] = ()
    vanish: Annotated[Body, Runs(Often.VANISHES)] = ()
    stay: Annotated[Body, Runs(Often.STAYS)] = ()
    alias: Alias = ""


@hashed_once
@dataclass(frozen=True)
class Clear:
    """Removes all rows of a scratch view, or of one without journal and order."""

    view: ChangedView


@hashed_once
@dataclass(frozen=True)
class Exists:
    """Runs the body if a slice has a row, i.e. if some row agrees with ``key`` on the ``bound`` positions.

    ``key`` names a variable per bound position; ``bound`` is an index of the view, or of the subset ``among``.
    """

    view: ReadView
    key: Annotated[Variables, Role.READS, Columns(bound=True)]
    bound: tuple[int, ...]
    body: Annotated[Body, Runs(Often.FOUND)]
    among: Subset = ""


@hashed_once
@dataclass(frozen=True)
class Tally:
    """Adds ``amount`` to the tally of the row ``alias``, in place.

    For a positive amount the body runs if the tally becomes ``full``, for a negative one if it was ``full`` before, for
    0 if it is ``full``.
    """

    alias: UpdatedRow
    component: str
    amount: int
    full: int
    body: Annotated[Body, Runs(Often.FULL)] = ()


@hashed_once
@dataclass(frozen=True)
class Event:
    """Statements for the slice by ``bound`` that a row enters or leaves: ``alone`` runs if the slice has no other row,
    ``others`` if it has one."""

    bound: tuple[int, ...]
    alone: Annotated[Body, Runs(Often.ALONE)] = ()
    others: Annotated[Body, Runs(Often.OTHERS)] = ()


@hashed_once
@dataclass(frozen=True)
class Move:
    """Moves the row ``alias`` into a subset of its view (``sign`` 1) or out of it (-1).

    A row that enters was not in the subset; the events run after it has entered, in order. If it leaves, they run while
    it is still in the subset. A row that is not in the subset may leave it, if there are no events.
    """

    alias: UpdatedRow
    subset: str
    sign: int
    events: tuple[Event, ...] = ()


@hashed_once
@dataclass(frozen=True)
class Balance:
    """Restores the invariants of the program's Balancing, after an Add to a row of one of its stores.

    As in Kara et al. (ICDT 2019, Figure 4): a major rebalancing if the sizes of the stores have left their bounds;
    otherwise, for each partition of the view, a minor one if the degree of the row's value requires it.
    """

    view: ChangedView
    key: Key


@hashed_once
@dataclass(frozen=True)
class Perform:
    """Runs a procedure of the program's Balancing for these values, with ``sign`` as the multiplicity ``m``."""

    procedure: str
    arguments: Reads
    sign: int


@hashed_once
@dataclass(frozen=True)
class Changed:
    """Runs the body only while a subscriber wants changes of the view."""

    body: Annotated[Body, Runs(Often.WANTED)]


@hashed_once
@dataclass(frozen=True)
class Emit:
    """Emits a row of the result: its variables, and a monomial per emitted component."""

    row: Reads
    payload: Payload


@dataclass(frozen=True)
class PlaceBound:
    """A bound of a range of places: values of the ordered columns from the one at ``first`` on, included."""

    variables: Reads
    first: int = 0


@hashed_once
@dataclass(frozen=True)
class Scan:
    """Sets a component of ``view[key]`` to an aggregate of the rows ``source[within, ...]`` in a semigroup.

    If ``source`` orders its rows by all columns after ``within``, ``kind`` is ``min`` or ``min_by`` (the last column of
    the first row), ``max`` or ``max_by`` (of the last row). Otherwise ``kind`` is a fold of the last column that
    ``source`` declares: ``bit_and``, ``bit_or``, ``mode``, ``mode_last`` (the value of the row with the greatest count,
    the first or the last one), or, for a shorter ``within``, ``min`` or ``max``. If ``source`` is
    ``placed``, ``kind`` is that of a Percentile of ``query.block``, over the copies of the rows. The component is zero
    if there are no rows. The row of ``view`` is created if it is absent.

    With ``low`` or ``high``, only rows between these places count, as in a Range of places, and ``kind`` is a fold that
    ``source`` declares, ``min_by`` and ``max_by`` among them: the last column of the row with the least or greatest
    last two columns, of which the component ``by`` becomes the first. The component ``known`` becomes 1 if there are
    rows, else 0, and with it the others. Without a ``kind`` all become 0.
    """

    view: ChangedView
    key: Key
    component: str
    source: ReadView
    within: Key
    kind: str
    # The representation stays that of images of older versions.
    low: PlaceBound | None = field(default=None, repr=False)
    high: PlaceBound | None = field(default=None, repr=False)
    known: str = field(default="", repr=False)
    by: str = field(default="", repr=False)


@hashed_once
@dataclass(frozen=True)
class Top:
    """Runs the body for the rows that enter or leave a range of positions in a group of an ordered view.

    The rows of a group, which agree in the columns that are not ordered, are a sequence: in order, each as often as its
    count says. The count of the row ``alias`` has just grown by ``grown``. For each row whose number of copies between
    the positions ``first`` (included) and ``last`` (excluded) changes, the body runs with ``key`` bound to the row's
    key and ``change`` to the difference; possibly several times for one row. The view is ``placed``. The statement is
    within appear, vanish or stay of the Add.
    """

    alias: RowAlias
    grown: ReadVariable
    first: int
    last: int
    key: Opened
    change: BoundVariable
    body: Annotated[Body, Runs(Often.MOVED)]


@hashed_once
@dataclass(frozen=True)
class Places:
    """The first ``last`` places that rows of an ordered view have in their groups.

    Each copy of a row has a place, or, if ``ranks``, each row that of its first copy. The view is ``placed``; besides
    the count its rows have the components ``held`` and ``number``: the places that have been reported of the row, how
    many, and the first one.
    """

    view: ChangedView
    last: int
    ranks: bool = False


@hashed_once
@dataclass(frozen=True)
class Forget:
    """Runs the body for each place that has been reported of the row ``alias``, and clears these places.

    ``place`` is bound to the place, counted from 1. The statement is within a Lookup.
    """

    alias: RowAlias
    places: Places
    place: BoundVariable
    body: Annotated[Body, Runs()]


@hashed_once
@dataclass(frozen=True)
class Renumber:
    """Runs the body for unreported places of rows, and for reported places that are wrong.

    It visits the rows of a group from the key ``start`` on, until the first row whose reported places are right. The
    body runs with ``key`` bound to the key of a row, ``place`` to a place, counted from 1, and ``change`` to 1 for a
    place that the row has, and to -1 for one that it no longer has. Run for the keys of all rows that have changed, it
    reports the places of all rows.
    """

    places: Places
    start: Key
    key: Opened
    place: BoundVariable
    change: BoundVariable
    body: Annotated[Body, Runs()]


@hashed_once
@dataclass(frozen=True)
class Beside:
    """Runs the body for each pair of a row and the row ``shift`` places after it, of a group, that appears or vanishes.

    The rules of Top apply. ``other`` names the columns of the second row that the body reads, by position in the key.
    Without such a row these are NULL, and ``there`` is 0 instead of 1. ``change`` is -1 or 1; the body may run several
    times for one pair.
    """

    alias: RowAlias
    grown: ReadVariable
    shift: int
    key: Opened
    other: Annotated[tuple[tuple[int, str], ...], Role.BINDS, Columns()]
    there: BoundVariable
    change: BoundVariable
    body: Annotated[Body, Runs()]


@hashed_once
@dataclass(frozen=True)
class Framed:
    """Runs the body for each pair of a row and a row of its frame that appears or vanishes.

    The frame has the rows of the group from ``low`` to ``high`` places after the row. The rules of Top apply. ``other``
    names the columns of the second row that the body reads, by position in the key. ``change`` is the difference of the
    number of pairs; the body may run several times for one pair.
    """

    alias: RowAlias
    grown: ReadVariable
    low: int
    high: int
    key: Opened
    other: Annotated[tuple[tuple[int, str], ...], Role.BINDS, Columns()]
    change: BoundVariable
    body: Annotated[Body, Runs()]


@hashed_once
@dataclass(frozen=True)
class Cross:
    """Selects the rows of a group whose values are within a limit: below it, or, unless ``strict``, equal to it.

    The view is ``running``. A row is selected if its ``rows`` are not 0, and neither its value nor the limit is NULL.
    For each row with ``rows`` whose selection changes, the body runs with ``point`` bound to the last column of its key
    and ``change`` to 1 or -1, after its component ``selected`` has become 1 or 0.
    """

    view: ChangedView
    within: Key
    limit: ReadVariable
    strict: bool
    point: Annotated[str, Role.BINDS, Columns(after=True)]
    change: BoundVariable
    body: Annotated[Body, Runs()]


@dataclass(frozen=True)
class Bound:
    """A bound of a range: the value of a variable, excluded if ``strict``."""

    variable: ReadVariable
    strict: bool = False


@dataclass(frozen=True)
class Range:
    """The rows of an ordered view whose key begins with the values of ``prefix``, and whose next column lies between
    two bounds, or on one side of one.

    ``prefix`` has a variable for each column that is not ordered. NULL lies in no range, and a range with a bound that
    is NULL is empty.

    A range of *places* has bounds of kind PlaceBound: rows between two places in the order of the view, which compares
    several columns and NULL, too. A row with a greater place has a value at least as great in the columns of each
    bound.
    """

    view: Annotated[str, Role.RANGE]
    prefix: Key
    low: Bound | PlaceBound | None = None
    high: Bound | PlaceBound | None = None

    @property
    def is_of_places(self) -> bool:
        """True for a range of places."""
        return isinstance(self.low, PlaceBound) or isinstance(self.high, PlaceBound)

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that it reads."""
        ends = (one for one in (self.low, self.high) if one is not None)
        return (*self.prefix, *(name for one in ends for name in variables_of(one)))


def variables_of(bound: Bound | PlaceBound) -> tuple[str, ...]:
    """The variables of a bound of a range."""
    return bound.variables if isinstance(bound, PlaceBound) else (bound.variable,)


@hashed_once
@dataclass(frozen=True)
class RangeSum:
    """Adds the payloads of the rows of a range, times ``coefficient``, to the Sum ``alias``.

    Each component of the Sum has the name of a component that the view sums.
    """

    alias: SumAlias
    rows: Range
    coefficient: int = 1


@hashed_once
@dataclass(frozen=True)
class RangeLoop:
    """Runs the body for each row of a range, or for one row if ``only`` is ``first`` or ``last``. ``key`` names the
    variables that it binds to the ordered columns.

    With ``steady`` the loop ends after a row where no Scan with a component ``known``, directly in the body, has
    changed anything. The view then has no index by its prefix, so that its rows are visited in order.
    """

    rows: Range
    key: Annotated[Variables, Role.BINDS, Columns(after=True)]
    alias: Alias
    body: Annotated[Body, Runs(Often.EACH)]
    # The representation stays that of images of older versions.
    only: str = field(default="", repr=False)
    steady: bool = field(default=False, repr=False)


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
    | Move
    | Balance
    | Perform
    | Scan
    | Top
    | Beside
    | Framed
    | Forget
    | Renumber
    | Cross
    | RangeSum
    | RangeLoop
    | Clear
    | Changed
    | Emit
)

Body = tuple[Statement, ...]


def is_always(appear: Body, vanish: Body, stay: Body) -> bool:
    """True if the same report of places follows an Add in all three cases, so that it is printed and written once."""
    return bool(stay) and isinstance(stay[0], Top | Beside | Framed) and appear == vanish == stay
