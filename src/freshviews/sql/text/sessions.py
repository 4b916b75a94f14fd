"""Writes the SQL of session windows. A session is a run of rows of one key without a long gap between them.

A row with the time ``ts`` lasts from ``ts`` until ``ts`` plus the gap. Rows that overlap or touch are one session. It
begins at a row before which as many rows have ended as have begun. In r(k, ts, till) below, k is the key and ``till``
the end of a row. In the events, w is 1 where a row begins and -1 where it ends::

    events    SELECT k, ts AS at, 1 AS w FROM r UNION ALL SELECT k, till AS at, -1 AS w FROM r
    starts    SELECT DISTINCT k, ts AS start FROM r
              WHERE (SELECT COALESCE(SUM(w), 0) FROM events e WHERE e.k <=> r.k AND e.at < r.ts) <= 0
    ends      SELECT DISTINCT k, till FROM r
              WHERE (SELECT SUM(w) FROM events e WHERE e.k <=> r.k AND e.at <= r.till) <= 0
    sessions  SELECT k, start, till FROM starts s ASOF JOIN ends e ON s.k <=> e.k AND s.start < e.till

``blocks.subqueries.range_comparison`` maintains the comparisons with running sums. A changed row takes O(log N) time,
and so does each start or end that appears or vanishes. A row belongs to the last session that begins at or before it::

    r ASOF JOIN sessions s ON r.k <=> s.k AND r.ts >= s.start
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

Node = exp.Expr

SESSIONS = "sessions#"
START, TILL = "start#", "till#"
"""Names that no user writes."""
_NO_SUMS = frozenset(
    (
        *("min", "max", "min_by", "max_by", "arg_min", "arg_max", "argmin", "argmax", "bit_and", "bit_or", "bool_and"),
        *("bool_or", "every", "any", "some", "any_value", "first", "last", "first_value", "last_value", "string_agg"),
        *("listagg", "group_concat", "approx_count_distinct", "provenance", "only_value"),
    )
)
"""Aggregates that are no sums over rows."""


def column(name: str, table: str = "") -> exp.Column:
    owner = exp.to_identifier(table) if table else None
    return exp.Column(this=exp.to_identifier(name), table=owner)


def till(moment: Node, gap: Node) -> Node | None:
    """The moment and the gap of a row. The gap is an interval, a text, NULL, or CASE of such; None for another one."""
    gap = gap.unnest()
    if isinstance(gap, exp.Null):
        return exp.Cast(this=exp.Null(), to=exp.DataType.build("TIMESTAMP"))
    if isinstance(gap, exp.Literal) and gap.is_string:
        gap = exp.Interval(this=gap.copy())
    if isinstance(gap, exp.Interval):
        at = exp.Cast(this=moment.copy(), to=exp.DataType.build("TIMESTAMP"))
        return exp.Paren(this=exp.Add(this=at, expression=gap.copy()))
    if not isinstance(gap, exp.Case):
        return None
    made = gap.copy()
    branches = [*((one, "true") for one in made.args["ifs"]), (made, "default")]
    for node, name in branches:
        value = till(moment, node.args.get(name) or exp.Null())
        if value is None:
            return None
        node.set(name, value)
    return made


def lasts(moment: Node, end: Node) -> Node:
    """The condition that a row is in a session: it has a moment, and a gap above 0."""
    return exp.GT(this=end.copy(), expression=moment.copy())


def are_sums(select: exp.Select) -> bool:
    """True if all aggregates of a SELECT are sums over rows."""
    calls = [one for one in select.find_all(exp.Anonymous) if one.parent_select is select]
    distinct = any(isinstance(part, exp.Distinct) for one in calls for part in one.expressions)
    return not distinct and _NO_SUMS.isdisjoint(one.name.lower() for one in calls)


def sessions(rows: exp.Select, keys: Sequence[Node], moment: Node, end: Node, with_ends: bool) -> exp.Select:
    """The sessions of the rows of a FROM and WHERE: the keys as k1#, k2#, ..., and START, and TILL if ``with_ends``."""
    names = [f"k{i}#" for i in range(1, len(keys) + 1)]
    starts = _crossings(rows, keys, names, moment, (moment, end), False)
    if not with_ends:
        return exp.Select(expressions=[*map(column, names), _named(column("at"), START)], from_=_from(starts, "s"))
    ends = _crossings(rows, keys, names, end, (moment, end), True)
    same: Node = exp.LT(this=column("at", "s"), expression=column("at", "e"))
    for name in names:
        same = exp.And(this=exp.NullSafeEQ(this=column(name, "s"), expression=column(name, "e")), expression=same)
    joined = exp.Join(this=_subquery(ends, "e"), method="ASOF", on=same)
    listed = [*(column(name, "s") for name in names), _named(column("at", "s"), START)]
    listed.append(_named(column("at", "e"), TILL))
    return exp.Select(expressions=listed, from_=_from(starts, "s"), joins=[joined])


def joined_with_sessions(found: exp.Select, keys: Sequence[Node], moment: Node) -> exp.Join:
    """The join of rows with their sessions."""
    on: Node = exp.GTE(this=moment.copy(), expression=column(START, SESSIONS))
    for i, key in enumerate(keys, 1):
        same = exp.NullSafeEQ(this=key.copy(), expression=column(f"k{i}#", SESSIONS))
        on = exp.And(this=same, expression=on)
    return exp.Join(this=_subquery(found, SESSIONS), method="ASOF", on=on)


def _crossings(
    rows: exp.Select, keys: Sequence[Node], names: Sequence[str], place: Node, times: tuple[Node, Node], through: bool
) -> exp.Select:
    """The places before which as many rows have ended as have begun, or, with ``through``, up to which."""

    def at(moment: Node, weight: str = "") -> exp.Select:
        made = rows.copy()
        listed = [_named(key.copy(), name) for key, name in zip(keys, names, strict=True)]
        listed.append(_named(moment.copy(), "at"))
        more = [_named(exp.Literal.number(1) if weight == "1" else exp.Neg(this=exp.Literal.number(1)), "w")]
        made.set("expressions", [*listed, *(more if weight else ())])
        return made

    places = at(place)
    places.set("distinct", exp.Distinct())
    events = exp.Union(this=at(times[0], "1"), expression=at(times[1], "-1"), distinct=False)
    total: Node = exp.Anonymous(this="sum", expressions=[column("w", "q")])
    if not through:
        total = exp.Anonymous(this="coalesce", expressions=[total, exp.Literal.number(0)])
    compare = exp.LTE if through else exp.LT
    tied: Node = compare(this=column("at", "q"), expression=column("at", "p"))
    for name in names:
        tied = exp.And(this=exp.NullSafeEQ(this=column(name, "q"), expression=column(name, "p")), expression=tied)
    running = exp.Select(expressions=[total], from_=_from(events, "q"), where=exp.Where(this=tied))
    test = exp.LTE(this=exp.Subquery(this=running), expression=exp.Literal.number(0))
    listed = [column(name, "p") for name in (*names, "at")]
    return exp.Select(expressions=listed, from_=_from(places, "p"), where=exp.Where(this=test))


def _named(node: Node, name: str) -> Node:
    return exp.alias_(node, name, copy=False)


def _subquery(query: Node, alias: str) -> exp.Subquery:
    return exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier(alias)))


def _from(query: Node, alias: str) -> exp.From:
    return exp.From(this=_subquery(query, alias))
