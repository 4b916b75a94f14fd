"""Clauses and functions that are refused, each with what is accepted instead.

No clause is ignored: ``check_*`` compare the clauses of a node with those that the binder reads. A clause that is
neither read nor listed here is refused too.
"""

from __future__ import annotations

from sqlglot import exp

from freshviews.catalog.rings import aggregate_over
from freshviews.sql.text.parse import Node, SqlText

_CLAUSES: dict[str, tuple[str, str]] = {
    "sort": ("SORT BY in a view", "ORDER BY is accepted: the order in which the view is read"),
    "laterals": ("LATERAL VIEW", "FROM takes tables, views and subqueries"),
    "sample": ("TABLESAMPLE", "name the whole table"),
    "pivots": ("PIVOT", "SUM(CASE WHEN ... THEN ... END) per column is accepted"),
    "cluster": ("CLUSTER BY", "leave it out"),
    "distribute": ("DISTRIBUTE BY", "leave it out"),
    "into": ("SELECT INTO", "CREATE MATERIALIZED VIEW ... AS SELECT is accepted"),
    "locks": ("FOR UPDATE", "leave it out"),
    "by_name": ("BY NAME", "list the columns of each SELECT in one order"),
    "kind": ("SELECT AS STRUCT", "list the columns"),
    "totals": ("WITH TOTALS", "GROUP BY ... WITH ROLLUP has a row of the totals"),
    "version": ("time travel (VERSION AS OF, TIMESTAMP AS OF)", "a view reads its tables as they are now"),
    "hints": ("WITH (...) after a table", "leave it out"),
    "materialized": ("AS [NOT] MATERIALIZED in a WITH query", "leave it out"),
}

_LIMIT = ("order", "limit", "offset")
_LAST = (*_LIMIT, "qualify", "windows")
_READ = {
    exp.Select: ("expressions", "from_", "joins", "where", "group", "having", "distinct", "with_", "hint", *_LAST),
    exp.SetOperation: ("this", "expression", "distinct", "with_", *_LIMIT),
    exp.Subquery: ("this", "alias", "with_", *_LIMIT),
    exp.Group: ("expressions", "all", "rollup", "cube", "grouping_sets"),
    exp.Table: ("this", "db", "catalog", "alias", "joins"),
    exp.CTE: ("this", "alias"),
}

AGGREGATES = frozenset(
    (
        *("count", "sum", "avg", "mean", "min", "max", "count_if", "any", "some", "bool_or", "every", "bool_and"),
        *("min_by", "max_by", "arg_min", "arg_max", "argmin", "argmax", "bit_and", "bit_or", "only_value"),
        *("any_value", "first", "first_value", "last", "last_value", "countif", "approx_count_distinct"),
        *("var_pop", "var_samp", "variance", "stddev_pop", "stddev_samp", "stddev", "std"),
        *("covar_pop", "covar_samp", "corr", "regr_count", "regr_avgx", "regr_avgy", "regr_sxx", "regr_syy"),
        *("regr_sxy", "regr_slope", "regr_intercept", "regr_r2", "cofactor", "covar_matrix", "corr_matrix"),
        *("string_agg", "listagg", "group_concat", "provenance"),
    )
)
"""Accepted aggregate functions, beside those of registered rings."""

GROUPINGS = frozenset(("grouping", "grouping_id"))
"""Functions that return the grouping set of a row."""


def is_aggregate_name(name: str) -> bool:
    """Whether a function of this lower-case name is an aggregate."""
    return name in AGGREGATES or aggregate_over(name) is not None


def _each(names: str, what: str, instead: str) -> dict[str, tuple[str, str]]:
    return {name: (what.format(name), instead) for name in names.split()}


REFUSED_FUNCTIONS: dict[str, tuple[str, str]] = {
    **_each(
        "current_date curdate current_timestamp now localtimestamp current_timezone",
        "function {}, which changes by itself,",
        "write the moment as a constant or join a table that holds it",
    ),
    **_each(
        "rand random randn uuid shuffle monotonically_increasing_id spark_partition_id",
        "function {}, which is not deterministic,",
        "the same rows must always give the same view",
    ),
    **_each(
        "median mode percentile percentile_approx approx_percentile percentile_cont percentile_disc quantile "
        "quantile_cont quantile_disc skewness kurtosis bit_xor product",
        "aggregate function {}",
        "COUNT, SUM, AVG, MIN, MAX, STDDEV, VARIANCE, CORR, MIN_BY, MAX_BY, BOOL_AND, BOOL_OR and others are accepted",
    ),
    **_each(
        "collect_list collect_set array_agg array_concat_agg",
        "aggregate function {}, which gathers all values of a group in one,",
        "values have plain types; STRING_AGG joins them in a text, and a view of the rows, with ORDER BY, has them all",
    ),
    **_each(
        "try_add try_subtract try_multiply try_mod try_sum try_avg try_to_number",
        "function {}",
        "use the one without try_, which refuses the batch where a value does not fit",
    ),
    **_each(
        "window tumble tumble_end hop hop_end",
        "{} here",
        "GROUP BY window(ts, '10 minutes') is accepted, with window.start and window.end; so is FROM TUMBLE(...)",
    ),
    **_each(
        "session_window",
        "{}, whose windows end where no row follows in time,",
        "GROUP BY window(ts, '10 minutes') is accepted; LAG(ts) OVER (ORDER BY ts) has the gap before a row",
    ),
    **_each(
        "category",
        "CATEGORY here",
        "it is an argument of COFACTOR, as in COFACTOR(x, CATEGORY(city)); GROUP BY the column counts its values",
    ),
    **_each(
        "explode explode_outer posexplode inline stack",
        "the generator {}",
        "a row of a table gives one row of a join",
    ),
}
"""Known functions that are refused: what to call each in the error, and what is accepted."""


def check_select(text: SqlText, node: exp.Select) -> None:
    """Raise UnsupportedSql for a clause of SELECT that is not accepted."""
    _check(text, node, exp.Select)
    if not node.expressions:
        raise text.error(node, "SELECT needs at least one column; write *, or name the columns")
    distinct = node.args.get("distinct")
    if distinct is not None and distinct.args.get("on") is not None:
        raise text.unsupported(distinct, "DISTINCT ON", "SELECT DISTINCT, or GROUP BY with MIN and MAX, is accepted")
    group = node.args.get("group")
    if group is not None:
        if group.args.get("all") is False:
            raise text.unsupported(group, "GROUP BY DISTINCT", "leave DISTINCT out")
        _check(text, group, exp.Group)


def check_set_operation(text: SqlText, node: Node) -> None:
    """Raise UnsupportedSql for a refused clause of a UNION, EXCEPT, INTERSECT or query in parentheses."""
    _check(text, node, exp.SetOperation if isinstance(node, exp.SetOperation) else exp.Subquery)


def check_table(text: SqlText, node: exp.Table) -> None:
    """Raise UnsupportedSql for a refused clause after a table in FROM."""
    _check(text, node, exp.Table)
    alias = node.args.get("alias")
    # sqlglot reads ``t@v1`` as a table and its alias ``@v1``.
    if alias is not None and isinstance(alias.this, exp.Parameter):
        raise text.unsupported(alias, "time travel (table@version)", _CLAUSES["version"][1])


def check_cte(text: SqlText, node: exp.CTE) -> None:
    """Raise UnsupportedSql for a refused clause of a WITH query."""
    _check(text, node, exp.CTE)


def _check(text: SqlText, node: Node, kind: type[Node]) -> None:
    for name, value in node.args.items():
        if not value or name in _READ[kind]:
            continue
        where = value[0] if isinstance(value, list) else value
        place = where if isinstance(where, Node) else node
        what, instead = _CLAUSES.get(name, (name.strip("_").replace("_", " ").upper(), "leave it out"))
        raise text.unsupported(place, what, instead)
