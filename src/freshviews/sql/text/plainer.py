"""Rewrites forms of Spark's SQL as simpler ones with the same meaning.

- ``range(1, 10, 3)`` in FROM becomes VALUES with a column id.
- ``(a, b) < (1, 2)``, and other comparisons of rows, become comparisons of their values. As in Spark's structs, NULL
  equals NULL and is less than other values. So the answer is never NULL.
- ``r'a\\b'`` and ``'a' 'b'`` become one string.
- ``default.t`` and ``spark_catalog.default.t`` become ``t``: all tables and views are in this schema.
- ``mask(s, digitChar => '#')`` gets all its arguments, in the order of the parameters.
- ``ORDER BY a FETCH FIRST n ROWS WITH TIES`` (standard SQL) becomes QUALIFY RANK() OVER (ORDER BY a) <= n.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import Token, TokenType, exp

from freshviews.catalog.catalog import near
from freshviews.sql.text.dialects import Misuse
from freshviews.sql.text.pivots import HAS_OTHERS

Node = exp.Expr

_MOST = 10_000
"""Most rows of range()."""
_SIGNS = (exp.LT, exp.LTE, exp.GT, exp.GTE)
_KINDS = frozenset((*_SIGNS, exp.Between, exp.NullSafeEQ, exp.NullSafeNEQ))
_STRINGS = (TokenType.STRING, TokenType.RAW_STRING)
QUALIFIERS = "freshviews_qualifiers"
"""Key of a name's catalog and schema, which its node no longer has, in the meta data of the node."""
_SCHEMA, _CATALOG = "default", "spark_catalog"

_NAMED: dict[str, dict[str, Node | None]] = {
    "mask": {
        "str": None,
        "upperChar": exp.Literal.string("X"),
        "lowerChar": exp.Literal.string("x"),
        "digitChar": exp.Literal.string("n"),
        "otherChar": exp.Null(),
    },
}
"""The parameters of Spark's functions whose arguments may be named, and what is taken where one is left out."""


def plainer(tree: Node, kinds: frozenset[type[Node]]) -> None:
    """Rewrite the nodes of these kinds in a tree. Raises Misuse."""
    if exp.Table in kinds:
        for table in list(tree.find_all(exp.Table)):
            if isinstance(table.this, exp.Anonymous) and table.this.name.lower() == "range":
                _put(table, _range(table))
    if not kinds.isdisjoint((exp.Table, exp.Column)):
        for named in list(tree.find_all(exp.Table, exp.Column)):
            schema, catalog = named.args.get("db"), named.args.get("catalog")
            known = schema is not None and schema.name.lower() == _SCHEMA
            if known and (catalog is None or catalog.name.lower() == _CATALOG):
                named.meta[QUALIFIERS] = tuple(part for part in (catalog, schema) if part is not None)
                named.set("db", None)
                named.set("catalog", None)
    if exp.Kwarg in kinds:
        for call in list(tree.find_all(exp.Anonymous)):
            if call.name.lower() in _NAMED:
                _place_arguments(call)
    if exp.Star in kinds:
        for star in list(tree.find_all(exp.Star)):
            _check_star(star)
    if exp.Tuple in kinds and not kinds.isdisjoint(_KINDS):
        for node in list(tree.find_all(*_KINDS)):
            _compare_rows(node)
    if exp.Fetch in kinds:
        for fetch in list(tree.find_all(exp.Fetch)):
            _keep_ties(fetch)


def _place_arguments(call: exp.Anonymous) -> None:
    """Put the arguments of a call in the places of their parameters, with constants for those that are left out."""
    parameters = _NAMED[call.name.lower()]
    names = {name.lower(): name for name in parameters}
    given: dict[str, Node] = {}
    named = False
    for argument in call.expressions:
        if isinstance(argument, exp.Kwarg):
            named, name, value = True, names.get(argument.name.lower(), ""), argument.expression
            if not name:
                raise Misuse(
                    argument, f"{call.name} has no parameter {argument.name}{near(argument.name, list(parameters))}"
                )
        elif named:
            raise Misuse(argument, f"name this argument of {call.name}, too: the argument before it has a name")
        elif len(given) == len(parameters):
            return
        else:
            name, value = list(parameters)[len(given)], argument
        if name in given:
            raise Misuse(argument, f"parameter {name} of {call.name} is given twice")
        given[name] = value
    if not named:
        return
    for name, constant in parameters.items():
        if name not in given and constant is None:
            raise Misuse(call, f"parameter {name} of {call.name} is missing; {call.name} takes {', '.join(parameters)}")
    places = (given.get(name, constant) for name, constant in parameters.items())
    call.set("expressions", [one.copy() for one in places if one is not None])


def _check_star(star: exp.Star) -> None:
    """Refuse ``r.*`` after a pipe or PIVOT with columns that are not those of r: Spark leaves them out."""
    named, select = star.parent, star.parent_select
    if not isinstance(named, exp.Column) or not named.table or select is None or select.args.get("from_") is None:
        return
    items = (select.args["from_"].this, *(join.this for join in select.args.get("joins") or ()))
    if any(one.meta.get(HAS_OTHERS) and one.alias.lower() == named.table.lower() for one in items):
        what = f"{named.table}.* after a pipe, PIVOT or UNPIVOT has only the columns of {named.table}"
        raise Misuse(named, f"{what}; write *, or name the columns")


def is_aggregate_definition(tokens: Sequence[Token], at: int) -> bool:
    """True if a token is the AGGREGATE of CREATE [OR REPLACE] AGGREGATE FUNCTION."""
    if [token.text.upper() for token in tokens[at : at + 2]] != ["AGGREGATE", "FUNCTION"]:
        return False
    before = [token.text.upper() for token in tokens[max(0, at - 3) : at]]
    return before[-1:] == ["CREATE"] or before == ["CREATE", "OR", "REPLACE"]


def without_aggregate(tokens: Sequence[Token]) -> list[Token]:
    """The tokens, with CREATE FUNCTION in the place of CREATE AGGREGATE FUNCTION, which the parser does not know."""
    found = [at for at, token in enumerate(tokens) if token.text.upper() == "AGGREGATE"]
    dropped = {at for at in found if is_aggregate_definition(tokens, at)}
    return [token for at, token in enumerate(tokens) if at not in dropped] if dropped else list(tokens)


def with_joined_texts(tokens: Sequence[Token], sql: str) -> list[Token]:
    """The tokens, with one string for each row of strings: ``'a' 'b'`` is ab, and ``'it''s'`` is it's."""
    made: list[Token] = []
    before = None
    for token in tokens:
        kind, text, start = token.token_type, token.text, token.start
        if kind not in _STRINGS:
            made.append(token)
            before = None
            continue
        if before is not None:
            # A quote that is written twice is one; a raw string has no such quotes.
            plain = kind == before.token_type == TokenType.STRING
            is_quote = plain and before.end + 1 == start and sql[start] == sql[before.end]
            whole = made.pop()
            text, start = f"{whole.text}{sql[start] if is_quote else ''}{text}", whole.start
        made.append(Token(TokenType.STRING, text, line=token.line, col=token.col, start=start, end=token.end))
        before = token
    return made


def _put(node: Node, made: Node) -> None:
    """Replace a node by another one, whose parts have its place."""
    for part in made.walk():
        for name, value in node.meta.items():
            part.meta.setdefault(name, value)
    node.replace(made)


def _range(table: exp.Table) -> Node:
    call = table.this
    numbers = [_whole(one) for one in call.expressions]
    if not 1 <= len(numbers) <= 4:
        raise Misuse(call, "range takes one to three whole numbers, as in range(10) and range(1, 10, 2)")
    start, end, step = (0, numbers[0], 1) if len(numbers) == 1 else (*numbers[:2], *numbers[2:3], 1)[:3]
    if step == 0:
        raise Misuse(call, "the step of range is 0; write another number")
    found = range(start, end, step)
    # len() takes no more than 2^63 - 1.
    if max(0, (end - start + step - (1 if step > 0 else -1)) // step) > _MOST:
        raise Misuse(call, f"range has more than {_MOST:,} rows; INSERT the numbers into a table")
    if table.args.get("joins"):
        raise Misuse(call, "range cannot be in parentheses with its joins; leave the parentheses out")
    big = exp.DataType(this=exp.DType.BIGINT)
    values = [exp.Tuple(expressions=[exp.Cast(this=_number(one), to=big.copy())]) for one in found or (0,)]
    id_ = exp.to_identifier("id")
    alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier("\x1drange", quoted=True))
    if not alias.columns:
        alias.set("columns", [id_])
    if found:
        return exp.Values(expressions=values, alias=alias)
    none = exp.Select(
        expressions=[exp.Star()],
        from_=exp.From(this=exp.Values(expressions=values)),
        where=exp.Where(this=exp.false()),
    )
    return exp.Subquery(this=none, alias=alias)


def _number(value: int) -> Node:
    number = exp.Literal.number(abs(value))
    return exp.Neg(this=number) if value < 0 else number


def _whole(node: Node) -> int:
    """The value of a whole number that is written as one."""
    inner = node.unnest()
    if isinstance(inner, exp.Cast):
        inner = inner.this
    if isinstance(inner, exp.Neg):
        return -_whole(inner.this)
    if isinstance(inner, exp.Literal) and not inner.is_string:
        text = inner.name
        if text.removeprefix("-").isdigit() and len(text) <= 19:
            return int(text)
    raise Misuse(node, "range accepts only whole numbers written as constants, as in range(1, 10)")


def _compare_rows(node: Node) -> None:
    if isinstance(node, exp.Between):
        bounds = node.args["low"], node.args["high"]
        if not all(isinstance(one, exp.Tuple) for one in (node.this, *bounds)) or node.args.get("symmetric"):
            return
        both = [_ordered(node.this, bounds[0], exp.GT, True), _ordered(node.this, bounds[1], exp.LT, True)]
        _put(node, exp.Paren(this=exp.And(this=both[0], expression=both[1])))
        return
    left, right = node.this, node.expression
    if not (isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple)):
        return
    if isinstance(node, (exp.NullSafeEQ, exp.NullSafeNEQ)):
        kind = exp.EQ if isinstance(node, exp.NullSafeEQ) else exp.NEQ
        _put(node, kind(this=left, expression=right))
        return
    sign = exp.LT if isinstance(node, (exp.LT, exp.LTE)) else exp.GT
    _put(node, _ordered(left, right, sign, isinstance(node, (exp.LTE, exp.GTE))))


def _ordered(left: Node, right: Node, sign: type[exp.Expr], equal: bool) -> Node:
    """A row before another one, or after it, in the order of their values; ``equal``: or equal to it."""
    pairs = list(zip(left.expressions, right.expressions, strict=False))
    sizes = len(left.expressions), len(right.expressions)
    if sizes[0] != sizes[1]:
        raise Misuse(left, f"a row of {sizes[0]} values cannot be compared with a row of {sizes[1]}")
    made: Node = exp.true() if equal else exp.false()
    for a, b in reversed(pairs):
        same = exp.NullSafeEQ(this=exp.Paren(this=a.copy()), expression=exp.Paren(this=b.copy()))
        made = exp.Or(this=_strictly(a, b, sign), expression=exp.Paren(this=exp.And(this=same, expression=made)))
        made = exp.Paren(this=made)
    return made


def _strictly(a: Node, b: Node, sign: type[exp.Expr]) -> Node:
    """A value before another one, or after it, NULL being the least."""
    compared = sign(this=exp.Paren(this=a.copy()), expression=exp.Paren(this=b.copy()))
    least, other = (a, b) if sign is exp.LT else (b, a)
    unknown = exp.Is(this=exp.Paren(this=least.copy()), expression=exp.Null())
    known = exp.Not(this=exp.Is(this=exp.Paren(this=other.copy()), expression=exp.Null()))
    both = exp.Paren(this=exp.And(this=unknown, expression=known))
    return exp.Anonymous(this="coalesce", expressions=[compared, both])


def _keep_ties(fetch: exp.Fetch) -> None:
    select, options = fetch.parent, fetch.args.get("limit_options")
    if options is None or not options.args.get("with_ties") or options.args.get("percent"):
        return
    order = None if select is None else select.args.get("order")
    if not isinstance(select, exp.Select) or order is None:
        raise Misuse(fetch, "FETCH ... WITH TIES needs an ORDER BY in the same SELECT")
    clash = next((name for name in ("distinct", "qualify", "offset") if select.args.get(name)), None)
    if clash is not None:
        raise Misuse(
            fetch, f"FETCH ... WITH TIES and {clash.upper()} cannot be in one SELECT; put {clash.upper()} in a subquery"
        )
    sorts = [_of_list(select, one) for one in order.expressions]
    rank = exp.Window(
        this=exp.Anonymous(this="rank", expressions=[]), order=exp.Order(expressions=sorts), over="OVER"
    )
    first = exp.LTE(this=rank, expression=(fetch.args.get("count") or exp.Literal.number(1)).copy())
    for node in first.walk():
        for name, value in fetch.meta.items():
            node.meta.setdefault(name, value)
    select.set("qualify", exp.Qualify(this=first))
    select.set("limit", None)


def _of_list(select: exp.Select, ordered: Node) -> Node:
    """An item of ORDER BY, with the expression of the list that its name or its position denotes."""
    made = ordered.copy()
    listed: Sequence[Node] = select.expressions
    node = made.this
    if isinstance(node, exp.Literal) and node.name.isdigit() and 1 <= int(node.name) <= len(listed):
        node.replace(listed[int(node.name) - 1].unalias().copy())
    elif isinstance(node, exp.Column) and not node.table:
        named = (one for one in listed if isinstance(one, exp.Alias) and one.alias.lower() == node.name.lower())
        node.replace(next((one.this.copy() for one in named), node))
    return made
