"""Finds clauses of a statement that the binder would ignore, so that they are refused.

For each class of tree nodes, a table lists the fields that the binder reads. Any other field that is set is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

from sqlglot import exp

from freshviews.sql.text.operators import SPAN

Node = exp.Expr

_CLAUSES: Mapping[str, tuple[str, str]] = {
    "sort": ("SORT BY in a view", "write ORDER BY, the order in which the view is read"),
    "laterals": ("LATERAL VIEW", "FROM takes tables, views and subqueries"),
    "sample": ("TABLESAMPLE", "name the whole table"),
    "pivots": ("PIVOT here", "write PIVOT in FROM"),
    "cluster": ("CLUSTER BY", "leave it out"),
    "distribute": ("DISTRIBUTE BY", "leave it out"),
    "into": ("SELECT INTO", "write CREATE MATERIALIZED VIEW ... AS SELECT"),
    "locks": ("FOR UPDATE", "leave it out"),
    "by_name": ("BY NAME", "list the columns of each SELECT in one order"),
    "kind": ("SELECT AS STRUCT", "list the columns"),
    "totals": ("WITH TOTALS", "write GROUP BY ... WITH ROLLUP, which adds a row of the totals"),
    "version": ("time travel (VERSION AS OF, TIMESTAMP AS OF)", "a view reads its tables as they are now"),
    "hints": ("WITH (...) after a table", "leave it out"),
    "materialized": ("AS [NOT] MATERIALIZED in a WITH query", "leave it out"),
    "field": ("IN without parentheses", "write IN (1, 2) or IN (SELECT ...)"),
    "unnest": ("IN UNNEST", "write IN (1, 2) or IN (SELECT ...)"),
    "exclude": ("EXCLUDE in a frame", "leave it out"),
    "ilike": ("* ILIKE", "name the columns, or write * EXCEPT (columns)"),
    "with_fill": ("WITH FILL", "leave it out"),
    "purge": ("PURGE", "leave it out"),
    "overwrite": ("INSERT OVERWRITE", "write TRUNCATE TABLE and INSERT between BEGIN and COMMIT"),
    "returning": ("RETURNING", "read the rows with a SELECT"),
    "alternative": ("INSERT OR", "write INSERT ... ON CONFLICT (key) DO UPDATE SET ..."),
    "duplicate": ("ON DUPLICATE KEY", "write ON CONFLICT (key) DO UPDATE SET ..."),
    "tables": ("DELETE without FROM", "write DELETE FROM t WHERE ..."),
    "using": ("USING here", "write MERGE INTO t USING s ON ..."),
    "partition": ("PARTITION", "name the column of the partition like the others"),
    "modes": ("a mode of a transaction", "write only BEGIN"),
    "chain": ("AND CHAIN", "write BEGIN after COMMIT"),
    "savepoint": ("a savepoint", "ROLLBACK takes back all since BEGIN"),
    "style": ("EXTENDED and FORMATTED", "write DESCRIBE name"),
}

_NAME = "write a name of letters, or a name in backquotes"

_THIS = ("this",)
_LISTED = ("expressions",)
_SIDES = ("this", "expression")
_LAST = ("order", "limit", "offset")
_SETS = (*_SIDES, "distinct", "with_", *_LAST)
_SELECT = (
    *("expressions", "from_", "joins", "where", "group", "having", "distinct", "with_", "hint", "qualify", "windows"),
)
_BINARY = (
    *(exp.Add, exp.Sub, exp.Mul, exp.IntDiv, exp.Mod, exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.And, exp.Or),
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Is, exp.Escape),
    *(exp.Extract, exp.WithinGroup, exp.Filter),
)
_UNARY = (
    *(exp.Paren, exp.Neg, exp.Not, exp.BitwiseNot, exp.Boolean, exp.Var, exp.From, exp.Where, exp.Having, exp.Qualify),
    exp.HexString,
    *(exp.Exists, exp.Any, exp.All, exp.IgnoreNulls, exp.DataTypeParam, exp.DefaultColumnConstraint),
    *(exp.CommentColumnConstraint, exp.SchemaCommentProperty, exp.UniqueColumnConstraint),
)
_LISTS = (exp.Tuple, exp.Array, exp.Rollup, exp.Cube, exp.GroupingSets, exp.Properties, exp.AlterSet, exp.Hint, exp.Set)
_EMPTY = (exp.Null, exp.IndexParameters, exp.MaterializedProperty, exp.PrimaryKeyColumnConstraint)

_FIELDS: dict[type[Node], tuple[str, ...]] = {
    **dict.fromkeys(_BINARY, _SIDES),
    **dict.fromkeys(_UNARY, _THIS),
    **dict.fromkeys(_LISTS, _LISTED),
    **dict.fromkeys(_EMPTY, ()),
    **dict.fromkeys((exp.Except, exp.Intersect), _SETS),
    exp.Union: (*_SETS, "by_name"),
    **dict.fromkeys((exp.Like, exp.ILike), (*_SIDES, "negate")),
    exp.RegexpLike: _SIDES,
    exp.Select: (*_SELECT, *_LAST),
    exp.Subquery: ("this", "alias", "with_", "joins", *_LAST),
    exp.Values: ("expressions", "alias", *_LAST),
    exp.Table: ("this", "db", "catalog", "alias", "joins"),
    exp.TableAlias: ("this", "columns"),
    exp.CTE: ("this", "alias"),
    exp.With: ("expressions", "recursive"),
    exp.Join: ("this", "on", "using", "side", "kind", "method", "match_condition"),
    exp.Lateral: ("this", "alias"),
    exp.Group: ("expressions", "all", "rollup", "cube", "grouping_sets"),
    exp.Order: ("this", "expressions"),
    exp.Ordered: ("this", "desc", "nulls_first"),
    exp.Limit: ("expression", "limit_options", "expressions"),
    exp.LimitOptions: ("percent", "rows", "with_ties"),
    exp.Fetch: ("direction", "count", "limit_options"),
    exp.Offset: ("expression",),
    exp.Window: ("this", "partition_by", "order", "spec", "alias", "over"),
    exp.WindowSpec: ("kind", "start", "start_side", "end", "end_side"),
    exp.Distinct: ("expressions", "on"),
    exp.Star: ("except_", "replace", "rename"),
    exp.Alias: ("this", "alias"),
    exp.Column: ("this", "table", "db", "catalog"),
    exp.Dot: _SIDES,
    exp.Identifier: ("this", "quoted"),
    exp.Literal: ("this", "is_string"),
    exp.Anonymous: ("this", "expressions"),
    exp.JoinHint: ("this", "expressions"),
    exp.Div: (*_SIDES, "typed", "safe"),
    exp.DPipe: (*_SIDES, "safe"),
    exp.Between: ("this", "low", "high", "symmetric"),
    exp.In: ("this", "expressions", "query"),
    exp.Case: ("this", "ifs", "default"),
    exp.If: ("this", "true"),
    exp.Cast: ("this", "to", "format"),
    exp.TryCast: ("this", "to", "format", "safe", "requires_string"),
    exp.Trim: ("this", "position", "expression"),
    exp.Interval: ("this", "unit", "fraction_in_string"),
    exp.IntervalSpan: _SIDES,
    exp.DataType: ("this", "expressions"),
    exp.Create: ("this", "kind", "expression", "properties", "exists", "replace"),
    exp.Drop: ("this", "tables", "kind", "exists", "materialized", "cascade"),
    exp.Alter: ("this", "kind", "actions", "exists"),
    exp.AlterColumn: ("this", "dtype"),
    exp.Schema: ("this", "expressions"),
    exp.ColumnDef: ("this", "kind", "constraints", "position", "exists"),
    exp.ColumnConstraint: ("this", "kind"),
    exp.ColumnPosition: ("this", "position"),
    exp.Constraint: ("this", "expressions"),
    exp.NotNullColumnConstraint: ("allow_null",),
    exp.PrimaryKey: ("expressions", "include"),
    exp.ForeignKey: ("expressions", "reference"),
    exp.Reference: ("this", "options"),
    exp.Property: ("this", "value"),
    exp.Insert: ("this", "expression", "source", "conflict", "by_name", "default", "with_"),
    exp.OnConflict: ("expressions", "action", "conflict_keys", "where"),
    exp.Delete: ("this", "where"),
    exp.Update: ("this", "expressions", "from_", "where"),
    exp.Merge: ("this", "using", "on", "whens"),
    exp.Whens: _LISTED,
    exp.When: ("matched", "source", "condition", "then"),
    exp.TruncateTable: _LISTED,
    **dict.fromkeys((exp.Transaction, exp.Commit, exp.Rollback), ()),
    exp.Describe: ("this", "kind"),
    exp.Comment: ("this", "kind", "expression"),
    exp.Placeholder: _THIS,
    exp.UserDefinedFunction: ("this", "expressions", "wrapped"),
    exp.ReturnsProperty: ("this", "is_table"),
    **dict.fromkeys((exp.Return, exp.LanguageProperty, exp.StabilityProperty, exp.FileFormatProperty), _THIS),
    exp.SqlReadWriteProperty: _THIS,
    exp.Kwarg: _SIDES,
}
READ: Mapping[type[Node], frozenset[str]] = {kind: frozenset(names) for kind, names in _FIELDS.items()}

DATA = (exp.Insert, exp.Delete, exp.Update, exp.Merge, exp.TruncateTable)
"""Statements that change rows."""
_STATEMENTS = (
    *(exp.Create, exp.Drop, exp.Alter, *DATA, exp.Transaction, exp.Commit, exp.Rollback, exp.Describe),
)
_NAMED: Mapping[type[Node], str] = {exp.Alias: "alias", exp.TableAlias: "this", exp.ColumnDef: "this"}
_WITH_ARGUMENTS = (exp.Anonymous, exp.In)
_IN_ORDER = (
    *(("from_", "FROM"), ("where", "WHERE"), ("group", "GROUP BY"), ("having", "HAVING")),
    *(("windows", "WINDOW"), ("order", "ORDER BY")),
)
_IN_FROM = (exp.From, exp.Join, exp.Lateral, exp.Subquery, exp.Merge)


def unread(nodes: Iterable[Node]) -> tuple[Node, str, str] | None:
    """The place, the name and the remedy of the first clause that the binder does not read; None if it reads all.

    ``nodes``: the nodes of a tree, the root first; statements that are refused as a whole have none.
    """
    found = list(nodes)
    return ignored(found) if found and isinstance(found[0], _STATEMENTS) else None


def ignored(nodes: Iterable[Node]) -> tuple[Node, str, str] | None:
    """As ``unread``, of any tree."""
    for node in nodes:
        read = READ.get(type(node))
        if read is None:
            continue
        for name, value in node.args.items():
            if value and name not in read:
                where = value[0] if isinstance(value, list) else value
                what, instead = _CLAUSES.get(name, (name.strip("_").replace("_", " ").upper(), "leave it out"))
                return where if isinstance(where, Node) else node, what, instead
        misplaced = _misplaced(node)
        if misplaced is not None:
            return misplaced
    return None


def _misplaced(node: Node) -> tuple[Node, str, str] | None:
    """The place, the name and the remedy of an argument that has no meaning at its place; None if it has one."""
    kind = type(node)
    named = node.args.get(_NAMED.get(kind, ""))
    if kind is exp.TableAlias and isinstance(named, exp.Parameter):
        # sqlglot reads t@v1 as a table and its alias.
        return node, "time travel (table@version)", _CLAUSES["version"][1]
    if named is not None and not isinstance(named, exp.Identifier):
        return node, "a string as a name", _NAME
    if kind is exp.Column and not isinstance(node.this, (exp.Identifier, exp.Star)):
        return node, "a string as a name", _NAME
    values = node.expressions if kind in _WITH_ARGUMENTS else ()
    bare = next((one for one in values if isinstance(one, (exp.Select, exp.SetOperation))), None)
    if bare is not None:
        what = "a subquery without its own parentheses among values"
        return bare, what, "f((SELECT ...)) and IN (SELECT ...) are accepted"
    natural = kind is exp.Join and str(node.args.get("method")).upper() == "NATURAL"
    if natural and (node.args.get("on") or node.args.get("using")):
        return node, f"{node.args['method']} JOIN with ON or USING", "write one of them"
    if kind is exp.CTE and node.args.get("materialized") is not None:
        return node, *_CLAUSES["materialized"]
    if kind is exp.Alias and not isinstance(node.parent, (exp.Select, exp.Star)):
        return node, "a name for an expression here", "only the list of a SELECT has names"
    if kind is exp.Subquery and node.args.get("alias") is not None and not isinstance(node.parent, _IN_FROM):
        return node, "a name for a query here", "only FROM and WITH name queries"
    if kind is exp.Select and node.args.get("joins") and node.args.get("from_") is None:
        return node, "JOIN without FROM", "FROM a JOIN b ON ... is accepted"
    if kind is exp.Select:
        written = [(_first(node.args[name]), word) for name, word in _IN_ORDER if node.args.get(name)]
        for (clause, word), (early, later) in pairwise(one for one in written if SPAN in one[0].meta):
            if early.meta[SPAN] < clause.meta[SPAN]:
                return early, f"{later} before {word}", f"write {word} before {later}"
    builds = kind is exp.Window and node.args.get("alias") is not None
    if builds and any(node.args.get(name) for name in ("partition_by", "order", "spec")):
        return node, "a window that refers to another one", "write PARTITION BY and ORDER BY in each"
    return None


def _first(clause: Node | list[Node]) -> Node:
    return clause[0] if isinstance(clause, list) else clause


def unknown_nodes(nodes: Iterable[Node]) -> Iterator[Node]:
    """The nodes whose class the binder does not know, so that it cannot have read them."""
    return (node for node in nodes if type(node) not in READ)
