"""Rewrites a comparison with a running sum as an internal view, which has the rows where the comparison is TRUE.

Over ``bids AS b``, the second subquery is a running sum: for each row of b, it adds the volumes at higher prices::

    0.25 * (SELECT SUM(volume) FROM bids) > (SELECT SUM(s.volume) FROM bids AS s WHERE s.price > b.price)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from freshviews.catalog.definitions import ColumnDef
from freshviews.expr.nodes import Call, Column, Expr, Literal, columns_of
from freshviews.query.block import Block, Output, Selection
from freshviews.query.query import Aggregate, Atom, Lift, Query
from freshviews.records import dataclass
from freshviews.sql.blocks.bound import Bound, Item, Select, aggregate_index
from freshviews.sql.blocks.building.variables import at_leaf, free_name
from freshviews.sql.blocks.optional import EQUALITIES
from freshviews.sql.expressions.build import call, has_host, replaced, retyped
from freshviews.sql.names.marks import is_marked, marks, unmarked
from freshviews.sql.names.scope import Source, alias_of, aliases_in, name_of
from freshviews.types import BIGINT, BOOLEAN, SqlType

VALUE = "\x1esubquery"
"""Prefix of the names that represent the values of subqueries."""
_ORDERS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True)
class Tie:
    """An equality between the subquery and the enclosing source. ``strict``: NULL equals nothing."""

    own: Expr
    other: Column
    strict: bool


@dataclass(frozen=True)
class Weights:
    """The rows of a running sum: a join, its ties to the enclosing source, its place in the order, and the summed
    value; None for a count of all rows. ``counted``: a count of the values that are not NULL."""

    select: Select
    ties: tuple[Tie, ...]
    place: Expr
    summed: Expr | None
    counted: bool
    descending: bool
    through: bool


@dataclass(frozen=True)
class Threshold:
    """A selection of the rows of a source.

    A row passes if its value, times ``factor``, is in the relation ``sign`` to the limit. The value is that of
    ``weights`` at ``point``, or ``point`` itself. ``limit`` is over the values of subqueries and the tied columns of
    the source. ``nullable``: the sum of no rows is NULL, else 0.
    """

    source: Source
    point: Expr
    sign: str
    factor: int
    limit: Expr
    weights: Weights | None = None
    nullable: bool = False

    @property
    def group(self) -> tuple[Column, ...]:
        """The columns of the source that have ties."""
        return () if self.weights is None else tuple(tie.other for tie in self.weights.ties)

    @property
    def negated(self) -> bool:
        """True if the value must be beyond the limit."""
        return (self.sign in (">", ">=")) == (self.factor > 0)

    def code_of_limit(self) -> Expr:
        """The limit of the value, both times -1 if negated, as an integer."""
        limit, factor = retyped(self.limit, BIGINT), self.factor
        if factor < 0:
            limit = call("neg_int", (limit,), BIGINT)
        if abs(factor) != 1:
            # x * f < c if x < ceil(c / f), and x * f <= c if x <= floor(c / f).
            sign = self.sign if factor > 0 else _MIRRORED[self.sign]
            op = "ceil_decimal" if sign in ("<", ">=") else "floor_decimal"
            limit = call(op, (limit, Literal(abs(factor), BIGINT)), BIGINT)
        return call("neg_int", (limit,), BIGINT) if self.negated else limit


def threshold_of(
    condition: Expr, asked: Mapping[str, Bound], sources: Sequence[Source], known: Collection[Expr]
) -> Threshold | None:
    """The selection that a comparison makes; None if it makes none.

    ``asked``: the subqueries by their names in ``condition``. ``sources``: the sources of FROM with a row in every row
    of the join. ``known``: the predicates of the join.

    In a query over ``bids AS b``, the second subquery is a running sum: for each row of b, the volume at higher prices.
    This subquery has no GROUP BY. Its WHERE has one order comparison with a row of b, and perhaps equalities. All other
    terms of the comparison form the *limit*, here a quarter of the volume. An internal view of the rows that pass
    (``query.block.Selection``) replaces the source b.

    A source is also replaced if one of its columns is compared with values of subqueries: these are the limit.

    Sums of doubles are excluded: their prefix sums cannot be compared exactly.
    """
    if not isinstance(condition, Call) or condition.op not in _ORDERS:
        return None
    equal = EqualColumns(known)
    for (one, other), sign in (
        (condition.args, _ORDERS[condition.op]),
        (condition.args[::-1], _MIRRORED[_ORDERS[condition.op]]),
    ):
        found = _of_side(one, other, sign, asked, sources, equal)
        if found is not None:
            return found
    return None


def _of_side(
    side: Expr, limit: Expr, sign: str, asked: Mapping[str, Bound], sources: Sequence[Source], equal: EqualColumns
) -> Threshold | None:
    names = [name for name in columns_of(side) if name in asked]
    if len(names) > 1 or has_host(side) or (names and names[0] in columns_of(limit)):
        return None
    others = {name: bound for name, bound in asked.items() if name in columns_of(limit)}
    if not names:
        point, factor = _without_factor(side)
        (alias,) = aliases_in(point) if len(aliases_in(point)) == 1 else ("",)
        source = next((one for one in sources if one.alias == alias), None)
        free = not any(_marks_of(bound) for bound in others.values()) and set(columns_of(limit)) == others.keys()
        if source is None or not free or not others or not _is_integer(point.type) or is_marked(point):
            return None
        return Threshold(source, point, sign, factor, limit)
    bound = asked[names[0]]
    found = _running(bound, sources, equal)
    if found is None:
        return None
    source, point, weights = found
    value = bound.selects[0].items[0].expr
    chain = replaced(side, lambda part: value if isinstance(part, Column) and part.name == names[0] else None)
    base, factor = _without_factor(chain)
    nullable = not weights.counted
    if isinstance(base, Call) and base.op == "coalesce" and len(base.args) == 2 and _is_zero(base.args[1]):
        base, inner = _without_factor(base.args[0])
        factor, nullable = factor * inner, False
    if not isinstance(base, Column) or aggregate_index(base.name) is None or not _is_integer(side.type):
        return None
    group = {tie.other.name for tie in weights.ties}

    def depends(name: str) -> bool:
        place = equal.on(Column(name, BIGINT), source)
        return place is None or place.name not in group

    outside = [name for name in columns_of(limit) if name not in others]
    outside += [name for one in others.values() for name in _marks_of(one)]
    if any(map(depends, outside)):
        return None
    return Threshold(source, point, sign, factor, limit, weights, nullable)


def _running(
    bound: Bound, sources: Sequence[Source], equal: EqualColumns
) -> tuple[Source, Expr, Weights] | None:
    """The enclosing source for whose rows a subquery has a running sum, the place of a row, and the sum."""
    select = bound.selects[0]
    if len(bound.selects) > 1 or select.kind != "global" or select.having is not None or len(select.aggregates) != 1:
        return None
    if any(map(is_marked, replace(select, conjuncts=()).exprs)):
        return None
    (aggregate,) = select.aggregates
    if aggregate.distinct or aggregate.function not in ("sum", "count") or len(aggregate.args) > 1:
        return None
    summed = aggregate.args[0] if aggregate.args else None
    counted = aggregate.function == "count"
    if summed is not None and (has_host(summed) or not (counted or _is_integer(summed.type))):
        return None
    local = [one for one in select.conjuncts if not is_marked(one)]
    tied = [one for one in select.conjuncts if is_marked(one)]
    ordered = [one for one in tied if isinstance(one, Call) and one.op.split("_")[0] in _ORDERS]
    if len(ordered) != 1 or (has_host(ordered[0]) and not ordered[0].op.endswith("_string")):
        return None
    (between,) = ordered
    assert isinstance(between, Call)
    sign = _ORDERS[between.op.split("_")[0]]
    own, other = between.args
    if is_marked(own):
        own, other, sign = other, own, _MIRRORED[sign]
    if is_marked(own) or len(marks(other)) != len(columns_of(other)) or any(map(has_host, between.args)):
        return None
    point = unmarked(other)
    (alias,) = aliases_in(point) if len(aliases_in(point)) == 1 else ("",)
    source = next((one for one in sources if one.alias == alias), None)
    if source is None:
        return None
    ties = []
    for one in tied:
        if one is not between:
            tie = _tie(one, source, equal)
            if tie is None:
                return None
            ties.append(tie)
    places = {point.name if isinstance(point, Column) else "", *(tie.other.name for tie in ties)}
    if len(places) != 1 + len(ties):
        return None
    rest = replace(select, conjuncts=tuple(local))
    weights = Weights(rest, tuple(ties), own, summed, counted, sign in (">", ">="), sign in ("<=", ">="))
    return source, point, weights


def _tie(conjunct: Expr, source: Source, equal: EqualColumns) -> Tie | None:
    """An equality with a column that equals one of the source; None for another predicate."""
    if not isinstance(conjunct, Call) or conjunct.op not in EQUALITIES or has_host(conjunct):
        return None
    for own, other in (conjunct.args, conjunct.args[::-1]):
        around = unmarked(other)
        if not is_marked(own) and is_marked(other) and isinstance(around, Column):
            place = equal.on(around, source)
            return None if place is None else Tie(own, place, conjunct.op != "null_safe_eq")
    return None


class EqualColumns:
    """The columns that are equal in every row of a join."""

    def __init__(self, known: Collection[Expr]) -> None:
        self._pairs = [
            (a, b)
            for one in known
            if isinstance(one, Call) and one.op == "eq"
            for a, b in (one.args, one.args[::-1])
            if isinstance(a, Column) and isinstance(b, Column)
        ]

    def on(self, column: Column, source: Source) -> Column | None:
        """The column of a source that equals a column; None if there is none."""
        reached = {column.name: column}
        ahead = [column]
        while ahead:
            one = ahead.pop()
            if alias_of(one.name) == source.alias:
                return one
            for a, b in self._pairs:
                if a.name == one.name and b.name not in reached:
                    reached[b.name] = b
                    ahead.append(b)
        return None


def _without_factor(expr: Expr) -> tuple[Expr, int]:
    """An expression as another one times a constant other than 0."""
    factor = 1
    while isinstance(expr, Call):
        if expr.op == "check_range" and isinstance(expr.args[0], Call) and expr.args[0].op in ("mul_int", "scale_up"):
            expr = expr.args[0]
        elif expr.op == "neg_int":
            expr, factor = expr.args[0], -factor
        elif expr.op in ("mul_int", "scale_up"):
            a, b = expr.args
            if isinstance(a, Literal):
                a, b = b, a
            if not isinstance(b, Literal) or not isinstance(b.value, int) or b.value == 0:
                break
            expr, factor = a, factor * b.value
        else:
            break
    return expr, factor


def _is_integer(of: SqlType) -> bool:
    """True for a type whose codes compare as integers."""
    return not of.is_float and not of.is_text


def _is_zero(expr: Expr) -> bool:
    return isinstance(expr, Literal) and expr.value == 0


def _marks_of(bound: Bound) -> list[str]:
    """The columns of the enclosing query that a subquery names anywhere."""
    return [name_without_mark(name) for s in bound.selects for expr in s.exprs for name in marks(expr)]


def name_without_mark(name: str) -> str:
    return unmarked(Column(name, BIGINT)).name  # type: ignore[union-attr]


# The view of a selection


def weights_select(weights: Weights) -> Select:
    """The rows of a running sum as a join, with a column per tie, the place, and the summed value."""
    items = [Item(f"k{i}", tie.own) for i, tie in enumerate(weights.ties, 1)]
    items.append(Item("place", weights.place))
    if weights.summed is not None:
        items.append(Item("summed", weights.summed))
    select = weights.select
    return replace(select, kind="bag", items=tuple(items), groups=(), aggregates=())


def over_view(weights: Weights, view: Source) -> Weights:
    """The running sum over a view of ``weights_select``."""
    columns = [view.column(one) for one in view.columns]
    ties = tuple(replace(tie, own=column) for tie, column in zip(weights.ties, columns, strict=False))
    at = len(ties)
    summed = None if weights.summed is None else columns[at + 1]
    select = Select("bag", (view,), (), ())
    return replace(weights, select=select, ties=ties, place=columns[at], summed=summed)


def is_one_source(weights: Weights) -> bool:
    """True if the rows are those of one source."""
    select = weights.select
    return len(select.sources) == 1 and not (select.absent or select.optional)


def block_of_selection(
    found: Threshold, limits: Source, read: Callable[[Column], bool], known: Sequence[Expr]
) -> tuple[tuple[ColumnDef, ...], Block]:
    """The block of a selection with a running sum over one source, and its columns, those that ``read`` accepts.

    ``limits``: a view with the columns of the group, then the limit. ``known``: other predicates over the source.
    """
    source = found.source
    kept = tuple(c for c in source.columns if read(source.column(c))) or source.columns[:1]
    columns = {c.name: Column(c.name, c.type, c.nullable) for c in kept}
    taken = [*columns]

    def variable(expr: Expr, wish: str) -> str:
        if isinstance(expr, Column):
            columns.setdefault(name_of(expr.name), Column(name_of(expr.name), expr.type, expr.nullable))
            return name_of(expr.name)
        taken.append(free_name(wish, [*taken, *(c.name for c in source.columns)]))
        columns[taken[-1]] = at_leaf(expr)  # type: ignore[assignment]
        return taken[-1]

    group = tuple(variable(one, "") for one in found.group)
    point = variable(found.point, "point")
    filters = tuple(map(at_leaf, known))
    if found.weights is None and found.point.nullable:
        filters += (call("is_not_null", (at_leaf(found.point),), BOOLEAN),)
    names = ["selected", "weights", "limits"]
    rows = free_name(source.alias, names)
    atoms = [Atom(rows, source.relation, tuple(columns), tuple(columns.values()), filters)]
    aggregates = [Aggregate("count", "integer")]
    if found.weights is not None:
        atoms.append(_weights_atom(found.weights, (*group, point)))
        aggregates += _sums(found.weights)
    limit = free_name("limit", [*columns])
    at = [Column(c.name, c.type, c.nullable) for c in limits.columns]
    atoms.append(Atom("limits", limits.relation, (*group, limit), tuple(at)))
    free = tuple(c.name for c in kept)
    weights = found.weights
    selection = Selection(
        rows,
        "" if weights is None else "weights",
        "limits",
        group,
        point,
        limit,
        found.point.type,
        weights is not None and weights.descending,
        "itself" if weights is None else "through" if weights.through else "before",
        found.sign in ("<", ">"),
        found.negated,
        found.nullable,
    )
    query = Query("", free, tuple(atoms), tuple(aggregates))
    outputs = tuple(Output(c.name, columns[c.name]) for c in kept)
    return kept, Block("bag", query, outputs, selection=selection)


def _weights_atom(weights: Weights, variables: tuple[str, ...]) -> Atom:
    (source,) = weights.select.sources
    filters = list(weights.select.conjuncts)
    filters += [call("is_not_null", (tie.own,), BOOLEAN) for tie in weights.ties if tie.strict and tie.own.nullable]
    if weights.place.nullable:
        filters.append(call("is_not_null", (weights.place,), BOOLEAN))
    columns = (*(tie.own for tie in weights.ties), weights.place)
    return Atom("weights", source.relation, variables, tuple(map(at_leaf, columns)), tuple(map(at_leaf, filters)))


def _sums(weights: Weights) -> list[Aggregate]:
    """The sum of the weights, and the number of weights that are not NULL."""
    present: tuple[Lift, ...] = ()
    weight = present
    summed = weights.summed
    if summed is not None and summed.nullable:
        present = (Lift("weights", retyped(call("is_not_null", (at_leaf(summed),), BOOLEAN), BIGINT)),)
    if weights.counted:
        weight = present
    elif summed is not None:
        of = at_leaf(summed)
        weight = (Lift("weights", call("coalesce", (of, Literal(0, of.type)), of.type) if of.nullable else of),)
    return [Aggregate("weight", "integer", weight), Aggregate("number", "integer", present)]

