"""Rewrites forms of other SQL dialects as Spark's SQL.

- ``FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' MINUTE)`` and ``HOP`` (Flink, RisingWave, Materialize's demos)
  become subqueries with the columns window_start and window_end. HOP joins each row with all windows that contain it.
- ``FROM SESSION(TABLE t, DESCRIPTOR(ts), DESCRIPTOR(key), INTERVAL '10' MINUTE)`` (Calcite) and ``GROUP BY
  session_window(ts, '10 minutes')`` (Spark) join each row with its session (``sql.text.sessions``).
- ``GROUP BY window(ts, '10 minutes')`` with ``window.start`` and ``window.end`` (Spark), and ``TUMBLE(...)`` with
  ``TUMBLE_START(...)`` (Calcite), become scalar functions of the timestamp. ``HOP(...)`` becomes a join as above.
- ``ASOF JOIN t MATCH_CONDITION (a.ts >= t.ts) ON ...`` (Snowflake) is ``ASOF LEFT JOIN t ON ... AND a.ts >= t.ts``.
- ``SELECT DISTINCT ON (a) ... ORDER BY a, b`` (Postgres) is QUALIFY ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) = 1.
- ``FETCH FIRST n ROWS ONLY`` is LIMIT n, and ``LIMIT ALL`` (Postgres, Spark) is removed.
- ``FIRST_VALUE(x) IGNORE NULLS`` (standard SQL, Spark) is ``FIRST_VALUE(x, true)`` (Spark).
- ``LISTAGG(x, sep) WITHIN GROUP (ORDER BY y)`` (Spark, Oracle) is ``LISTAGG(x, sep ORDER BY y)`` (Postgres, DuckDB).

As in Spark, a row whose timestamp is NULL is in no window. Errors point at the written text.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import Token, TokenType, exp

from freshviews.sql.text.names import as_name
from freshviews.sql.text.sessions import (
    SESSIONS,
    START,
    TILL,
    are_sums,
    column,
    joined_with_sessions,
    lasts,
    sessions,
    till,
)

Node = exp.Expr

_TABLES = ("TUMBLE", "HOP", "SESSION")
_FORMS = {
    "TUMBLE": (3, 4, "TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' MINUTE)"),
    "HOP": (4, 5, "HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '5' MINUTE, INTERVAL '10' MINUTE)"),
    "SESSION": (3, 4, "SESSION(TABLE t, DESCRIPTOR(ts), DESCRIPTOR(key), INTERVAL '10' MINUTE)"),
}
"""The least and the greatest number of arguments, and an example."""
_WINDOWS = ("window", "session_window", "tumble", "hop")
_CHANGED = (TokenType.TABLE, TokenType.WINDOW, TokenType.ALL, TokenType.DISTINCT)
_OPENING = {"MATCH_CONDITION": TokenType.MATCH_CONDITION, "SESSION": TokenType.VAR}
"""Words before a parenthesis that are no keywords of Spark, or are keywords elsewhere."""
_STARTED = (TokenType.SELECT, TokenType.L_PAREN)
_ENDED = frozenset(
    (TokenType.COMMA, TokenType.R_PAREN, TokenType.FROM, TokenType.ALIAS, TokenType.DOT, TokenType.SEMICOLON)
)
_SHIFTS = ("lag", "lead")
_OF_NULLS = ("any_value", "first", "first_value", *_SHIFTS, "last", "last_value", "nth_value")
_NULLS = (exp.IgnoreNulls, exp.RespectNulls)
_JOINING = ("string_agg", "listagg", "group_concat", "percentile_cont", "percentile_disc", "mode")
_NUMBERS = "\x1dhops"
_MOST = 10_000
"""Most hopping windows that contain one moment."""


class Misuse(Exception):
    """A form that is used wrongly: the node, and the accepted form."""

    def __init__(self, node: Node, message: str) -> None:
        super().__init__(message)
        self.node = node


def tokens_of(tokens: Sequence[Token]) -> list[Token]:
    """The tokens, without TABLE around TUMBLE and HOP and before their table, with ``window(`` as a function, and with
    ALL and DISTINCT as names unless they belong to SELECT or to an aggregate."""
    made: list[Token] = []
    for i, token in enumerate(tokens):
        if token.token_type not in _CHANGED:
            opens = i + 1 < len(tokens) and tokens[i + 1].token_type == TokenType.L_PAREN
            made.append(as_name(token, _OPENING.get(token.text.upper(), token.token_type)) if opens else token)
            continue
        if token.token_type in (TokenType.ALL, TokenType.DISTINCT):
            # Without an operand after it, it is a name.
            follows = tokens[i + 1].token_type if i + 1 < len(tokens) else TokenType.SEMICOLON
            is_name = follows in _ENDED and i > 0 and tokens[i - 1].token_type in _STARTED
            made.append(as_name(token, TokenType.VAR) if is_name else token)
            continue
        after = [one.text.upper() for one in tokens[i + 1 : i + 4]]
        before = [one.text.upper() for one in tokens[max(i - 2, 0) : i]]
        if token.text.upper() == "TABLE" and before and before[0] in _TABLES and before[1:] == ["("]:
            continue
        if token.text.upper() == "TABLE" and after[:1] == ["("] and after[1:2] and after[1] in _TABLES:
            continue
        if token.token_type == TokenType.WINDOW and after[:1] == ["("]:
            token = as_name(token, TokenType.VAR)
        made.append(token)
    return made


def as_spark(tree: Node, kinds: frozenset[type[Node]]) -> None:
    """Rewrite the nodes of these kinds in a tree to Spark's forms. Raises Misuse."""
    for table in list(tree.find_all(exp.Table)) if exp.Anonymous in kinds else ():
        if isinstance(table.this, exp.Anonymous) and table.this.name.upper() in _TABLES:
            _put(table, _windowed(table))
    for within in list(tree.find_all(exp.WithinGroup)) if exp.WithinGroup in kinds else ():
        _order_inside(within)
    for nulls in [] if kinds.isdisjoint(_NULLS) else list(tree.find_all(*_NULLS)):
        _ignore_nulls(nulls)
    if kinds.isdisjoint((exp.Select, exp.Fetch)):
        return
    for select in list(tree.find_all(exp.Select)):
        _group_windows(select)
        distinct = select.args.get("distinct")
        if distinct is not None and distinct.args.get("on") is not None:
            _first_of_each(select, distinct)
    for join in tree.find_all(exp.Join):
        match = join.args.get("match_condition")
        if match is not None and not join.args.get("using"):
            # In Snowflake rows without a match stay.
            on = join.args.get("on")
            join.set("on", match if on is None else exp.And(this=exp.Paren(this=on), expression=match))
            join.set("side", "LEFT")
            join.set("match_condition", None)
    for limit in list(tree.find_all(exp.Limit)):
        if isinstance(limit.expression, exp.Var):
            limit.pop()
    for fetch in list(tree.find_all(exp.Fetch)):
        options = fetch.args.get("limit_options")
        if options is None or not (options.args.get("percent") or options.args.get("with_ties")):
            count = fetch.args.get("count") or exp.Literal.number(1)
            _put(fetch, exp.Limit(expression=count))


def _ignore_nulls(nulls: Node) -> None:
    """Rewrite IGNORE NULLS after a call, or after its last argument, to a further argument TRUE."""
    before = nulls.this.this if isinstance(nulls.this, exp.Filter) else nulls.this
    call = next((one for one in (before, nulls.parent) if _is_of_nulls(one)), None)
    if call is None:
        name = f"{nulls.this.name.upper()}(...) " if isinstance(nulls.this, exp.Anonymous) else ""
        word = "IGNORE" if isinstance(nulls, exp.IgnoreNulls) else "RESPECT"
        raise Misuse(
            nulls, f"{name}{word} NULLS is not supported; only {', '.join(_OF_NULLS).upper()} accept {word} NULLS"
        )
    _put(nulls, nulls.this)
    if isinstance(nulls, exp.IgnoreNulls) and call.expressions:
        left_out = [exp.Literal.number(1), exp.Null()][len(call.expressions) - 1 :]
        more = left_out if call.name.lower() in _SHIFTS else []
        call.set("expressions", [*call.expressions, *more, exp.true()])


def _is_of_nulls(node: Node | None) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() in _OF_NULLS


def _order_inside(within: exp.WithinGroup) -> None:
    """Move WITHIN GROUP (ORDER BY ...) of an aggregate to its last argument."""
    call, order = within.this, within.expression
    if not isinstance(call, exp.Anonymous) or call.name.lower() not in _JOINING or not isinstance(order, exp.Order):
        return
    arguments = list(call.expressions)
    if any(isinstance(one, exp.Order) for one in arguments):
        raise Misuse(within, f"{call.name} has an ORDER BY and WITHIN GROUP (ORDER BY ...); write only one")
    if arguments:
        last = exp.Order(this=arguments[-1].copy(), expressions=[one.copy() for one in order.expressions])
        call.set("expressions", [*arguments[:-1], last])
    elif call.name.lower() == "mode":
        call.set("expressions", [order.copy()])
    _put(within, call.copy())


def _put(node: Node, made: Node) -> None:
    """Replace a node by another one with its span."""
    for name, value in node.meta.items():
        made.meta.setdefault(name, value)
    node.replace(made)


def _call(name: str, *args: Node) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=[one.copy() for one in args])


def _windowed(table: exp.Table) -> Node:
    call = table.this
    word = call.name.upper()
    least, most, example = _FORMS[word]
    if not least <= len(call.expressions) <= most or not isinstance(call.expressions[0], exp.Column):
        raise Misuse(call, f"{word} in FROM takes a table, a column and intervals, as in {example}")
    source, moment, *intervals = call.expressions
    if isinstance(moment, exp.Anonymous) and moment.name.upper() == "DESCRIPTOR" and len(moment.expressions) == 1:
        moment = moment.expressions[0]
    parts = [source.args[name] for name in ("catalog", "db", "table") if source.args.get(name) is not None]
    named = exp.Table(this=source.this, **dict(zip(("db", "catalog"), reversed(parts), strict=False)))
    named.meta.update(source.meta)
    named.set("alias", exp.TableAlias(this=exp.to_identifier(source.name)))
    select = exp.Select(expressions=[exp.Star()], from_=exp.From(this=named))
    if word == "TUMBLE":
        start, end = _tumbling(select, moment, intervals)
    elif word == "SESSION":
        start, end = _in_sessions(select, moment, _described(intervals[:-1]), intervals[-1])
    else:
        start, end = _hops(select, call, moment, intervals)
    if word != "TUMBLE":
        select.set("expressions", [exp.Column(this=exp.Star(), table=exp.to_identifier(source.name))])
    select.append("expressions", exp.alias_(start, "window_start", copy=False))
    select.append("expressions", exp.alias_(end, "window_end", copy=False))
    alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(source.name))
    made = exp.Subquery(this=select, alias=alias)
    if table.args.get("joins"):
        made.set("joins", table.args["joins"])
    for node in made.walk():
        for name, value in call.meta.items():
            node.meta.setdefault(name, value)
    return made


_MICROS = {
    "MICROSECOND": 1, "MILLISECOND": 1_000, "SECOND": 1_000_000, "MINUTE": 60_000_000, "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000, "WEEK": 604_800_000_000,
}  # fmt: skip


def _size(node: Node) -> int:
    """The microseconds of an interval, or of a text such as '10 minutes'."""
    amount = node.this if isinstance(node, exp.Interval) else node
    unit = node.args.get("unit") if isinstance(node, exp.Interval) else None
    words = f"{amount.this} {unit.name}".split() if unit is not None else str(amount.this).split()
    micros = 0
    try:
        for number, name in zip(words[::2], words[1::2], strict=True):
            micros += int(number) * _MICROS[name.upper().removesuffix("S")]
    except (ValueError, KeyError):
        micros = 0
    if micros <= 0:
        raise Misuse(node, "a window takes a constant interval above 0, such as INTERVAL '10' MINUTE or '10 minutes'")
    return micros


def _tumbling(select: exp.Select, moment: Node, intervals: Sequence[Node]) -> tuple[Node, Node]:
    """The start and the end of tumbling windows; adds to the SELECT a filter of rows without a moment."""
    _filter(select, exp.Not(this=exp.Is(this=moment.copy(), expression=exp.Null())))
    start = _call("tumble_start", moment, *intervals)
    return start, _end(start, intervals[0])


def _end(start: Node, size: Node) -> Node:
    """The end of a window as an expression over its start, so that it is accepted beside GROUP BY of the start."""
    interval = exp.Interval(this=exp.Literal.string(str(_size(size))), unit=exp.Var(this="MICROSECOND"))
    return exp.Paren(this=exp.Add(this=start.copy(), expression=interval))


def _hops(select: exp.Select, call: Node, moment: Node, intervals: Sequence[Node]) -> tuple[Node, Node]:
    """The start and the end of hopping windows; adds to the SELECT the join with their numbers."""
    slide, width = (_size(one) for one in intervals[:2])
    count = -(-width // slide)
    if count > _MOST:
        raise Misuse(call, f"each time is in {count} windows, but at most {_MOST} are accepted; choose a longer slide")
    number = exp.Column(this=exp.to_identifier("n"), table=exp.to_identifier(_NUMBERS))
    args = (moment, *intervals[:2], number, *intervals[2:])
    start = _call("hop_start", *args)
    end = _end(start, intervals[1])
    rows = [exp.Tuple(expressions=[exp.Literal.number(i)]) for i in range(count)]
    alias = exp.TableAlias(this=exp.to_identifier(_NUMBERS), columns=[exp.to_identifier("n")])
    select.append("joins", exp.Join(this=exp.Values(expressions=rows, alias=alias), kind="CROSS"))
    # If slides do not divide the size, the first window may end before the moment.
    within = exp.GT(this=end.copy(), expression=moment.copy())
    _filter(select, within if width % slide else exp.Not(this=exp.Is(this=moment.copy(), expression=exp.Null())))
    return start, end


def _filter(select: exp.Select, condition: Node) -> None:
    where = select.args.get("where")
    both = condition if where is None else exp.And(this=exp.Paren(this=where.this), expression=condition)
    select.set("where", exp.Where(this=both))


def _group_windows(select: exp.Select) -> None:
    """Rewrite ``window(...)``, ``tumble(...)`` and ``hop(...)`` of GROUP BY, and their names, to starts of windows."""
    group = select.args.get("group")
    if group is None:
        return
    for call in [one for one in group.find_all(exp.Anonymous) if one.parent_select is select]:
        name = call.name.lower()
        if name == "session_window" and len(call.expressions) == 2:
            _group_sessions(select, group, call)
            continue
        if name not in ("window", "tumble", "hop") or len(call.expressions) < 2:
            continue
        moment, *intervals = call.expressions
        if name == "window" and len(intervals) > 1:
            # Spark gives the size first, HOP gives the slide first.
            intervals = [intervals[1], intervals[0], *intervals[2:]]
        hops = name == "hop" or len(intervals) > 1
        if hops and name == "tumble":
            continue
        if hops and _size(intervals[0]) == _size(intervals[1]):
            intervals, hops = intervals[1:], False
        if hops:
            start, end = _hops(select, call, moment, intervals)
        else:
            start, end = _tumbling(select, moment, intervals)
        _name_windows(select, call, start, end)
        _put(call, start)


def _group_sessions(select: exp.Select, group: exp.Group, call: exp.Anonymous) -> None:
    """Rewrite ``session_window(ts, gap)`` of GROUP BY to the starts of sessions, with which the rows are joined."""
    moment, end = _times(*call.expressions)
    for node in select.find_all(exp.Column):
        if node.name.lower() == "session_window" and not node.table:
            raise Misuse(node, "session_window has two values; write session_window.start or session_window.end")
    if call.parent is not group or any(group.args.get(name) for name in ("rollup", "cube", "grouping_sets")):
        what = "session_window stands in GROUP BY beside expressions, without ROLLUP, CUBE and GROUPING SETS"
        raise Misuse(call, what)
    others = [one for one in group.expressions if one is not call]
    if any(isinstance(one, exp.Anonymous) and one.name.lower() in _WINDOWS for one in others):
        raise Misuse(call, "GROUP BY accepts only one time window; group by the other window in a subquery of FROM")
    keys = [_group_of(select, one) for one in others]
    keys = [one for one in keys if not isinstance(one, exp.Literal)]
    _filter(select, lasts(moment, end))
    names = ("from_", "joins", "where")
    rows = exp.Select(**{name: select.args[name] for name in names if select.args.get(name)}).copy()
    reads_end = any(_end_of_session(node, call) for node in select.walk())
    with_ends = reads_end and are_sums(select)
    joined = joined_with_sessions(sessions(rows, keys, moment, end, with_ends), keys, moment)
    start: Node = column(START, SESSIONS)
    till_: Node = column(TILL, SESSIONS) if with_ends else exp.Anonymous(this="max", expressions=[end.copy()])
    _name_windows(select, call, start, till_)
    select.append("joins", joined)
    if with_ends:
        group.append("expressions", till_.copy())
    for part in (*joined.walk(), start, till_):
        for name, value in call.meta.items():
            part.meta.setdefault(name, value)
    _put(call, start)


def _times(moment: Node, gap: Node) -> tuple[Node, Node]:
    """When a row begins and ends, for a session."""
    moment = exp.Cast(this=moment.copy(), to=exp.DataType.build("TIMESTAMP"))
    end = till(moment, gap)
    if end is None:
        what = "a session takes a gap that is a constant interval, such as '10 minutes', or CASE of such constants"
        raise Misuse(gap, what)
    return moment, end


def _end_of_session(node: Node, call: exp.Anonymous) -> bool:
    """True for ``session_window.end``, and for ``.end`` of the call."""
    if isinstance(node, exp.Column):
        return node.table.lower() == "session_window" and node.name.lower() == "end"
    return isinstance(node, exp.Dot) and node.this == call and node.expression.name.lower() == "end"


def _group_of(select: exp.Select, node: Node) -> Node:
    """The expression that GROUP BY names by a position or an alias; a column of FROM has precedence over an alias of an
    expression over it."""
    found = _named(select, node)
    is_column = isinstance(node, exp.Column) and any(
        one.name.lower() == node.name.lower() for one in found.find_all(exp.Column)
    )
    return node.copy() if is_column else found


def _name_windows(select: exp.Select, call: exp.Anonymous, start: Node, end: Node) -> None:
    """Replace references to the start and the end of a window outside of GROUP BY."""
    name = call.name.lower()
    for node in list(select.walk()):
        if node is call or node.parent_select is not select:
            continue
        made = None
        if name in ("window", "session_window") and isinstance(node, exp.Column) and node.table.lower() == name:
            made = {"start": start, "end": end}.get(node.name.lower())
        elif isinstance(node, exp.Dot) and node.this == call:
            made = {"start": start, "end": end}.get(node.expression.name.lower())
        elif name in ("tumble", "hop") and isinstance(node, exp.Anonymous) and node.expressions == call.expressions:
            made = {f"{name}_start": start, f"{name}_end": end}.get(node.name.lower())
        if made is not None:
            new = made.copy()
            if isinstance(node.parent, exp.Select) and isinstance(node, (exp.Column, exp.Dot)):
                alias = node.name if isinstance(node, exp.Column) else node.expression.name
                new = exp.alias_(new, alias, copy=False)
            _put(node, new)


def _first_of_each(select: exp.Select, distinct: exp.Distinct) -> None:
    """Rewrite DISTINCT ON to the first row of each group in the order of ORDER BY."""
    on = distinct.args["on"]
    groups = list(on.expressions) if isinstance(on, exp.Tuple) else [on]
    order = select.args.get("order")
    sorts = [one.copy() for one in order.expressions] if order is not None else []
    groups = [_named(select, one) for one in groups]
    for one in sorts:
        one.set("this", _named(select, one.this))
    later = [one for one in sorts if one.this not in groups]
    ahead = [one.this for one in sorts[: sorts.index(later[0])]] if later else groups
    behind = next((one for one in groups if one not in ahead), None)
    if behind is not None:
        what = f"ORDER BY must begin with all expressions of DISTINCT ON; {behind.sql('spark')} must come before"
        raise Misuse(on, f"{what} {later[0].this.sql('spark')}")
    later = later or [exp.Ordered(this=one.copy(), nulls_first=True) for one in groups]
    number = exp.Window(
        this=exp.Anonymous(this="row_number", expressions=[]),
        partition_by=[one.copy() for one in groups],
        order=exp.Order(expressions=later),
        over="OVER",
    )
    first: Node = exp.EQ(this=number, expression=exp.Literal.number(1))
    qualify = select.args.get("qualify")
    if qualify is not None:
        raise Misuse(on, "DISTINCT ON and QUALIFY cannot be in one SELECT; put QUALIFY in a subquery")
    for node in first.walk():
        for name, value in distinct.meta.items():
            node.meta.setdefault(name, value)
    select.set("qualify", exp.Qualify(this=first))
    select.set("distinct", None)


def _described(nodes: Sequence[Node]) -> list[Node]:
    """The columns of DESCRIPTOR(k, ...)."""
    wrong = next((one for one in nodes if not isinstance(one, exp.Anonymous) or one.name.upper() != "DESCRIPTOR"), None)
    if wrong is not None:
        raise Misuse(wrong, f"write the key of SESSION as a DESCRIPTOR, as in {_FORMS['SESSION'][2]}")
    return [column for one in nodes for column in one.expressions]


def _in_sessions(select: exp.Select, moment: Node, keys: Sequence[Node], gap: Node) -> tuple[Node, Node]:
    """The start and the end of the session of each row; adds to the SELECT the join with sessions."""
    moment, end = _times(moment, gap)
    _filter(select, lasts(moment, end))
    rows = exp.Select(from_=select.args["from_"], where=select.args["where"]).copy()
    select.append("joins", joined_with_sessions(sessions(rows, keys, moment, end, True), keys, moment))
    return column(START, SESSIONS), column(TILL, SESSIONS)


def _named(select: exp.Select, node: Node) -> Node:
    """The expression of the list that a position or an alias denotes, else the node itself."""
    if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
        place = int(node.name)
        if 1 <= place <= len(select.expressions):
            node = select.expressions[place - 1].unalias()
    if isinstance(node, exp.Column) and not node.table:
        for one in select.expressions:
            if isinstance(one, exp.Alias) and one.alias.lower() == node.name.lower():
                node = one.this
    return node.copy()
