"""Defines the parts of a bound SELECT. In a bound SELECT, names and types are resolved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from freshviews.catalog.definitions import ColumnDef, SetOperation
from freshviews.expr.nodes import Call, Column, Expr
from freshviews.query.block import COFACTORS, SET, Fold, Frame, Gathering, argument_of_amount
from freshviews.records import dataclass
from freshviews.sql.expressions.build import key, nodes_of, replaced
from freshviews.sql.expressions.logic import negation
from freshviews.sql.names.marks import is_marked
from freshviews.sql.names.scope import Source, name_of
from freshviews.types import BIGINT, BOOLEAN, INT, SqlType

_GROUP = "\x1dgroup"
_AGGREGATE = "\x1daggregate"
_SUBQUERY = "\x1dsubquery"
_NUMBER = "\x1dnumber"
_BESIDE = "\x1dbeside"
_THERE = "\x1dthere"


@dataclass(frozen=True)
class AggregateCall:
    """An aggregate call over expressions.

    ``function``: ``count`` (without arguments of all rows, else of the rows where no argument is NULL), ``sum``,
    ``avg``, one of ``SCANNED`` or ``MODES``, the kind of a ``Percentile``, one of ``COFACTORS`` or one of ``RINGS``; or
    the function of an aggregate with a ``gathering``. ``entry``: for ``COFACTORS`` the number of the cofactor, by
    positions of arguments; for ``RINGS`` the number of the value, of the family ``ring``; for a ``gathering`` with
    several texts the position of the text. The arguments of such a call are the columns of its relations, which are
    groups of the rows where no argument is NULL, then the values to sum. ``amount``: what ``sum`` and ``avg`` take of
    the distinct arguments, over names by ``argument_of_amount``; None for the one argument itself.
    """

    function: str
    args: tuple[Expr, ...]
    distinct: bool
    type: SqlType
    entry: tuple[int, ...] = ()
    ring: str = ""
    gathering: Gathering | None = None
    amount: Expr | None = None

    @property
    def summed(self) -> Expr:
        """The value of a row, or of distinct arguments, that ``sum`` and ``avg`` take."""
        return self.args[0] if self.amount is None else self.amount

    @property
    def nullable(self) -> bool:
        return self.function != "count" and not (self.function == "entry" and self.entry == ())

    @property
    def needs_several(self) -> bool:
        """True if a group with rows may have no value: one row has no covariance."""
        return self.function in ("covariance", "correlation") or isinstance(self.gathering, Fold)

    @property
    def label(self) -> str:
        """A readable name, such as sum_qty or count_distinct_part."""
        args = [self.args[i] for i in self.entry] if self.function in COFACTORS else self.args
        names = [name_of(n.name) for arg in args for n in nodes_of(arg) if isinstance(n, Column)]
        function = self.ring.partition(".")[0] or self.function.partition(" ")[0]
        words = [function, *(["distinct"] if self.distinct else []), *dict.fromkeys(names)]
        return "_".join(words[:4])


@dataclass(frozen=True)
class Item:
    """A column of the SELECT list."""

    name: str
    expr: Expr


@dataclass(frozen=True)
class Absent:
    """NOT EXISTS over a source.

    The row qualifies if no row of the source passes ``filters`` and is equal in every pair (the source's expression,
    the enclosing query's expression).
    """

    source: Source
    filters: tuple[Expr, ...]
    pairs: tuple[tuple[Expr, Expr], ...]


@dataclass(frozen=True)
class OptionalSource:
    """The right source of an outer join: its columns are NULL if no row of it passes ``on``.

    ``alias``: of the source in ``Select.sources``. ``on``: predicates that ``blocks.optional.keyed`` accepts.
    """

    alias: str
    on: tuple[Expr, ...]


@dataclass(frozen=True)
class Sort:
    """An ORDER BY expression."""

    expr: Expr
    descending: bool
    nulls_last: bool


@dataclass(frozen=True)
class Limited:
    """ORDER BY ... LIMIT ... OFFSET of a bag over one source, for each of its groups.

    ``numbers``: ``row_number`` or ``rank``, which items refer to by ``number_ref``. ``beside``: columns of the row
    ``shift`` places later, which items refer to by ``beside_ref``, and by ``there_ref`` to whether there is such a row.
    With either, ``limit`` is EVERY. ``frame``: of a SELECT of kind ``groups`` over the rows and, as its second source,
    the rows of their frames, the places of these after a row.
    """

    order: tuple[Sort, ...]
    limit: int
    offset: int
    groups: tuple[Expr, ...] = ()
    numbers: str = ""
    shift: int = 0
    beside: tuple[Column, ...] = ()
    frame: Frame | None = None

    @property
    def exprs(self) -> tuple[Expr, ...]:
        return (*self.groups, *(one.expr for one in self.order), *self.beside)


@dataclass(frozen=True)
class Select:
    """One SELECT: ``kind`` as in ``freshviews.query.block``.

    ``optional``: the sources of outer joins, each joined with sources before it. The first source is not one.
    """

    kind: str
    sources: tuple[Source, ...]
    conjuncts: tuple[Expr, ...]
    items: tuple[Item, ...]
    groups: tuple[Item, ...] = ()
    aggregates: tuple[AggregateCall, ...] = ()
    having: Expr | None = None
    absent: tuple[Absent, ...] = ()
    limit: Limited | None = None
    sets: tuple[tuple[int, ...], ...] = ()
    """Grouping sets, each as positions in ``groups``; empty if there is a single grouping."""
    optional: tuple[OptionalSource, ...] = ()

    @property
    def is_plain(self) -> bool:
        """True if it only selects, projects and joins, so that it can dissolve into the enclosing join."""
        return self.kind == "bag" and self.limit is None

    @property
    def columns(self) -> tuple[ColumnDef, ...]:
        return tuple(ColumnDef(item.name, item.expr.type, item.expr.nullable) for item in self.items)


    @property
    def exprs(self) -> tuple[Expr, ...]:
        """All expressions of the SELECT."""
        found = [*self.conjuncts, *(item.expr for item in (*self.items, *self.groups))]
        found += [arg for call in self.aggregates for arg in call.args]
        found += [] if self.having is None else [self.having]
        for absent in self.absent:
            found += [*absent.filters, *(side for pair in absent.pairs for side in pair)]
        found += [term for one in self.optional for term in one.on]
        return (*found, *(() if self.limit is None else self.limit.exprs))

    def mapped(self, to: Callable[[Expr], Expr]) -> Select:
        """The SELECT with ``to`` applied to each of its expressions."""

        def items(some: tuple[Item, ...]) -> tuple[Item, ...]:
            return tuple(replace(item, expr=to(item.expr)) for item in some)

        return replace(
            self,
            conjuncts=tuple(map(to, self.conjuncts)),
            items=items(self.items),
            groups=items(self.groups),
            aggregates=tuple(replace(one, args=tuple(map(to, one.args))) for one in self.aggregates),
            having=None if self.having is None else to(self.having),
            absent=tuple(
                replace(one, filters=tuple(map(to, one.filters)), pairs=tuple((to(a), to(b)) for a, b in one.pairs))
                for one in self.absent
            ),
            optional=tuple(replace(one, on=tuple(map(to, one.on))) for one in self.optional),
            limit=None
            if self.limit is None
            else replace(
                self.limit,
                order=tuple(replace(one, expr=to(one.expr)) for one in self.limit.order),
                groups=tuple(map(to, self.limit.groups)),
            ),
        )


@dataclass(frozen=True)
class Bound:
    """A query: its SELECTs and the operation that combines them; None means UNION ALL."""

    selects: tuple[Select, ...]
    combined: SetOperation | None = None
    nullable: tuple[bool, ...] | None = None
    """For each column, True if it may be NULL; None to derive it from the SELECTs."""

    @property
    def columns(self) -> tuple[ColumnDef, ...]:
        """Name, type and nullability of each column."""
        nullable = self.nullable
        if nullable is None:
            by_select = [[column.nullable for column in select.columns] for select in self.selects]
            nullable = tuple(map(any, zip(*by_select, strict=False)))
        return tuple(replace(c, nullable=n) for c, n in zip(self.selects[0].columns, nullable, strict=True))


def places_of_groups(bound: Bound) -> tuple[int, ...] | None:
    """The columns of a query that are its groups, if it joins views of texts by group; None for another query, or if a
    group is not one of its columns."""
    (select, *more) = bound.selects
    if more or select.sets or all(one.gathering is None for one in select.aggregates):
        return None
    names = [item.expr.name if isinstance(item.expr, Column) else "" for item in select.items]
    groups = [group_ref(i, group.expr).name for i, group in enumerate(select.groups)]
    return tuple(map(names.index, groups)) if set(groups) <= set(names) else None


def group_ref(index: int, group: Expr) -> Column:
    return Column(f"{_GROUP}{index}", group.type, group.nullable)


def aggregate_ref(index: int, call: AggregateCall, grouped: bool) -> Column:
    nullable = call.nullable and (not grouped or call.needs_several or any(arg.nullable for arg in call.args))
    return Column(f"{_AGGREGATE}{index}", call.type, nullable)


def subquery_ref(index: int, of: SqlType) -> Column:
    """A reference to the value of a subquery of a grouped SELECT."""
    return Column(f"{_SUBQUERY}{index}", of, True)


def number_ref() -> Column:
    """A reference to the number, or rank, of a row."""
    return Column(_NUMBER, INT, False)


def beside_ref(index: int, column: Column) -> Column:
    """A reference to a column of the row beside a row; NULL if there is no such row."""
    return replace(column, name=f"{_BESIDE}{index}", nullable=True)


def there_ref() -> Column:
    """A reference to 1 if there is a row beside a row, else 0."""
    return Column(_THERE, INT, False)


def is_of_place(expr: Expr) -> bool:
    """True if the name refers to the number of a row, or to the row beside it."""
    return isinstance(expr, Column) and expr.name.startswith((_NUMBER, _BESIDE, _THERE))


def over_distinct(
    args: Sequence[Expr], reference: Callable[[AggregateCall], Expr]
) -> tuple[tuple[Expr, ...], Callable[[AggregateCall], Expr]]:
    """Names for arguments, and the function that references a call over them: over the distinct values of the arguments
    that are not NULL. ``reference`` returns the reference of any call."""
    names = tuple(argument_of_amount(i, arg.type) for i, arg in enumerate(args))

    def distinct(call: AggregateCall) -> Expr:
        amount = None if call.args in ((), names[:1]) else call.summed
        return reference(replace(call, args=tuple(args), distinct=True, amount=amount))

    return names, distinct


def grouping_ref() -> Column:
    """A reference to the value of GROUPING, resolved once the groups are known."""
    return Column(f"{_AGGREGATE}0", BIGINT, False)


def is_ref(expr: Expr) -> bool:
    """True if the name refers to a group, an aggregate, a subquery, or the number of the grouping set."""
    return isinstance(expr, Column) and (expr.name.startswith((_GROUP, _AGGREGATE, _SUBQUERY)) or expr.name == SET)


def group_index(name: str) -> int | None:
    return int(name[len(_GROUP) :]) if name.startswith(_GROUP) else None


def aggregate_index(name: str) -> int | None:
    return int(name[len(_AGGREGATE) :]) if name.startswith(_AGGREGATE) else None


def has_aggregate(expr: Expr) -> bool:
    return any(isinstance(n, Column) and n.name.startswith(_AGGREGATE) for n in nodes_of(expr))


def has_subquery_ref(expr: Expr) -> bool:
    return any(isinstance(n, Column) and n.name.startswith(_SUBQUERY) for n in nodes_of(expr))


def over_groups(expr: Expr, groups: tuple[Item, ...]) -> Expr:
    """Replace every part of the expression that equals a group expression, or is NOT of one, by a reference to that
    group."""
    places = {key(group.expr): i for i, group in enumerate(groups)}
    inverse = {key(negation(g.expr)): i for i, g in enumerate(groups) if g.expr.type == BOOLEAN}

    def reference(part: Expr) -> Expr | None:
        if is_ref(part):
            return part
        form = key(part)
        if form in places:
            return group_ref(places[form], part)
        return negation(group_ref(inverse[form], part)) if form in inverse else None

    return replaced(expr, reference)


def ungrouped(expr: Expr) -> Column | None:
    """The first column, after ``over_groups``, that is neither grouped nor aggregated nor of an enclosing query; None
    if there is none."""
    columns = (n for n in nodes_of(expr) if isinstance(n, Column))
    return next((n for n in columns if not is_ref(n) and not is_marked(n)), None)


def distinct_over(select: Select) -> Select:
    """SELECT DISTINCT: the items of the bag become groups."""
    groups: dict[tuple[object, ...], Item] = {}
    for item in select.items:
        if any(isinstance(n, (Column, Call)) for n in nodes_of(item.expr)):
            groups.setdefault(key(item.expr), item)
    chosen = tuple(groups.values())
    items = tuple(replace(item, expr=over_groups(item.expr, chosen)) for item in select.items)
    return replace(select, kind="groups", groups=chosen, items=items)
