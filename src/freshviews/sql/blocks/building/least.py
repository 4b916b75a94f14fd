"""Computes MIN and MAX of sums such as r.x + s.y without joining all rows of r and s.

The least sum is the sum of the least terms. With tables r(k, x) and s(k, y)::

    SELECT MIN(r.x - s.y) FROM r JOIN s USING (k)
    v#1 = SELECT k, MIN(x) AS min_x FROM r GROUP BY k
    v#2 = SELECT k, MAX(y) AS max_y FROM s GROUP BY k
    v   = SELECT MIN(v#1.min_x - v#2.max_y) FROM v#1 JOIN v#2 USING (k)

Sums of doubles are not rewritten. `docs/rings.md`, Least sums, explains why.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from freshviews.expr.nodes import Call, Column, Expr, Literal
from freshviews.sql.blocks.bound import AggregateCall, Item, Select, aggregate_ref, group_ref
from freshviews.sql.blocks.building.variables import Names
from freshviews.sql.blocks.views import Views
from freshviews.sql.expressions.build import key, nodes_of, renamed, replaced
from freshviews.sql.names.scope import Source, aliases_in, name_of

Part = tuple[Expr, bool]
"""A part of an argument, and True if the argument falls where the part grows."""

_GROWING = {"add_int", "date_add_days", "add_micros", "check_range", "scale_up", "scale_down"}
_LIMITS = {"least_int", "greatest_int"}
_OTHER = {"min": "max", "max": "min"}


def over_least(select: Select, views: Views) -> Select | None:
    """The SELECT over a view of the least and greatest values of each source; None if it has another form, or if no
    source has fewer rows in such a view.

    An update of r takes O(log n) steps, if n rows of r have its k. Without the internal views, it would take a step per
    row of s with its k, and all rows of the join would be stored.

    Sums of doubles are not rewritten: infinity plus minus infinity is NaN, so addition of doubles is not monotonic.

    Source: F-IVM (Nikolic and Olteanu, SIGMOD 2018); min and + form a semiring.
    """
    if select.kind == "bag" or select.optional or select.absent or select.sets or select.limit is not None:
        return None
    if any(call.function not in _OTHER or call.distinct for call in select.aggregates):
        return None
    if not all(map(views.is_positive, select.sources)):
        return None  # The product of two negative multiplicities is positive.
    parts = [list(_parts(call.args[0], False)) for call in select.aggregates]
    for one in parts:
        aliases = [aliases_in(part) for part, _ in one]
        if len(aliases) != len(set(aliases)) or any(len(some) > 1 for some in aliases):
            return None
    if not any(len(one) > 1 for one in parts):
        return None
    across = [one for one in select.conjuncts if len(aliases_in(one)) > 1]
    read = {n.name: n for expr in (*across, *(group.expr for group in select.groups)) for n in _columns(expr)}
    made: dict[str, tuple[Source, dict[object, Column]]] = {}
    for source in select.sources:
        columns = [read[name] for name in _names(source) if name in read]
        known = {name_of(column.name) for column in columns}
        if columns and not any(known.issuperset(names) for names in views.keys_of(source)):
            made[source.alias] = _least_of(source, columns, select, parts, views)
    if not made:
        return None
    places = {place: column for _, found in made.values() for place, column in found.items()}
    kept = [one for one in select.conjuncts if not (len(aliases_in(one)) == 1 and aliases_in(one) <= made.keys())]

    def moved(expr: Expr) -> Expr:
        return replaced(expr, lambda n: places.get(n.name) if isinstance(n, Column) else None)

    def least(call: AggregateCall) -> AggregateCall:
        (arg,) = call.args
        falling = {key(part): falls for part, falls in _parts(arg, False)}

        def part_of(part: Expr) -> Expr | None:
            falls = falling.get(key(part))
            return None if falls is None else places.get(_place(call, part, falls))

        return replace(call, args=(moved(replaced(arg, part_of)),))

    return replace(
        select,
        sources=tuple(made[one.alias][0] if one.alias in made else one for one in select.sources),
        conjuncts=tuple(map(moved, kept)),
        groups=tuple(replace(group, expr=moved(group.expr)) for group in select.groups),
        aggregates=tuple(map(least, select.aggregates)),
    )


def _parts(expr: Expr, falls: bool) -> Iterator[Part]:
    """The parts of an argument, each over one source, or over several if it is not monotonic in its operands."""
    if len(aliases_in(expr)) <= 1 or not isinstance(expr, Call):
        if not isinstance(expr, Literal):
            yield expr, falls
    elif expr.op in _GROWING or (expr.op in _LIMITS and not any(arg.nullable for arg in expr.args)):
        for arg in expr.args:
            yield from _parts(arg, falls)
    elif expr.op == "neg_int":
        yield from _parts(expr.args[0], not falls)
    elif expr.op == "sub_int":
        yield from _parts(expr.args[0], falls)
        yield from _parts(expr.args[1], not falls)
    else:
        yield expr, falls


def _least_of(
    source: Source, columns: Sequence[Column], select: Select, parts: Sequence[Sequence[Part]], views: Views
) -> tuple[Source, dict[object, Column]]:
    """A view of a source: ``columns``, and the least or greatest values of its parts. The result maps the names of
    ``columns``, and each part's ``_place``, to columns of the view."""
    own = _names(source)
    taken = Names()
    groups = tuple(Item(taken.take(name_of(one.name)), own[one.name]) for one in columns)
    calls: dict[object, AggregateCall] = {}
    for call, found in zip(select.aggregates, parts, strict=True):
        for part, falls in found:
            if aliases_in(part) == {source.alias}:
                function = _OTHER[call.function] if falls else call.function
                # The source may have NULLs that the rest of the SELECT excludes.
                value = replaced(part, lambda n: own.get(n.name) if isinstance(n, Column) else None)
                calls.setdefault(_place(call, part, falls), AggregateCall(function, (value,), False, part.type))
    values = tuple(
        Item(taken.take(call.label), aggregate_ref(i, call, grouped=True)) for i, call in enumerate(calls.values())
    )
    inner = Select(
        "groups",
        (source,),
        tuple(one for one in select.conjuncts if aliases_in(one) == {source.alias}),
        (*(Item(one.name, group_ref(i, one.expr)) for i, one in enumerate(groups)), *values),
        groups,
        tuple(calls.values()),
    )
    made = replace(views.shared_source(_under_its_name(inner)), alias=source.alias)
    places = (*(one.name for one in columns), *calls)
    return made, dict(zip(places, map(made.column, made.columns), strict=True))


def _under_its_name(select: Select) -> Select:
    """The SELECT with the relation's name as its one alias, so that both sides of a self-join are equal."""
    (source,) = select.sources
    named = replace(source, alias=source.relation)
    to = dict(zip(_names(source), _names(named), strict=True))
    return replace(select.mapped(lambda expr: renamed(expr, lambda name: to.get(name, name))), sources=(named,))


def _place(call: AggregateCall, part: Expr, falls: bool) -> object:
    return (_OTHER[call.function] if falls else call.function, key(part))


def _names(source: Source) -> dict[str, Column]:
    return {column.name: column for column in map(source.column, source.columns)}


def _columns(expr: Expr) -> list[Column]:
    return [n for n in nodes_of(expr) if isinstance(n, Column)]
