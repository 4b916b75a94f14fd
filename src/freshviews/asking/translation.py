"""Translates a SELECT to DuckDB's SQL, and lists the columns that the SELECT reads."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import count

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ErrorLevel, SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import traverse_scope
from sqlglot.schema import MappingSchema

from freshviews.asking.binary import check_bytes
from freshviews.asking.functions import name_functions
from freshviews.asking.meaning import NotAnswered, level, mend
from freshviews.asking.moments import place_moments
from freshviews.asking.own_functions import write_out
from freshviews.asking.parameters import name_of, places
from freshviews.asking.question import Question
from freshviews.asking.relations import Asked, AskedRelation, expand, tables_named
from freshviews.asking.typing import METADATA, as_node, kind_of
from freshviews.catalog.catalog import near, unknown
from freshviews.catalog.timezone import UTC
from freshviews.errors import SqlError, UnsupportedSql
from freshviews.records import dataclass
from freshviews.sql.blocks.forms import form_of, negated
from freshviews.sql.expressions.expression import COMPARISONS, members_of_list
from freshviews.sql.text.parse import Node
from freshviews.sql.text.pipes import POSITION, is_position, wrong_position
from freshviews.types import TIMESTAMP, TIMESTAMP_LTZ, SqlType

_DUCKDB = DuckDB()
_NAME = "freshviews_name"
_BY_ALL, _ORDER_ALL = "freshviews_by_all", "freshviews_order_all"
_LONG_CHAIN = 32


@dataclass(frozen=True)
class Translation:
    """A SELECT for DuckDB. ``reads``: by the name of a relation in ``sql``, the relation and the columns that are
    read, at least one. ``names``: those of the columns of the result. ``functions``: the Python functions of users that
    it calls, by name in ``sql`` their operations."""

    sql: str
    reads: tuple[tuple[str, str, tuple[str, ...]], ...]
    names: tuple[str, ...]
    functions: tuple[tuple[str, str], ...] = ()


def translated(
    question: Question,
    asked: Asked,
    kinds: tuple[SqlType | None, ...],
) -> Translation:
    """The SELECT over relations for DuckDB. ``kinds``: the types of its parameters.

    Raises SqlError for unknown columns and functions, and UnsupportedSql for what DuckDB lacks.
    """
    return (_known if question.repeats else _made)(question, asked, kinds)


@lru_cache(256)
def _known(
    question: Question,
    asked: Asked,
    kinds: tuple[SqlType | None, ...],
) -> Translation:
    return _made(question, asked, kinds)


def _made(
    question: Question,
    asked: Asked,
    kinds: tuple[SqlType | None, ...],
) -> Translation:
    by_name = {one.name.lower(): one for one in asked.relations}
    tree = question.tree.copy()
    try:
        expand(tree, by_name)
        _bind(question, tree, kinds, asked.timezone)
        operations = write_out(question.text, tree, asked.functions)
        _balance(tree)
        _plain_lists(tree)
        name_functions(question.text, tree, operations)
        _plain_groups(tree)
        _name_columns(question, tree)
        made = _translated(question, tree, by_name, asked.timezone, operations)
        return replace(made, functions=tuple(operations.items()))
    except NotAnswered as error:
        raise question.text.error(error.node, str(error)) from None
    except SqlglotError as error:
        raise _plain(question, by_name, str(error)) from None
    except RecursionError:
        raise SqlError("the SELECT is nested too deep; move parts of it into WITH") from None


_SHARED = "shared"
"""Marks a join by columns of the same name: USING, NATURAL."""
_WRITTEN = "written"
"""Marks COALESCE that is written, not made of a column of USING."""


def _translated(
    question: Question,
    tree: Node,
    relations: Mapping[str, AskedRelation],
    zone: str,
    operations: dict[str, str],
) -> Translation:
    stored = {key: one for key, one in relations.items() if not one.plain}
    columns: dict[str, object] = {
        key: {name.lower(): as_node(kind) for name, kind in one.columns} for key, one in stored.items()
    }
    schema = MappingSchema(columns, dialect="spark", normalize=False)
    for one in tree.find_all(exp.Coalesce):
        one.meta[_WRITTEN] = True
    for join in tree.find_all(exp.Join):
        join.meta[_SHARED] = bool(join.args.get("using")) or join.method == "NATURAL"
    _name_positions(question, tree, schema)
    _name_counted(tree, schema)
    stars = [(star, star.parent_select) for star in tree.find_all(exp.Star)]
    tree = qualify(tree, dialect="spark", schema=schema)
    _check_stars(tree, stars, schema)
    _check_names(tree)
    _align(tree)
    _write_all_out(tree)
    _join_by_any_side(tree)
    _name_groups(tree)
    _one_side_of_using(tree)
    tree = annotate_types(tree, schema=schema, dialect="spark", expression_metadata=METADATA)
    if level(tree):
        tree = annotate_types(tree, schema=schema, dialect="spark", expression_metadata=METADATA)
    names = _names(tree, relations)
    if zone != UTC or any(kind_of(node) == TIMESTAMP_LTZ for node in tree.walk()):
        if question.stored:
            _check_stored(tree)
        place_moments(tree, zone, operations)
    check_bytes(tree)
    mend(tree)
    _parenthesized(tree)
    reads = _reads(tree, stored)
    return Translation(_DUCKDB.generate(tree, copy=False, unsupported_level=ErrorLevel.RAISE), reads, names)


def _check_stored(tree: Node) -> None:
    """Refuse a column of moments whose rows are stored: Arrow's column of them would be a TIMESTAMP."""
    select = _outer(tree)
    for item in () if select is None else select.selects:
        if kind_of(item.unalias()) == TIMESTAMP_LTZ:
            what = "a statement that stores the rows of a SELECT takes no TIMESTAMP_LTZ from it"
            instead = "CAST it to TIMESTAMP, its local time, which a column of moments takes, too"
            raise NotAnswered(item, f"{what}; {instead}")


def _join_by_any_side(tree: Node) -> None:
    """After a RIGHT or FULL JOIN, the next table is joined USING the column of any table before it: ``qualify`` takes
    that of the first one, which a row may lack."""
    for select in tree.find_all(exp.Select):
        columns: dict[str, list[Node]] = {}
        may_lack = False
        for join in select.args.get("joins") or ():
            on = join.args.get("on") if join.meta.get(_SHARED) else None
            terms = [] if on is None else list(on.flatten(unnest=False)) if isinstance(on, exp.And) else [on]
            for term in terms:
                own, before = term.expression, columns.setdefault(term.expression.name.lower(), [])
                if not before:
                    before += term.this.find_all(exp.Column)
                if may_lack and len(before) > 1:
                    first, *others = (one.copy() for one in before)
                    term.set("this", exp.Coalesce(this=first, expressions=others))
                if join.kind not in ("SEMI", "ANTI"):
                    before.append(own)
            may_lack = may_lack or join.side in ("RIGHT", "FULL")


def _one_side_of_using(tree: Node) -> None:
    """A column of USING is that of the left side, as in Spark, unless a row may lack it."""
    for both in list(tree.find_all(exp.Coalesce)):
        select = both.parent_select
        if _WRITTEN in both.meta or select is None:
            continue
        if all(one.side in ("", "LEFT") for one in select.args.get("joins") or ()):
            both.replace(both.this)


def _bind(question: Question, tree: Node, kinds: Sequence[SqlType | None], zone: str) -> None:
    """Number the parameters, and give them their types."""
    numbers = {name_of(one) or str(place): place for place, one in enumerate(places(question))}
    at = sorted(tree.find_all(exp.Placeholder), key=question.text.at)
    for place, one in enumerate(at):
        number = numbers[name_of(one) or str(place)]
        kind = TIMESTAMP if kinds[number] == TIMESTAMP_LTZ and zone == UTC else kinds[number]
        # DuckDB wants no value that its text lacks, so NULL is written.
        bound = exp.Placeholder(this=str(number + 1 - kinds[:number].count(None)))
        made = exp.Null() if kind is None else exp.Cast(this=bound, to=as_node(kind))
        made.meta.update(one.meta)
        one.replace(made)


def _balance(tree: Node) -> None:
    """Make long chains of AND and of OR as flat as they can be: sqlglot climbs from each column to its SELECT."""
    for node in list(tree.find_all(exp.And, exp.Or)):
        if type(node.parent) is type(node):
            continue
        terms = list(node.flatten(unnest=False))
        if len(terms) > _LONG_CHAIN:
            made = _halved(type(node), terms)
            made.meta.update(node.meta)
            node.replace(made)


def _halved(kind: type[Node], terms: Sequence[Node]) -> Node:
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    return kind(this=_halved(kind, terms[:half]), expression=_halved(kind, terms[half:]))


def _outer(tree: Node) -> exp.Select | None:
    """The SELECT that names the columns of the result."""
    while isinstance(tree, exp.SetOperation | exp.Subquery):
        tree = tree.this
    return tree if isinstance(tree, exp.Select) else None


def _plain_lists(tree: Node) -> None:
    """Write comparisons with ANY and ALL of a list out."""
    found: list[Node] = list(tree.find_all(*COMPARISONS, exp.Like, exp.ILike, exp.RegexpLike))
    for node in found:
        listed = members_of_list(node.expression)
        if listed is None or not listed[1]:
            continue
        every, members = listed
        whole = node.parent if isinstance(node.parent, exp.Escape) else node
        tests = []
        for member in members:
            node.set("expression", member.copy())
            tests.append(exp.Paren(this=whole.copy()))
        whole.replace(exp.Paren(this=exp.and_(*tests) if every else exp.or_(*tests)))


_OPERATORS = (
    *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.DPipe, exp.BitwiseAnd, exp.BitwiseOr),
    *(exp.BitwiseXor, exp.BitwiseNot, exp.Neg, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ),
    *(exp.NullSafeNEQ, exp.Like, exp.ILike, exp.RegexpLike, exp.Escape, exp.Is, exp.In, exp.Between, exp.Not),
    *(exp.And, exp.Or),
)


def _parenthesized(tree: Node) -> None:
    """Put the operands of operators in parentheses: some operators bind otherwise in DuckDB than in Spark."""
    for node in list(tree.find_all(*_OPERATORS, exp.Literal)):
        around = node.parent
        if isinstance(node, exp.Literal) and not node.name.startswith("-"):
            continue
        if type(around) is type(node) and isinstance(node, exp.And | exp.Or):
            continue  # A chain of hundreds would nest as deep.
        if isinstance(around, _OPERATORS) and not (isinstance(around, exp.Escape) and node is around.this):
            made = exp.Paren()
            node.replace(made)
            made.set("this", node)


def _is_all(node: Node | None) -> bool:
    """True for ALL, which the parser reads as a column."""
    return isinstance(node, exp.Column) and node.name.lower() == "all" and not node.table


def _check_stars(tree: Node, stars: Sequence[tuple[exp.Star, exp.Select | None]], schema: MappingSchema) -> None:
    """Raise NotAnswered for a column in EXCEPT or REPLACE of a star that FROM lacks; sqlglot passes over it."""
    named = [(star, select) for star, select in stars if star.args.get("except_") or star.args.get("replace")]
    if not named:
        return
    scopes = {id(scope.expression): scope for scope in traverse_scope(tree)}
    for star, select in named:
        scope = scopes.get(id(select))
        joins = () if select is None else select.args.get("joins") or ()
        # The sources of a scope lack LATERAL.
        if scope is None or any(isinstance(join.this, exp.Lateral) for join in joins):
            continue
        known: list[str] = []
        for source in scope.sources.values():
            if isinstance(source, exp.Table):
                known += schema.column_names(source)
            elif isinstance(source.expression, exp.Query):
                known += source.expression.named_selects
            elif isinstance(source.expression, exp.Values):
                known += source.expression.alias_column_names
        for column in (*(star.args.get("except_") or ()), *(star.args.get("replace") or ())):
            name = column.alias_or_name
            if not any(name.lower() == one.lower() for one in known):
                raise NotAnswered(column, unknown("column", name, dict.fromkeys(known)))


def _check_names(tree: Node) -> None:
    """Raise NotAnswered for a column of a subquery that has its name twice; DuckDB takes the first one."""
    if not any(_twice(one.this) for one in tree.find_all(exp.Subquery, exp.CTE)):
        return
    for scope in traverse_scope(tree):
        queries = {name: one for name, one in scope.sources.items() if not isinstance(one, exp.Table)}
        twice = {name: _twice(one.expression) for name, one in queries.items()}
        for column in scope.columns:
            if column.name in twice.get(column.table, ()):
                message = f"column {column.name} is ambiguous: its subquery has it twice; rename one with AS"
                raise NotAnswered(column, message)


def _twice(query: Node) -> frozenset[str]:
    names = query.named_selects if isinstance(query, exp.Query) else []
    return frozenset(name for name in names if names.count(name) > 1) if len({*names}) < len(names) else frozenset()


def _align(tree: Node) -> None:
    """Write the columns of UNION BY NAME in one order, with NULL for those that a side lacks."""
    for union in reversed(list(tree.find_all(exp.Union))):
        if not union.args.get("by_name"):
            continue
        union.set("by_name", None)
        sides = [(side, side.named_selects) for side in (union.left, union.right)]
        names = list(dict.fromkeys(name for _, own in sides for name in own))
        for side, own in sides:
            twice = next((name for name in own if own.count(name) > 1), None)
            if twice is not None:
                raise NotAnswered(
                    side, f"UNION BY NAME: column {twice} is given twice; rename one of the columns with AS"
                )
            quoted = [exp.to_identifier(name, quoted=True) for name in names]
            values = [exp.column(one.copy()) if one.name in own else exp.Null() for one in quoted]
            items = [exp.alias_(value, one) for value, one in zip(values, quoted, strict=True)]
            made = exp.select(*items)
            side.replace(made)
            made.set("from_", exp.From(this=exp.Subquery(this=side.unnest(), alias=exp.TableAlias(this="by_name"))))


def _write_all_out(tree: Node) -> None:
    """Write GROUP BY ALL and ORDER BY ALL out, now that the lists have no ``*``."""
    for query in list(tree.find_all(exp.Query)):
        if query.meta.pop(_BY_ALL, False):
            items = [one.unalias() for one in query.selects]
            groups = [one.copy() for one in items if one.find(exp.AggFunc) is None]
            query.set("group", exp.Group(expressions=groups) if groups else None)
        ordered = query.meta.pop(_ORDER_ALL, None)
        if ordered is not None:
            numbers = (exp.Literal.number(i + 1) for i in range(len(query.selects)))
            places = [exp.Ordered(**{**ordered.args, "this": number}) for number in numbers]
            query.set("order", exp.Order(expressions=places))


def _name_groups(tree: Node) -> None:
    """Write the groups of GROUP BY in the list, HAVING and ORDER BY as GROUP BY writes them: ``1 + x`` as ``x + 1``."""
    for select in tree.find_all(exp.Select):
        group = select.args.get("group")
        if group is None:
            continue
        groups = [one for one in _listed_groups(group) if not isinstance(one, exp.Column | exp.Literal)]
        forms = [(form_of(one, _named), one) for one in groups]
        known = {repr(form): one for form, one in forms if form is not None}
        known_not = {repr(negated(form)): one for form, one in forms if form is not None}
        if known:
            clauses = [*select.selects, select.args.get("having"), select.args.get("order")]
            for node in [one for one in clauses if one is not None]:
                _write_groups(node, known, known_not)


def _listed_groups(node: Node) -> Iterator[Node]:
    """The expressions of GROUP BY, those of grouping sets included."""
    for one in node.iter_expressions():
        sets = isinstance(one, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple | exp.Paren)
        yield from _listed_groups(one) if sets else (one,)


def _named(column: exp.Column) -> tuple[str, str]:
    return column.table.lower(), column.name.lower()


def _write_groups(node: Node, known: Mapping[str, Node], known_not: Mapping[str, Node]) -> None:
    if isinstance(node, exp.AggFunc | exp.Query | exp.Column | exp.Literal):
        return
    if not isinstance(node, exp.Alias | exp.Ordered | exp.Order | exp.Having | exp.Paren):
        form = repr(form_of(node, _named))
        group = known.get(form)
        other = known_not.get(form) if group is None else None
        if group is not None and group != node:
            node.replace(exp.Paren(this=group.copy()))
        elif other is not None:
            node.replace(exp.Not(this=exp.Paren(this=other.copy())))
        if group is not None or other is not None:
            return
    for child in list(node.iter_expressions()):
        _write_groups(child, known, known_not)


def _plain_groups(tree: Node) -> None:
    """Write GROUP BY ALL, WITH ROLLUP and WITH CUBE out; mark ALL for ``_write_all_out`` where it needs the columns.
    Without rows grouping sets have no row, as in Spark."""
    for order in list(tree.find_all(exp.Order)):
        first = order.expressions[0]
        if len(order.expressions) == 1 and _is_all(first.this) and isinstance(order.parent, exp.Query):
            order.parent.meta[_ORDER_ALL] = first
            order.pop()
    for group in list(tree.find_all(exp.Group)):
        select = group.parent
        only = group.expressions[0] if len(group.expressions) == 1 else None
        if _is_all(only) and select is not None:
            if any(one.is_star for one in select.expressions):
                select.meta[_BY_ALL] = True
                group.pop()
                continue
            items = [one.unalias() for one in select.expressions]
            group.set("expressions", [one.copy() for one in items if one.find(exp.AggFunc) is None])
            if not group.expressions:
                group.pop()
                continue
        for name, kind in (("rollup", exp.Rollup), ("cube", exp.Cube)):
            if group.args.get(name) and group.expressions and not group.args[name][0].expressions:
                group.set(name, [kind(expressions=group.expressions)])
                group.set("expressions", [])
        sets = list(group.find_all(exp.Rollup, exp.Cube, exp.GroupingSets))
        if select is not None and any(one.find(exp.Column, exp.Literal) for one in sets):
            some: Node = exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(0))
            having = select.args.get("having")
            if having is not None:
                some = exp.And(this=exp.Paren(this=having.this), expression=some)
            select.set("having", exp.Having(this=some))


def _name_columns(question: Question, tree: Node) -> None:
    """Give the columns of the result the names that Spark gives them, and those of VALUES theirs."""
    for values in tree.find_all(exp.Values):
        alias = values.args.get("alias") or exp.TableAlias(this=exp.to_identifier("values"))
        if values.expressions and not alias.columns:
            count = len(values.expressions[0].expressions) or 1
            alias.set("columns", [exp.to_identifier(f"col{place + 1}") for place in range(count)])
            values.set("alias", alias)
    select = _outer(tree)
    if select is None:
        return
    for one in select.expressions:
        if one.is_star:
            continue
        if isinstance(one, exp.Alias):
            name = one.alias
        elif isinstance(one, exp.Column):
            name = one.name
        else:
            counts = isinstance(one, exp.Count) and isinstance(one.this, exp.Star)
            name = "count(1)" if counts else question.text.of(one)
            made = exp.Alias(alias=exp.to_identifier(name, quoted=True))
            one.replace(made)
            made.set("this", one)
            one = made
        one.meta[_NAME] = name


def _name_positions(question: Question, tree: Node, schema: MappingSchema) -> None:
    """Replace columns of ``|> AGGREGATE ... GROUP BY 1`` by their names. Those of inner queries come first."""
    for column in reversed([one for one in tree.find_all(exp.Column) if is_position(one)]):
        select = column.parent_select
        assert select is not None
        listed = _columns_of(tree, select, exp.Star(), schema)
        place = int(column.name.removeprefix(POSITION))
        if not 1 <= place <= len(listed):
            raise question.text.error(column, wrong_position(place, len(listed)))
        name, value = listed[place - 1].alias_or_name, listed[place - 1].unalias()
        alone = [one.alias_or_name for one in listed].count(name) == 1
        table = value.args.get("table") if isinstance(value, exp.Column) and not alone else None
        named = exp.Column(this=exp.to_identifier(name, quoted=True), table=table)
        if column.parent is select and column.arg_key == "expressions":
            named.meta[_NAME] = name
        column.replace(named)


def _columns_of(tree: Node, select: exp.Select, star: Node, schema: MappingSchema) -> list[Node]:
    """The items of a list that a star denotes in a SELECT."""
    with_ = tree.args.get("with_")
    read = exp.Select(
        expressions=[star],
        from_=select.args["from_"].copy(),
        joins=[join.copy() for join in select.args.get("joins") or ()],
        with_=None if with_ is None else with_.copy(),
    )
    return list(qualify(read, dialect="spark", schema=schema).selects)


def _name_counted(tree: Node, schema: MappingSchema) -> None:
    """Write the columns of the stars among the arguments of COUNT, unless it is COUNT(*)."""
    for call in reversed(list(tree.find_all(exp.Count))):
        select = call.parent_select
        holder = call.this if isinstance(call.this, exp.Distinct) else call
        arguments = list(holder.expressions) if holder is not call else [call.this, *call.expressions]
        if arguments == [exp.Star()] or not any(one.is_star for one in arguments):
            continue
        if select is None or select.args.get("from_") is None:
            continue
        named: list[Node] = []
        for one in arguments:
            found = _columns_of(tree, select, one.copy(), schema) if one.is_star else [one]
            named += [item.unalias() for item in found]
        if holder is call:
            call.set("this", named[0])
        holder.set("expressions", named if holder is not call else named[1:])


def _names(tree: Node, relations: Mapping[str, AskedRelation]) -> tuple[str, ...]:
    spelled = {name.lower(): name for one in relations.values() for name, _ in one.columns}
    select = _outer(tree)
    assert select is not None
    found = []
    for one in select.selects:
        if one.is_star:
            what = "* of a subquery that has a name twice"
            raise UnsupportedSql(f"{what} is not supported; rename one of the columns with AS")
        name = one.meta.get(_NAME) or one.unalias().meta.get(_NAME)
        found.append(name or spelled.get(one.alias_or_name.lower(), one.alias_or_name))
    return tuple(found)


def _reads(tree: Node, stored: Mapping[str, AskedRelation]) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """Name the relations r0, r1, ... in the tree, and list the columns that it reads of each."""
    wanted: dict[str, set[str]] = {}
    for scope in traverse_scope(tree):
        aliases = {name: one for name, one in scope.sources.items() if isinstance(one, exp.Table)}
        for column in scope.columns:
            table = aliases.get(column.table)
            if table is not None and table.name in stored:
                _check_kind(column, stored[table.name])
                wanted.setdefault(table.name, set()).add(column.name)
    reads: dict[str, tuple[str, str, tuple[str, ...]]] = {}
    named = list(tables_named(tree))
    # DuckDB takes the name of a query of WITH before that of a relation.
    queries = {one.alias.lower() for one in tree.find_all(exp.CTE)}
    free = (name for place in count() if (name := f"r{place}") not in queries)
    for key in dict.fromkeys(one.name for one in named):
        relation = stored[key]
        needed = wanted.get(key, set())
        names = tuple(name for name, _ in relation.columns if name.lower() in needed)
        reads[key] = (next(free), relation.name, names or (relation.columns[0][0],))
    for one in named:
        if one.name in reads:
            one.set("this", exp.to_identifier(reads[one.name][0], quoted=True))
    return tuple(reads.values())


def _check_kind(column: exp.Column, relation: AskedRelation) -> None:
    """Refuse an INTERVAL: DuckDB has one type of months, days and microseconds, which it compares by its own rules."""
    kind = next((kind for name, kind in relation.columns if name.lower() == column.name.lower()), None)
    if kind is not None and kind.is_interval:
        what = f"{relation.name}.{column.name} is an {kind}, which a SELECT cannot read"
        raise NotAnswered(column, f"{what}; read the view itself, or CAST it to STRING or to a number in a view")


_MISSING = re.compile(
    r"""(?:Column|Ambiguous column) '"?(?P<name>.*?)"?'(?: could not be resolved)?(?: for table: '(?P<table>.*?)')?"""
    r"""|Unknown (?:output )?column: (?P<output>\S+)|Unknown table: (?P<source>\S+)"""
)


def _plain(question: Question, relations: Mapping[str, AskedRelation], message: str) -> SqlError:
    """An error of sqlglot in our words, at the name in the text."""
    inner = (one for one in question.tree.find_all(exp.Subquery) if not isinstance(one.this, exp.Select))
    joined = next((one for one in inner if one.this.args.get("joins")), None)
    if joined is not None:
        instead = "write a subquery, as (SELECT a.x, b.y FROM a JOIN b ON a.x = b.x) q"
        return question.text.unsupported(joined, "a join in parentheses here", instead)
    found = _MISSING.search(message)
    if found is None or not any(found.groups()):
        return UnsupportedSql(f"the SELECT cannot be answered: {message.splitlines()[0]}")
    name, table = found["name"] or found["output"] or "", found["table"] or found["source"] or ""
    place = _place(question, name, table)
    sources = [one.alias_or_name for one in question.tree.find_all(exp.Table, exp.Subquery, exp.CTE)]
    if table and table.lower() not in map(str.lower, sources):
        return SqlError(f"unknown table {table} in FROM{near(table, sources)}", *place)
    known = [column for one in relations.values() for column, _ in one.columns]
    if not table and found["output"]:
        table = next((one.table for one in question.tree.find_all(exp.Column) if one.name.lower() == name), "")
    if not table and [one.lower() for one in known].count(name.lower()) > 1:
        return SqlError(f"column {name} is in several tables; write table.{name}", *place)
    return SqlError(unknown("column", name, dict.fromkeys(known), table), *place)


def _place(question: Question, name: str, table: str) -> tuple[int, int]:
    """The first column of the text with a name, of a table if one is named."""
    for one in question.tree.find_all(exp.Column):
        if name.lower() in (one.name.lower(), "") and table.lower() in (one.table.lower(), ""):
            return question.text.at(one)
    return 0, 0
