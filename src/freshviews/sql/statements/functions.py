"""Converts CREATE FUNCTION to the definition of a user's function. Also converts DROP FUNCTION."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp
from sqlglot.dialects.spark import Spark

from freshviews.catalog.catalog import Catalog, Statement, unknown
from freshviews.catalog.functions import (
    DropFunction,
    FunctionDef,
    Parameter,
    class_in,
    function_in,
    python_aggregate,
    python_function,
)
from freshviews.catalog.known_functions import is_called
from freshviews.catalog.rings import aggregate_over
from freshviews.errors import NameProblem
from freshviews.expr.nodes import Column, Expr
from freshviews.sql.expressions.build import Fault
from freshviews.sql.expressions.cast import cast
from freshviews.sql.expressions.expression import bind_body
from freshviews.sql.expressions.functions import FUNCTION_NAMES
from freshviews.sql.text.parse import Node, SqlText
from freshviews.sql.text.plainer import is_aggregate_definition
from freshviews.sql.text.typenames import type_of
from freshviews.types import SqlType

_ACCEPTED = "CREATE FUNCTION f(x INT) RETURNS INT RETURN x + 1 is accepted"
_PYTHON = "CREATE FUNCTION f(x INT) RETURNS INT USING python 'module:function' is accepted"
_AGGREGATE = "CREATE AGGREGATE FUNCTION f(x INT) RETURNS INT USING python 'module:class' is accepted"


def created_function(text: SqlText, node: exp.Create, catalog: Catalog) -> tuple[Statement, ...]:
    """The statements of CREATE FUNCTION: none if IF NOT EXISTS makes it void. Raises SqlError with the place."""
    head = node.this
    if not isinstance(head, exp.UserDefinedFunction) or not isinstance(head.this, exp.Table):
        raise text.unsupported(node, "this CREATE FUNCTION", _ACCEPTED)
    name = head.this.name
    if head.this.args.get("db") is not None:
        raise text.error(head, f"{text.of(head.this)}: write the name of the function without a schema")
    refusal = name_refusal(name)
    if refusal:
        raise NameProblem(refusal, *text.at(head))
    known = catalog.functions.get(name.lower())
    if node.args.get("replace"):
        if node.args.get("exists"):
            raise text.error(node, "OR REPLACE and IF NOT EXISTS exclude each other; leave out one")
    elif known is not None:
        if node.args.get("exists"):
            return ()
        message = f"function {known.name} exists already; DROP it or write CREATE OR REPLACE"
        raise NameProblem(message, *text.at(head))
    _check_callers(text, head, name, catalog)
    parameters = tuple(_parameters(text, head))
    returns = _returns(text, node)
    whole, body = text.whole(node).strip(), node.expression
    aggregate = _is_aggregate(whole)
    if _language(text, node) == "PYTHON":
        return (_python(text, node, name, parameters, returns, aggregate),)
    if aggregate:
        raise text.unsupported(head, "an AGGREGATE FUNCTION in SQL", _AGGREGATE)
    if not isinstance(body, exp.Return) or body.this is None:
        raise text.error(node, f"function {name} has no RETURN; {_ACCEPTED}")
    query = body.find(exp.Query)
    if query is not None:
        raise text.unsupported(
            query,
            "a subquery in a function",
            "write the subquery in a plain view, or join in the query that calls the function",
        )
    function = FunctionDef(name, parameters, returns, whole, text.whole(body.this))
    values: dict[str, Expr] = {one.name.lower(): Column(one.name, one.type) for one in parameters}
    made = bind_body(function, text, body.this, values)
    if is_called(name):
        raise text.error(head, f"function {name} calls itself; choose another name for it")
    try:
        if returns is not None:
            cast(made, returns)
    except Fault as fault:
        raise text.error(body.this, f"function {name} returns {returns}: {fault}") from None
    return (function,)


def name_refusal(name: str) -> str:
    """Why a function of a user cannot have a name; empty if it can."""
    if name.lower() in FUNCTION_NAMES:
        return f"{name} is a function of SQL; choose another name"
    return f"{name} is the aggregate of a ring; choose another name" if aggregate_over(name) is not None else ""


def dropped_function(text: SqlText, node: exp.Drop, catalog: Catalog) -> tuple[Statement, ...]:
    """The statement of DROP FUNCTION, none if IF EXISTS makes it void. Raises NameProblem."""
    targets = node.args.get("tables") or [node.this]
    if len(targets) != 1:
        raise text.unsupported(targets[1], "DROP of several names", "write one DROP per function")
    target = targets[0]
    known = catalog.functions.get(target.name.lower())
    if known is None:
        if node.args.get("exists"):
            return ()
        names = [one.name for one in catalog.functions.values()]
        raise NameProblem(unknown("function", target.name, names), *text.at(target))
    _check_callers(text, target, known.name, catalog)
    return (DropFunction(known.name),)


def _check_callers(text: SqlText, node: Node, name: str, catalog: Catalog) -> None:
    callers = [one for one in catalog.callers_of(name) if one.lower() != name.lower()]
    if callers:
        message = f"function {name} is still called by {', '.join(callers)}; DROP them first, which one script may do"
        raise NameProblem(message, *text.at(node))


def _parameters(text: SqlText, head: exp.UserDefinedFunction) -> list[Parameter]:
    found: list[Parameter] = []
    for node in head.expressions:
        if not isinstance(node, exp.ColumnDef) or node.kind is None:
            raise text.error(node, f"parameter {text.of(node)} needs a type; {_ACCEPTED}")
        if any(one.name.lower() == node.name.lower() for one in found):
            raise text.error(node, f"parameter {node.name} is given twice; choose another name")
        made = Parameter(node.name, type_of(text, node.kind))
        for constraint in node.constraints:
            kind = constraint.kind
            if isinstance(kind, exp.DefaultColumnConstraint):
                made = replace(made, default=_default(text, kind.this, made))
            elif not isinstance(kind, exp.CommentColumnConstraint):
                what = f"{text.of(constraint)} of a parameter"
                raise text.unsupported(constraint, what, "DEFAULT and COMMENT are accepted")
        if found and found[-1].default and not made.default:
            message = f"parameter {made.name} needs a DEFAULT, as {found[-1].name} before it has one"
            raise text.error(node, message)
        found.append(made)
    return found


def _default(text: SqlText, node: Node, parameter: Parameter) -> str:
    query = node.find(exp.Query)
    if query is not None:
        raise text.unsupported(query, "a subquery as a DEFAULT", "write a constant")
    try:
        cast(bind_body(FunctionDef(f"the DEFAULT of {parameter.name}", (), None), text, node, {}), parameter.type)
    except Fault as fault:
        raise text.error(node, f"the DEFAULT of {parameter.name}: {fault}") from None
    return text.whole(node)


def _properties(node: exp.Create) -> list[Node]:
    clause = node.args.get("properties")
    return list(clause.expressions) if clause is not None else []


def _returns(text: SqlText, node: exp.Create) -> SqlType | None:
    for part in _properties(node):
        if isinstance(part, exp.ReturnsProperty):
            if part.args.get("is_table"):
                raise text.unsupported(part, "a function that returns a TABLE", "write a plain view")
            return type_of(text, part.this)
    return None


def _language(text: SqlText, node: exp.Create) -> str:
    """SQL or PYTHON. Raises UnsupportedSql for a clause that is not accepted."""
    language = "SQL"
    for part in _properties(node):
        if isinstance(part, exp.LanguageProperty | exp.FileFormatProperty):
            language = part.name.upper()
            if language not in ("SQL", "PYTHON"):
                raise text.unsupported(part, f"a function in {part.name}", f"{_ACCEPTED}; {_PYTHON}")
        elif isinstance(part, exp.TemporaryProperty):
            raise text.unsupported(node, "CREATE TEMPORARY FUNCTION", "write CREATE FUNCTION")
        elif isinstance(part, exp.StabilityProperty):
            if part.name.upper() != "IMMUTABLE":
                raise text.unsupported(
                    part, "a function that is not DETERMINISTIC", "a view needs the same result at every call"
                )
        elif isinstance(part, exp.SqlReadWriteProperty):
            if part.name.upper() != "CONTAINS SQL":
                raise text.unsupported(part, part.name.upper(), "leave it out: a function reads no table")
        elif not isinstance(part, exp.ReturnsProperty | exp.SchemaCommentProperty):
            raise text.unsupported(part, text.of(part), "RETURNS, LANGUAGE SQL, DETERMINISTIC and COMMENT are accepted")
    return language


def _is_aggregate(statement: str) -> bool:
    """True for CREATE AGGREGATE FUNCTION."""
    tokens = Spark().tokenize(statement)
    return any(is_aggregate_definition(tokens, at) for at in range(min(4, len(tokens))))


def _python(
    text: SqlText,
    node: exp.Create,
    name: str,
    parameters: tuple[Parameter, ...],
    returns: SqlType | None,
    aggregate: bool,
) -> FunctionDef:
    reference = node.expression
    accepted = _AGGREGATE if aggregate else _PYTHON
    if returns is None:
        raise text.error(node, f"function {name} in Python needs RETURNS and a type")
    if not isinstance(reference, exp.Literal) or not reference.is_string:
        raise text.error(node, f"function {name} names no function of Python; {accepted}")
    takes = tuple(one.type for one in parameters)
    try:
        if aggregate:
            made = python_aggregate(name, class_in(reference.name), takes, returns, reference=reference.name)
        else:
            made = python_function(name, function_in(reference.name), takes, returns, reference=reference.name)
    except ValueError as error:
        raise text.error(reference, f"function {name}: {error}") from None
    return replace(made, parameters=parameters, sql=text.whole(node).strip())
