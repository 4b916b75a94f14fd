"""Random queries, asked of live Spark and of freshviews: ``make spark-agreement``.

Queries are made from the tables of functions, aggregates and calls, over awkward values, of functions over frames, and
by the generators of the agreement tests. Rows, types of values, and errors must be those of Spark in ANSI mode. Each
query is counted under its construct as *equal*, *refused* (freshviews does not take it), *only here* (Spark's analysis
refuses it) or *different*.
``python -m tests.agreement.spark_agreement --seed S --only N`` repeats one query.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import math
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from freshviews import Database
from freshviews.errors import FreshviewsError, SqlError
from freshviews.sql.expressions.functions import FUNCTIONS
from freshviews.sql.text.refuse import AGGREGATES
from tests.agreement.choices import Choices, seeded
from tests.agreement.scenario import Scenario
from tests.agreement.sql_dependent import dependent_scenario
from tests.agreement.sql_places import places_scenario, range_scenario
from tests.agreement.sql_queries import scenario
from tests.agreement.sql_sets import set_scenario
from tests.agreement.sql_top import top_scenario
from tests.agreement.sql_windows import windows_scenario
from tests.sql.function_calls import CALLS, TYPES, VALUES

RECORDED = Path(__file__).with_name("spark_agreement.json")
"""Queries with the answers of Spark, which a test of ``make test`` asks freshviews again."""

Row = tuple[Any, ...]
ERROR, REFUSED = "an error", "refused"
Answer = str | list[Row]
"""The rows of a query; ERROR if computing them fails, REFUSED if the query is not taken."""


@dataclass(frozen=True)
class Table:
    """A table: its columns with their types, and its rows."""

    name: str
    columns: tuple[tuple[str, str], ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Asked:
    """A query over tables. ``before``: views that it reads, by name."""

    construct: str
    tables: tuple[Table, ...]
    query: str
    before: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        rows = [f"{one.name}({', '.join(map(' '.join, one.columns))}): {list(one.rows)}" for one in self.tables]
        return "\n".join([*rows, *(f"{name} AS {query}" for name, query in self.before), self.query])


# Queries


_COLUMN = re.compile(r"\b[a-z][0-9]\b")
_KINDS = "yilxfpbsdtnwkvr"
_TYPES = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(10, 2)", "DECIMAL(18, 0)", "STRING",
          "DATE", "TIMESTAMP", "BOOLEAN")  # fmt: skip
_OPERATORS = ("+", "-", "*", "/", "%", "div", "||", "=", "<", ">=", "<>", "<=>", "&", "|", "^", "AND", "OR")
_FORMS = (
    "CASE WHEN {b} THEN {0} ELSE {1} END", "CASE {0} WHEN {1} THEN {i} ELSE {n} END", "{0} IN ({1}, {2})",
    "{0} BETWEEN {1} AND {2}", "{s} LIKE {q}", "NOT {b}", "{0} IS NULL", "-{0}", "~{i}", "{d} + {n}", "{d} - {d}",
    "{s} LIKE '%a_'", "{0} IS DISTINCT FROM {1}", "EXTRACT(MONTH FROM {t})", "{t} - INTERVAL '3' HOUR",
)  # fmt: skip
_OWN = {"cofactor", "covar_matrix", "corr_matrix", "provenance", "only_value", "category"}
_OPEN = {"any_value", "first", "first_value", "last", "last_value", "string_agg", "listagg", "group_concat", "max_by",
         "min_by", "arg_max", "arg_min", "argmax", "argmin", "approx_count_distinct"}  # fmt: skip
"""Aggregates whose answer Spark leaves open, at least where rows tie."""
_OF_ANY = ("count", "min", "max")
_LEFT_OPEN = re.compile(r"ANY_VALUE|FIRST|LAST|_BY\(|_AGG\(|LISTAGG|GROUP_CONCAT|PROVENANCE|LIMIT|APPROX_|ROW_NUMBER|"
                        r"LAG|LEAD|NTH_VALUE|COFACTOR|ROWS|_IN_PYTHON", re.IGNORECASE)  # fmt: skip

_SCENARIOS: tuple[Callable[[Choices], Scenario], ...] = (
    scenario, scenario, places_scenario, range_scenario, set_scenario, top_scenario, windows_scenario,
    dependent_scenario,
)  # fmt: skip


def literal(value: Any, kind: str) -> str:
    """A value as Spark's SQL writes it, of a type."""
    kind = kind.replace("TIMESTAMP", "TIMESTAMP_NTZ") if kind == "TIMESTAMP" else kind
    if value is None:
        return f"CAST(NULL AS {kind})"
    if isinstance(value, dt.timedelta):
        seconds = Decimal(value // dt.timedelta(microseconds=1)).scaleb(-6)
        return f"CAST(CAST({seconds:f} AS INTERVAL DAY TO SECOND) AS {kind})"
    if "YEAR" in kind or "MONTH" in kind:
        return f"CAST(CAST({value} AS INTERVAL MONTH) AS {kind})"
    text = str(value).replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\t", "\\t")
    return f"'{text}'" if kind == "STRING" else f"CAST('{text}' AS {kind})"


def queries(choose: Choices) -> Iterator[Asked]:
    """The queries of one number: a call, an aggregate, a function over a frame, or all views of a scenario."""
    shape = choose.between(0, 99)
    if shape < 40:
        yield _over_rows(choose, *_call(choose))
    elif shape < 60:
        yield _over_rows(choose, *_form(choose))
    elif shape < 80:
        yield _aggregate(choose)
    elif shape < 88:
        yield _over_frame(choose)
    else:
        yield from _of_scenario(choose)


def _argument(choose: Choices, kind: str) -> str:
    """A column of a kind, or one of its awkward values."""
    if choose.chance(75):
        return f"{kind}{choose.between(0, 2)}"
    value = None if choose.chance(25) else choose.pick(VALUES[kind])
    return literal(value, TYPES[kind]).replace("TIMESTAMP_NTZ", "TIMESTAMP")


def _call(choose: Choices) -> tuple[str, str]:
    if choose.chance(50):
        template = choose.pick(CALLS)
        called = template.partition("(")[0] if "(" in template else "operators"
        return called, _COLUMN.sub(lambda found: _argument(choose, found[0][0]), template)
    name = choose.pick(sorted(FUNCTIONS))
    most = min(FUNCTIONS[name].greatest, FUNCTIONS[name].least + 2)
    text = ""
    for _ in range(30):
        count = choose.between(FUNCTIONS[name].least, most)
        text = f"{name}({', '.join(_argument(choose, choose.pick(_KINDS)) for _ in range(count))})"
        if _is_taken(f"SELECT {text} AS y FROM q"):
            break
    return name, text


def _form(choose: Choices) -> tuple[str, str]:
    shape = choose.between(0, 2)
    if shape == 0:
        function, kind = choose.pick(("CAST", "CAST", "TRY_CAST")), choose.pick(_TYPES)
        return f"{function} AS {kind}", f"{function}({_argument(choose, choose.pick(_KINDS + 'mh'))} AS {kind})"
    if shape == 1:
        operator, left = choose.pick(_OPERATORS), choose.pick(_KINDS)
        right = left if choose.chance(50) else choose.pick(_KINDS)
        return operator, f"{_argument(choose, left)} {operator} {_argument(choose, right)}"
    form, kind = choose.pick(_FORMS), choose.pick(_KINDS)
    of = {name: _argument(choose, name) for name in "bsdtnqi"}
    return form, form.format(*(_argument(choose, kind) for _ in range(3)), **of)


def _aggregate(choose: Choices) -> Asked:
    name = choose.pick(sorted(AGGREGATES - _OWN - _OPEN))
    call = ""
    for _ in range(30):
        call = _aggregate_call(choose, name)
        if _is_taken(f"SELECT {call} AS y FROM q"):
            break
    rest = choose.pick(("", "", " GROUP BY b0", " GROUP BY b0 HAVING COUNT(*) > 1", " WHERE n0 > 1"))
    group = "b0, " if "GROUP BY" in rest else ""
    return _over_rows(choose, name.upper(), call, rest, group, choose.between(0, 9))


def _aggregate_call(choose: Choices, name: str) -> str:
    filtered = choose.pick(("", "", "", f" FILTER (WHERE {_argument(choose, 'b')})"))
    fraction = choose.pick(("0.5", "0", "1", "0.3", "0.99", "1.5"))
    # Where FILTER or another argument excludes a row, Spark may compute a CAST of a text all the same.
    kinds = _KINDS if name in _OF_ANY else _KINDS.replace("s", "").replace("k", "")
    value = _argument(choose, choose.pick(kinds))
    if name in ("percentile_cont", "percentile_disc"):
        return f"{name}({fraction}) WITHIN GROUP (ORDER BY {value}{choose.pick(('', ' DESC'))}){filtered}"
    if name == "mode":
        return f"mode() WITHIN GROUP (ORDER BY {value}{choose.pick(('', ' DESC'))}){filtered}"
    if "percentile" in name:
        return f"{name}({value}, {fraction}){filtered}"
    distinct = "DISTINCT " if choose.chance(20) else ""
    others = choose.between(0, 1) if name != "count" else choose.between(0, 2)
    arguments = [value, *(_argument(choose, choose.pick(kinds)) for _ in range(others))]
    return f"{name}({distinct}{', '.join(arguments)}){filtered}"


def _over_rows(
    choose: Choices, construct: str, item: str, rest: str = "", group: str = "", rows: int | None = None
) -> Asked:
    """A query of one item over a table of the columns that it names."""
    query = f"SELECT {group}{item} AS y FROM q{rest}"
    columns = sorted({*_COLUMN.findall(re.sub(r"'(?:[^'\\]|\\.)*'", "''", query)), "n0"})
    values = [[*VALUES[name[0]], None] if name != "b0" else [True, False, None] for name in columns]
    count = choose.between(1, 3) if rows is None else rows
    found = tuple(tuple(choose.pick(one) for one in values) for _ in range(count))
    return Asked(construct, (Table("q", tuple((name, TYPES[name[0]]) for name in columns), found),), query)


_FRAMED: dict[str, tuple[str, tuple[Any, ...]]] = {
    "n0": ("INT", (0, 1, 2, 3, -1)), "n1": ("INT", (5, 7, -2, 100)), "x0": ("DOUBLE", (0.5, -1.5, 2.25, 1e3, 0.0)),
    "w0": ("DECIMAL(12, 2)", tuple(map(Decimal, ("0.00", "1.50", "-2.25", "99.99")))),
    "s0": ("STRING", ("", "a", "b", "ab")),
    "d0": ("DATE", (dt.date(2024, 1, 31), dt.date(2024, 2, 29), dt.date(2024, 3, 1), dt.date(2023, 12, 31))),
    "b0": ("BOOLEAN", (True, False)),
}  # fmt: skip
_OF_PLACES = ("FIRST_VALUE", "LAST_VALUE", "NTH_VALUE", "FIRST", "LAST", "ANY_VALUE", "LAG", "LEAD", "STRING_AGG")
_NUMBERS = ("n0", "n1", "x0", "w0")
_OF_NUMBERS = ("SUM", "AVG", "STDDEV", "STDDEV_POP", "VARIANCE", "VAR_POP", "SKEWNESS", "KURTOSIS", "MEAN")
_OF_PAIRS = ("CORR", "COVAR_POP", "COVAR_SAMP", "REGR_SLOPE", "REGR_COUNT", "REGR_R2", "REGR_AVGX")
_OF_INTEGERS = ("BIT_AND", "BIT_OR", "BIT_XOR")
_BOUNDS = ("UNBOUNDED PRECEDING", "2 PRECEDING", "1 PRECEDING", "CURRENT ROW", "1 FOLLOWING", "3 FOLLOWING",
           "UNBOUNDED FOLLOWING")  # fmt: skip
_UNIQUE_ORDERS = ("id", "id DESC", "n0, id", "x0 DESC NULLS LAST, id", "s0 NULLS LAST, id DESC", "w0 DESC, b0, id")
_EQUAL_ORDERS = ("n0", "n0 DESC", "x0 NULLS LAST", "w0 DESC NULLS FIRST", "s0, b0")


def _over_frame(choose: Choices) -> Asked:
    """A function over a frame whose rows the order determines."""
    value, kind = choose.pick(tuple(_FRAMED)), choose.between(0, 9)
    if kind < 4:
        name = choose.pick(_OF_PLACES)
        more = {"NTH_VALUE": f", {choose.between(1, 3)}", "LAG": f", {choose.between(0, 3)}"}.get(name, "")
        call = f"{name}({value}{more}){choose.pick(('', ' IGNORE NULLS', ' RESPECT NULLS'))}"
        call = f"STRING_AGG(CAST({value} AS STRING), ';')" if name == "STRING_AGG" else call
        order = choose.pick(_UNIQUE_ORDERS)
        frame = "" if name in ("LAG", "LEAD") else _frame_over(choose, order)
    elif kind < 5:
        name = choose.pick(("ROW_NUMBER()", "NTILE(3)", "RANK()", "DENSE_RANK()", "PERCENT_RANK()", "CUME_DIST()"))
        call, frame = name, ""
        order = choose.pick(_UNIQUE_ORDERS if name in ("ROW_NUMBER()", "NTILE(3)") else _EQUAL_ORDERS)
    else:
        name, call = _aggregate_of_frame(choose, value)
        order = choose.pick((*_UNIQUE_ORDERS, *_EQUAL_ORDERS))
        frame = _frame_over(choose, order)
    partition = choose.pick(("", "PARTITION BY n0 ", "PARTITION BY b0, s0 "))
    query = f"SELECT id, {call} OVER ({partition}ORDER BY {order}{frame}) AS y FROM q"
    ids = sorted({choose.between(0, 20) for _ in range(choose.between(1, 12))})
    columns = (("id", "INT"), *((column, type_) for column, (type_, _) in _FRAMED.items()))
    rows = tuple((i, *(choose.pick((*values, None)) for _, values in _FRAMED.values())) for i in ids)
    return Asked(f"{name.partition('(')[0]} OVER", (Table("q", columns, rows),), query)


def _aggregate_of_frame(choose: Choices, value: str) -> tuple[str, str]:
    """An aggregate and its call."""
    one, other = choose.pick(_NUMBERS), choose.pick(_NUMBERS)
    name, arguments = choose.pick((
        (choose.pick(_OF_NUMBERS), one), (choose.pick(_OF_NUMBERS), one), (choose.pick(_OF_PAIRS), f"{one}, {other}"),
        (choose.pick(("MIN", "MAX", "COUNT")), value), (choose.pick(("MIN_BY", "MAX_BY")), f"{value}, id"),
        (choose.pick(_OF_INTEGERS), choose.pick(("n0", "n1"))), (choose.pick(("BOOL_OR", "EVERY", "COUNT_IF")), "b0"),
        ("PERCENTILE", f"{one}, {choose.pick(('0.5', '0', '0.9'))}"), ("COUNT", "*"),
    ))  # fmt: skip
    return name, f"{name}({arguments})"


def _frame_over(choose: Choices, order: str) -> str:
    """A frame in an order: of ROWS where the order is unique, of RANGE with numbers where it is one number."""
    if choose.chance(20):
        return ""
    low, high = sorted((choose.between(0, len(_BOUNDS) - 1), choose.between(0, len(_BOUNDS) - 1)))
    low, high = min(low, len(_BOUNDS) - 2), max(high, 1)
    ways = [*(["ROWS", "ROWS"] if "id" in order else []), *([] if "," in order or "s0" in order else ["RANGE"])]
    if not ways:
        return choose.pick((" RANGE UNBOUNDED PRECEDING", " RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING"))
    return f" {choose.pick(ways)} BETWEEN {_BOUNDS[low]} AND {_BOUNDS[high]}"


def _is_taken(query: str) -> bool:
    """True if freshviews accepts a query over a table of all columns."""
    try:
        _all_columns().execute(f"CREATE OR REPLACE MATERIALIZED VIEW v AS {query}")
    except SqlError:
        return False
    except FreshviewsError:
        return True
    return True


_BOUND: list[Database] = []


def _all_columns() -> Database:
    if not _BOUND:
        _BOUND.append(Database())
        columns = ", ".join(f"{kind}{i} {TYPES[kind]}" for kind in TYPES for i in range(3))
        _BOUND[0].execute(f"CREATE TABLE q ({columns})")
    return _BOUND[0]


def _of_scenario(choose: Choices) -> Iterator[Asked]:
    make = choose.pick(_SCENARIOS)
    found = make(choose)
    rows: dict[str, Counter[Row]] = {table.name: Counter() for table in found.tables}
    for version in found.versions:
        for name, updates in version:
            for row, times in updates:
                rows[name][row] += times
    if any(table.trusted or table.window for table in found.tables):
        return
    held = {name: tuple(sorted(own.elements(), key=repr)) for name, own in rows.items()}
    columns = {one.name: tuple((c.name, c.type) for c in one.columns) for one in found.tables}
    tables = tuple(Table(name, own, held[name]) for name, own in columns.items())
    views = [(view.name, view.query.spark) for view in (*found.plain, *found.views)]
    for i, (_, query) in enumerate(views):
        if not any(_LEFT_OPEN.search(text) for _, text in views[: i + 1]):
            yield Asked(make.__name__.replace("_", " "), tables, query, tuple(views[:i]))


# Answers


def here(asked: Asked) -> tuple[Answer, str]:
    """The answer of freshviews, and the message of its error."""
    with Database() as database:
        try:
            for table in asked.tables:
                listed = ", ".join(f"{name} {kind}" for name, kind in table.columns)
                database.execute(f"CREATE TABLE {table.name} ({listed})")
            for name, query in (*asked.before, ("asked", asked.query)):
                database.execute(f"CREATE {'MATERIALIZED ' * (name == 'asked')}VIEW {name} AS {query}")
        except SqlError as error:
            return REFUSED, str(error)
        except FreshviewsError as error:
            return ERROR, str(error)
        try:
            for table in asked.tables:
                database.insert(table.name, list(table.rows))
            return list(database.view("asked")), ""
        except FreshviewsError as error:
            return ERROR, str(error)


def in_spark(spark: Any, asked: Asked) -> tuple[Answer, str]:
    """The answer of Spark, and the message of its error."""
    from pyspark.errors import AnalysisException, ParseException, PySparkException

    try:
        for table in asked.tables:
            names = ", ".join(name for name, _ in table.columns)
            rows = table.rows or (tuple(None for _ in table.columns),)
            texts = (
                ", ".join(literal(value, kind) for value, (_, kind) in zip(row, table.columns, strict=True))
                for row in rows
            )
            where = "" if table.rows else " WHERE FALSE"
            values = f"SELECT * FROM VALUES {', '.join(f'({one})' for one in texts)} AS t({names}){where}"
            spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {table.name} AS {values}")
        for name, query in asked.before:
            spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS {query}")
        return [tuple(row) for row in _in_months(spark.sql(asked.query)).collect()], ""
    except (AnalysisException, ParseException, ValueError, OverflowError) as error:
        # Python has no dates after the year 9999.
        return REFUSED, str(error)
    except PySparkException as error:
        return ERROR, str(error)


def _in_months(rows: Any) -> Any:
    """The rows with intervals of years and months as numbers of months: Python has no value of them."""
    return rows.selectExpr(
        *(
            f"CAST(CAST(`{one.name}` AS INTERVAL MONTH) AS INT) AS `{one.name}`"
            if one.dataType.simpleString().startswith(("interval year", "interval month"))
            else f"`{one.name}`"
            for one in rows.schema
        )
    ) if "interval" in rows.schema.simpleString() else rows


_LIMITS = re.compile(r"stands for NULL|not fit|64 bits|too long|at most|outside")


_DEPARTURES = re.compile(r"\bcorr\(.*DIVIDE_BY_ZERO", re.IGNORECASE | re.DOTALL)
"""Queries, before Spark's error, for which docs/sql.md has another answer."""


def verdict(ours: tuple[Answer, str], theirs: Answer) -> str:
    """``equal``, ``refused``, ``only here`` or ``different``; an error by a limit of freshviews is a refusal."""
    answer, message = ours
    if answer == theirs == ERROR or (answer == REFUSED and isinstance(theirs, str)):
        return "equal"
    if answer == REFUSED or (answer == ERROR and theirs != REFUSED and _LIMITS.search(message)):
        return "refused"
    if theirs == REFUSED:
        return "only here"
    if isinstance(answer, str) or isinstance(theirs, str):
        return "different"
    return "equal" if _alike(answer, theirs) else "different"


def _alike(ours: Sequence[Row], theirs: Sequence[Row]) -> bool:
    """True for the same bag of rows; doubles may differ in their last digits."""
    left, right = (sorted(map(_plain, rows), key=repr) for rows in (ours, theirs))
    return len(left) == len(right) and all(map(_same_row, left, right))


def _plain(row: Row) -> Row:
    return tuple(float(f"{v:.10g}") + 0.0 if isinstance(v, float) and v == v else v for v in row)


def _same_row(one: Row, other: Row) -> bool:
    return len(one) == len(other) and all(
        (a == b and type(a) is type(b))
        or (isinstance(a, float) and isinstance(b, float) and (math.isclose(a, b, rel_tol=1e-8) or (a != a and b != b)))
        for a, b in zip(one, other, strict=True)
    )  # fmt: skip


# Recorded queries


def to_json(value: Any) -> Any:
    """A value, a row or an answer as JSON: dates, moments and decimals as a list of their type and text."""
    if isinstance(value, list | tuple):
        return [to_json(one) for one in value]
    if isinstance(value, dt.date | Decimal) or (isinstance(value, float) and not math.isfinite(value)):
        return {"type": type(value).__name__, "text": str(value)}
    return value


def from_json(value: Any) -> Any:
    """The inverse of ``to_json``; lists become tuples."""
    if isinstance(value, list):
        return tuple(map(from_json, value))
    if isinstance(value, dict):
        makers: dict[str, Callable[[str], Any]] = {
            "date": dt.date.fromisoformat, "datetime": dt.datetime.fromisoformat, "Decimal": Decimal, "float": float,
        }  # fmt: skip
        return makers[value["type"]](value["text"])
    return value


def recorded() -> list[tuple[Asked, Answer]]:
    """The recorded queries with the answers of Spark."""
    found = []
    for construct, tables, query, before, answer in from_json(json.loads(RECORDED.read_text())):
        asked = Asked(construct, tuple(Table(*one) for one in tables), query, before)
        found.append((asked, answer if isinstance(answer, str) else list(answer)))
    return found


def record(found: Sequence[tuple[Asked, Answer]]) -> None:
    lines = [
        json.dumps(
            to_json((a.construct, [(t.name, t.columns, t.rows) for t in a.tables], a.query, a.before, answer)),
            ensure_ascii=True,
        )
        for a, answer in found
    ]
    RECORDED.write_text("[\n" + ",\n".join(lines) + "\n]\n")


# The command


def main(arguments: Sequence[str]) -> int:
    about = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m tests.agreement.spark_agreement", description=about)
    parser.add_argument("--queries", type=int, default=3_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the number of the first query")
    parser.add_argument("--only", type=int, help="the number of the one query to ask")
    parser.add_argument("--construct", help="constructs whose name contains this text")
    parser.add_argument("--examples", type=int, default=3, help="the differences that are shown of each construct")
    parser.add_argument("--refused", action="store_true", help="show the refused queries and those taken only here")
    parser.add_argument("--record", type=int, default=0, help="number of equal queries to record for the quick test")
    chosen = parser.parse_args(arguments)
    wanted = {"PYTHONHASHSEED": str(chosen.seed), "FRESHVIEWS_PURE_PYTHON": "1", "TZ": "UTC"}
    if any(os.environ.get(name, "") != value for name, value in wanted.items()):
        command = [sys.executable, "-m", "tests.agreement.spark_agreement", *arguments]
        os.execve(sys.executable, command, os.environ | wanted)
    from freshviews.spark.session import start_session

    settings = {"spark.sql.session.timeZone": "UTC", "spark.sql.shuffle.partitions": "1"}
    spark = start_session("local[1]", settings, quiet=True)
    counts: dict[str, Counter[str]] = {}
    kept: list[tuple[Asked, Answer]] = []
    numbers = [chosen.only] if chosen.only is not None else range(chosen.first, chosen.first + chosen.queries)
    for number in numbers:
        for asked in queries(seeded(chosen.seed * 1_000_003 + number)):
            if chosen.construct and chosen.construct.lower() not in asked.construct.lower():
                continue
            ours, (theirs, reason) = here(asked), in_spark(spark, asked)
            found = verdict(ours, theirs)
            if found == "different" and _DEPARTURES.search(asked.query + reason):
                found = "only here"
            own = counts.setdefault(asked.construct, Counter())
            own[found] += 1
            if (found == "different" and own[found] <= chosen.examples) or chosen.only is not None:
                print(f"--seed {chosen.seed} --only {number}: {found}, {asked.construct}\n{asked}")
                print(f"  here:  {str(ours[0])[:300]} {ours[1][:300]}")
                print(f"  Spark: {str(theirs)[:300]} {reason[:200]}", flush=True)
            elif chosen.refused and found in ("refused", "only here"):
                print(f"{found}: {asked.query[:200]}\n  {(ours[1] or reason)[:200]}", flush=True)
            if found == "equal" and isinstance(theirs, list) and len(kept) < chosen.record and own[found] == 1:
                kept.append((asked, theirs))
    spark.stop()
    if chosen.record:
        record(kept)
    return _report(counts)


def _report(counts: dict[str, Counter[str]]) -> int:
    kinds = ("equal", "refused", "only here", "different")
    print(f"{'':40}" + "".join(f"{kind:>11}" for kind in kinds))
    for construct, own in sorted(counts.items(), key=lambda one: (-one[1]["different"], one[0].lower())):
        print(f"{construct[:39]:40}" + "".join(f"{own[kind]:>11}" for kind in kinds))
    total = sum(counts.values(), Counter[str]())
    print(f"{'all':40}" + "".join(f"{total[kind]:>11}" for kind in kinds))
    return 1 if total["different"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
