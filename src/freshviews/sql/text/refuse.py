"""Refuses unsupported functions and clauses, with messages that name an accepted alternative."""

from __future__ import annotations

from freshviews.catalog.known_functions import is_own_aggregate
from freshviews.catalog.rings import aggregate_over

AGGREGATES = frozenset(
    (
        *("count", "sum", "avg", "mean", "min", "max", "count_if", "any", "some", "bool_or", "every", "bool_and"),
        *("min_by", "max_by", "arg_min", "arg_max", "argmin", "argmax", "bit_and", "bit_or", "only_value"),
        *("any_value", "first", "first_value", "last", "last_value", "countif", "approx_count_distinct"),
        *("var_pop", "var_samp", "variance", "stddev_pop", "stddev_samp", "stddev", "std"),
        *("covar_pop", "covar_samp", "corr", "regr_count", "regr_avgx", "regr_avgy", "regr_sxx", "regr_syy"),
        *("regr_sxy", "regr_slope", "regr_intercept", "regr_r2", "cofactor", "covar_matrix", "corr_matrix"),
        *("string_agg", "listagg", "group_concat", "provenance", "percentile", "median", "percentile_cont"),
        *("percentile_disc", "percentile_approx", "approx_percentile", "bit_xor", "skewness", "kurtosis", "mode"),
        *("try_sum", "try_avg"),
    )
)
"""Accepted aggregate functions, besides those of registered rings and of users."""

GROUPINGS = frozenset(("grouping", "grouping_id"))
"""Functions that return the grouping set of a row."""


def is_aggregate_name(name: str) -> bool:
    """True if a function of this lower-case name is an aggregate."""
    return name in AGGREGATES or aggregate_over(name) is not None or is_own_aggregate(name)


def _each(names: str, what: str, instead: str) -> dict[str, tuple[str, str]]:
    return {name: (what.format(name), instead) for name in names.split()}


CLOCK_INSTEAD = (
    "compare the clock only in WHERE, ON or HAVING of a view, with a value of the rows of one table, view or group, "
    "as in ts > now() - INTERVAL '1' HOUR; elsewhere all rows would change whenever time passes"
)
"""Where a condition may call the clock."""

REFUSED_FUNCTIONS: dict[str, tuple[str, str]] = {
    **_each("current_date curdate current_timestamp now localtimestamp", "{} here", CLOCK_INSTEAD),
    **_each(
        "current_time current_timezone",
        "function {}, which changes by itself,",
        "write it as a constant or join a table that holds it",
    ),
    **_each(
        "current_user session_user user", "function {}, which depends on the session,", "write the user as a constant"
    ),
    **_each(
        "rand random randn uuid shuffle monotonically_increasing_id spark_partition_id",
        "function {}, which is not deterministic,",
        "a view must depend on its tables alone",
    ),
    **_each(
        "quantile quantile_cont quantile_disc product",
        "aggregate function {}",
        "COUNT, SUM, AVG, MIN, MAX, STDDEV, VARIANCE, CORR, MIN_BY, MAX_BY, PERCENTILE, MEDIAN and others are accepted",
    ),
    **_each(
        "collect_list collect_set array_agg array_concat_agg",
        "aggregate function {}, which collects all values of a group,",
        "columns have plain types; STRING_AGG joins values as a text, and a view with ORDER BY lists the rows",
    ),
    **_each(
        "window tumble tumble_end hop hop_end",
        "{} here",
        "GROUP BY window(ts, '10 minutes') is accepted, with window.start and window.end; so is FROM TUMBLE(...)",
    ),
    **_each(
        "session_window",
        "{} here",
        "GROUP BY session_window(ts, '10 minutes') is accepted, with session_window.start and session_window.end",
    ),
    **_each(
        "category",
        "CATEGORY here",
        "it is an argument of COFACTOR, as in COFACTOR(x, CATEGORY(city)); GROUP BY the column counts its values",
    ),
    **_each(
        "array map struct named_struct map_from_arrays",
        "{}(...), a value made of several,",
        "columns have plain types; IN (1, 2) compares with each of several values",
    ),
    **_each(
        "explode explode_outer posexplode inline stack",
        "the generator {}",
        "a row of a table can only give one row of a join",
    ),
}
"""Functions that are known and refused: their name in the error, and what is accepted."""

WITHOUT_PARENTHESES = frozenset(
    ("current_date", "current_time", "current_timestamp", "localtimestamp", "current_user", "session_user", "user")
)
"""Refused functions that are called without parentheses, unless a column has the name."""
