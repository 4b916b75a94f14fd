"""``python -m tests.agreement.mutants``: random SQL, valid or not, raises only errors of freshviews.

A text is a view of a random scenario, or a SELECT of a grammar of its own: any function with any arguments, with and
without FROM, grouping sets, windows and subqueries nested in each other. Mostly it is then a *mutant*: tokens are
dropped, doubled, swapped and replaced, and two texts are spliced. The view is created, its tables get a few rows with
NULLs and extreme values, and it is read and explained. Any exception that is not a FreshviewsError is a failure, and so
is a text that takes more than ``LIMIT`` seconds.
"""

from __future__ import annotations

import argparse
import datetime as dt
import math
import os
import re
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any

from freshviews import Database
from freshviews.errors import FreshviewsError
from freshviews.sql import FUNCTION_NAMES
from freshviews.sql.text.parse import SqlText, parse
from tests.agreement.choices import Choices, seeded
from tests.agreement.random_tables import TYPES
from tests.agreement.scenario import BaseTable, TableColumn
from tests.agreement.sql_places import places_scenario
from tests.agreement.sql_queries import scenario
from tests.agreement.sql_top import top_scenario
from tests.agreement.sql_windows import windows_scenario
from tests.agreement.states import at_most

_TRIES = 8
"""How often another change is drawn if a change breaks the text's syntax; few such texts are used."""
LIMIT = 30
"""Maximum seconds of one text."""

_TABLES = (
    BaseTable(
        "t",
        tuple(
            TableColumn(name, type_, name != "k")
            for name, type_ in (
                *(("k", "BIGINT"), ("i", "INT"), ("m", "DECIMAL(12, 2)"), ("x", "DOUBLE"), ("s", "STRING")),
                *(("d", "DATE"), ("z", "TIMESTAMP"), ("b", "BOOLEAN")),
            )
        ),
    ),
    BaseTable("u", (TableColumn("k", "BIGINT", False), TableColumn("i", "INT"), TableColumn("s", "STRING")), ("k",)),
)
_EXTREMES: dict[str, tuple[Any, ...]] = {
    "BIGINT": (0, 1, 2**63 - 1, -(2**63)),
    "INT": (0, 1, 2**31 - 1, -(2**31)),
    "SMALLINT": (0, 1, 2**15 - 1),
    "TINYINT": (0, 1, -128),
    "DECIMAL": (Decimal(0), Decimal("1.5"), Decimal("-99.5")),
    "DOUBLE": (0.0, 1.5, -0.0, math.inf, math.nan, 1e308, 5e-324),
    "FLOAT": (0.0, 1.5, math.inf, math.nan),
    "STRING": ("", "a", "b%_\\", "12", " 1.5 ", "2024-02-29", "é\U0001f600", "NaN"),
    "DATE": (dt.date(1, 1, 1), dt.date(2024, 2, 29), dt.date(9999, 12, 31)),
    "TIMESTAMP": (dt.datetime(1, 1, 1), dt.datetime(2024, 2, 29, 23, 59, 59, 999999), dt.datetime(9999, 12, 31)),
    "BOOLEAN": (True, False),
}
_CONSTANTS = (
    *("0", "1", "2", "-1", "NULL", "TRUE", "FALSE", "''", "'a'", "'Spark'", "','", "'%'", "'12'", "'2024-02-29'"),
    *("9223372036854775807", "2147483648", "99999999999999999999", "1e308", "4D", "1.5", "0.01", "1L", "3S", "7Y"),
    *("2.5BD", "DATE '2024-01-31'", "TIMESTAMP '2024-01-31 10:00:00'", "INTERVAL '1' DAY", "INTERVAL '3' MONTH"),
    *("INTERVAL '1 10' DAY TO HOUR", "X'00'", "r'\\d'", "'(a)(b)?'", "'yyyy-MM-dd'", "'MONTH'", "CAST(NULL AS STRING)"),
)
_OPERATORS = (
    *("+", "-", "*", "/", "%", "DIV", "||", "&", "|", "^", "<<", ">>", "=", "<>", "<", "<=>", ">=", "AND", "OR"),
    *("LIKE", "RLIKE", "ILIKE", "IS DISTINCT FROM", "IN", "NOT IN", "::"),
)
_CAST = tuple(dict.fromkeys(type_ for types in TYPES.values() for type_ in types))
_FUNCTIONS = (*sorted(FUNCTION_NAMES), "rank", "dense_rank", "row_number", "lag", "lead", "ntile", "nth_value", "ln2")
_AGGREGATES = ("COUNT", "SUM", "MIN", "MAX", "AVG", "MIN_BY", "FIRST_VALUE", "STRING_AGG", "CORR", "COFACTOR", "ANY")
_SIGNATURES = {
    "n": "abs n, sign n, floor n, ceil n, round n i, sqrt n, cbrt n, exp n, ln n, log n n, pow n n, greatest n n,"
    " nvl n n, mod n n, pmod n n, nullif n n, degrees n, atan2 n n, round n, trunc n i, e, pi, coalesce n n n, sin n",
    "i": "length s, ascii s, instr s s, locate s s i, year d, month z, datediff d d, unix_date d, hour z, dayofweek d,"
    " extract_ z, regexp_count s s, unix_micros z, bit_length_ s, octet_length s, least i i, nvl2 s i i, if b i i",
    "s": "concat s s, concat_ws s s s, upper s, substring s i i, lpad s i s, rtrim s, replace s s s, repeat s i,"
    " regexp_substr s s, regexp_extract s s i, regexp_replace s s s, translate s s s, left s i, hex i,"
    " date_format z s, to_char n s, md5 s, chr i, initcap s, substring_index s s i, dayname d, string n, overlay s s i",
    "d": "date_add d i, add_months d i, last_day d, next_day d s, trunc d s, make_date i i i, to_date s s, date z",
    "z": "date_trunc s z, to_timestamp s, timestamp_micros i, timestampadd_ i z, time_bucket i z, from_unixtime_ i",
    "b": "isnull s, contains s s, startswith s s, rlike s s, equal_null n n, isnan n, regexp_like s s, not b",
}
_TYPED = {
    "n": ("i", "m", "x", "k", "t.k"), "i": ("i", "k", "t.i"), "s": ("s", "t.s"), "d": ("d", "t.d"), "z": ("z", "t.z"),
    "b": ("b", "t.b"),
}  # fmt: skip
_VALUES = {
    "n": ("0", "1", "-1", "2.5", "1e308", "4D", "9223372036854775807", "NULL"),
    "i": ("0", "1", "2", "-1", "2147483647", "CAST(NULL AS INT)"),
    "s": ("''", "'a'", "'Spark'", "'%'", "','", "'(a)(b)?'", "'yyyy-MM-dd'", "'MONTH'", "'12'", "NULL"),
    "d": ("DATE '2024-01-31'", "DATE '0001-01-01'", "CAST(NULL AS DATE)"),
    "z": ("TIMESTAMP '2024-01-31 10:00:00'", "CAST(NULL AS TIMESTAMP)"),
    "b": ("TRUE", "FALSE", "NULL"),
}
_INFIX = {"n": ("+", "-", "*", "/", "%"), "i": ("+", "-", "DIV", "&", "|", "^", "<<"), "s": ("||",)}
_WORDS = (
    *("SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "OFFSET", "OVER", "PARTITION BY", "UNION"),
    *("UNION ALL", "EXCEPT", "INTERSECT", "JOIN", "LEFT JOIN", "CROSS JOIN", "NATURAL JOIN", "LATERAL", "ON", "USING"),
    *("ROLLUP", "CUBE", "GROUPING SETS", "WITH", "AS", "DISTINCT", "ALL", "FILTER", "WITHIN GROUP", "QUALIFY", "CASE"),
    *("WHEN", "THEN", "ELSE", "END", "IS", "NOT", "NULL", "IN", "BETWEEN", "EXISTS", "DESC", "NULLS LAST", "ROWS", "("),
    *(")", ",", ".", "*", ";", "::", "[", "]", "window", "VALUES", "INTERVAL", "CAST", "RANGE", "UNBOUNDED PRECEDING"),
)
_TOKEN = re.compile(r"'(?:[^'\\]|\\.)*'|`[^`]*`|\d+(?:\.\d+)?(?:e[+-]?\d+)?[A-Z]*|\w+|<=>|<>|[<>]=|::|\|\||\S", re.S)


@dataclass(frozen=True)
class Grammar:
    """SELECTs over ``t`` and ``u``: any function over any arguments."""

    choose: Choices

    def query(self, depth: int) -> str:
        choose = self.choose
        if depth > 0 and choose.chance(12):
            both = choose.pick(("UNION", "UNION ALL", "EXCEPT", "INTERSECT ALL"))
            return f"{self.query(depth - 1)} {both} {self.query(depth - 1)}{self._last(depth)}"
        if depth > 0 and choose.chance(8):
            return f"WITH w AS ({self.query(depth - 1)}) {self.query(depth - 1).replace(' u', ' w u', 1)}"
        if choose.chance(30):
            return self._grouped(depth)
        items = [self._item(depth, i) for i in range(choose.pick((1, 1, 2, 3)))]
        text = f"SELECT {'DISTINCT ' if choose.chance(10) else ''}{', '.join(items)}"
        if choose.chance(15):
            return text
        text += f" FROM {self._source(depth)}"
        if choose.chance(30):
            text += f" WHERE {self._condition(depth)}"
        if choose.chance(40):
            text += f" GROUP BY {self._groups(depth, len(items))}"
            if choose.chance(30):
                text += f" HAVING {self._condition(depth)}"
        if choose.chance(5):
            text += f" QUALIFY {self._window(depth)} < 3"
        return text + self._last(depth)

    def _grouped(self, depth: int) -> str:
        """A SELECT whose items are groups, aggregates, and windows over them."""
        choose = self.choose
        count = choose.pick((1, 1, 2))
        groups = [self.typed(choose.pick("nisdzb"), choose.pick((0, 0, 1, depth))) for _ in range(count)]
        sums = [self._aggregate(depth) for _ in range(choose.pick((0, 1, 2)))]
        windows = []
        if choose.chance(30):
            order = choose.pick((*groups, *sums, f"{groups[0]} DESC"))
            call = choose.pick(("RANK()", "ROW_NUMBER()", "SUM(COUNT(*))", f"LAG({groups[0]})", f"MAX({groups[-1]})"))
            windows.append(f"{call} OVER (PARTITION BY {groups[-1]} ORDER BY {order})")
        inside = ", ".join(groups)
        by = choose.pick((inside,) * 4 + (f"ROLLUP ({inside})", f"CUBE ({inside})", f"GROUPING SETS (({inside}), ())"))
        items = ", ".join(f"{one} AS c{i}" for i, one in enumerate([*groups, *sums, *windows]))
        having = f" HAVING {choose.pick(('COUNT(*)', *sums))} IS NOT NULL" if choose.chance(25) else ""
        return f"SELECT {items} FROM {self._source(0)} GROUP BY {by}{having}{self._last(0)}"

    def _last(self, depth: int) -> str:
        if not self.choose.chance(15):
            return ""
        order = f"{self.expression(max(depth - 1, 0))} {self.choose.pick(('', 'DESC', 'ASC NULLS LAST'))}"
        return f" ORDER BY {order}{self.choose.pick(('', ' LIMIT 2', ' LIMIT 2 OFFSET 1', ' LIMIT 0'))}"

    def _item(self, depth: int, number: int) -> str:
        kind = self.choose.pick(("", "", "aggregate", "window", "*"))
        if kind == "*" and self.choose.chance(20):
            return self.choose.pick(("*", "t.*", "* EXCEPT (k)"))
        made = self._aggregate(depth) if kind == "aggregate" else self._window(depth) if kind == "window" else None
        return f"{made or self.expression(depth)} AS c{number}" if self.choose.chance(80) else self.expression(depth)

    def _source(self, depth: int) -> str:
        choose = self.choose
        first = choose.pick(("t", "t", "t AS t", "u t", "(VALUES (1, 'a'), (NULL, 'b')) AS t (k, s)"))
        if depth > 0 and choose.chance(15):
            first = f"({self.query(depth - 1)}) AS t"
        if not choose.chance(40):
            return first
        kind = choose.pick(("JOIN", "LEFT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN", "RIGHT JOIN"))
        match choose.between(0, 5):
            case 0:
                return f"{first} {kind} u USING ({choose.pick(('k', 'i', 's', 'k, s'))})"
            case 1:
                return f"{first}, LATERAL ({self.query(max(depth - 1, 0))}) AS u"
            case 2:
                return f"{first} NATURAL JOIN u"
            case 3:
                return f"{first} CROSS JOIN u"
            case _:
                return f"{first} {kind} u ON {self._condition(depth - 1)}"

    def _groups(self, depth: int, items: int) -> str:
        choose = self.choose
        one = [
            self._column() if choose.chance(60) else choose.pick((str(items), "1", "c0", self.expression(0)))
            for _ in range(choose.pick((1, 1, 2, 3)))
        ]
        match choose.between(0, 7):
            case 0:
                return f"ROLLUP ({', '.join(one)})"
            case 1:
                return f"CUBE ({', '.join(one)})"
            case 2:
                return f"GROUPING SETS (({', '.join(one)}), ({one[0]}), ())"
            case 3:
                return f"{', '.join(one)} WITH ROLLUP"
            case 4:
                return f"{self._column()}, ROLLUP ({one[0]}), CUBE ({one[-1]})"
            case _:
                return ", ".join(one)

    def _condition(self, depth: int) -> str:
        if self.choose.chance(60):
            return self.typed("b", max(depth, 1))
        if depth > 0 and self.choose.chance(20):
            inner = self.query(depth - 1)
            return self.choose.pick(
                (f"EXISTS ({inner})", f"t.k IN ({inner})", f"i NOT IN ({inner})", f"t.k > ALL ({inner})")
            )
        operator = self.choose.pick(("=", "<", ">=", "IS NULL OR 1 =", "LIKE", "AND", "<=>"))
        return f"{self.expression(max(depth, 0))} {operator} {self.expression(max(depth - 1, 0))}"

    def typed(self, kind: str, depth: int) -> str:
        """An expression of a kind, mostly well typed."""
        choose = self.choose
        if choose.chance(4):
            return self.expression(depth)
        if depth <= 0 or choose.chance(20):
            return choose.pick((_TYPED if choose.chance(70) else _VALUES)[kind])
        match choose.between(0, 9):
            case 0 | 1 if kind in _INFIX:
                return f"{self.typed(kind, depth - 1)} {choose.pick(_INFIX[kind])} {self.typed(kind, depth - 1)}"
            case 0 | 1 if kind == "b":
                other = choose.pick("nsdz")
                operator = choose.pick(("=", "<", ">=", "<>", "<=>", "IS DISTINCT FROM"))
                return f"{self.typed(other, depth - 1)} {operator} {self.typed(other, depth - 1)}"
            case 2 if kind == "b":
                return f"{self.typed('b', depth - 1)} {choose.pick(('AND', 'OR'))} NOT {self.typed('b', depth - 1)}"
            case 2:
                return f"CASE WHEN {self.typed('b', depth - 1)} THEN {self.typed(kind, depth - 1)} END"
            case 3 if kind in "ns":
                return f"CAST({self.typed(choose.pick('nsi'), depth - 1)} AS {'STRING' if kind == 's' else 'DOUBLE'})"
            case 3 if kind == "b":
                return f"{self.typed('n', 0)} IN ({self.typed('n', 0)}, {self.typed('n', depth - 1)})"
            case 4 if kind == "n" and choose.chance(30):
                return f"(SELECT {self._aggregate(0)} FROM u WHERE u.k = t.k)"
            case _:
                name, *kinds = choose.pick(_SIGNATURES[kind].split(", ")).split()
                return f"{name.strip('_')}({', '.join(self.typed(one, depth - 1) for one in kinds)})"

    def _column(self) -> str:
        return self.choose.pick(("k", "i", "m", "x", "s", "d", "z", "b", "t.k", "t.i", "t.s", "u.k", "u.s"))

    def _aggregate(self, depth: int) -> str:
        choose = self.choose
        if choose.chance(60):
            inner = self.typed("n", depth - 1)
            call = choose.pick(("COUNT(*)", f"SUM({inner})", f"MIN({inner})", f"COUNT(DISTINCT {inner})"))
            return f"{call} FILTER (WHERE {self.typed('b', 1)})" if choose.chance(10) else call
        name = choose.pick(_AGGREGATES) if choose.chance(70) else choose.pick(_FUNCTIONS)
        args = ", ".join(self.expression(depth - 1) for _ in range(choose.pick((1, 1, 1, 2))))
        text = f"{name}({'DISTINCT ' if choose.chance(15) else ''}{args if choose.chance(85) else '*'})"
        return f"{text} FILTER (WHERE {self._condition(0)})" if choose.chance(12) else text

    def _window(self, depth: int) -> str:
        choose = self.choose
        call = choose.pick(("RANK()", "ROW_NUMBER()", "NTILE(2)", "LAG(i)", "LAST_VALUE(x)", self._aggregate(0)))
        inside = [f"PARTITION BY {self.expression(0)}"] if choose.chance(40) else []
        if choose.chance(60):
            inside.append(f"ORDER BY {self.expression(0)}{choose.pick(('', ' DESC', ' NULLS LAST'))}")
        if choose.chance(20):
            inside.append(
                choose.pick(
                    (
                        "ROWS 1 PRECEDING",
                        "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING",
                        "RANGE BETWEEN 1 PRECEDING AND CURRENT ROW",
                    )
                )
            )
        return f"{call} OVER ({' '.join(inside)})"

    def expression(self, depth: int) -> str:
        """Any expression, well typed or not."""
        choose = self.choose
        if choose.chance(75):
            return self.typed(choose.pick("nnisdzb"), depth)
        if depth <= 0 or choose.chance(15):
            return self._column() if choose.chance(65) else choose.pick(_CONSTANTS)
        match choose.between(0, 9):
            case 0 | 1 | 2 | 3:
                args = ", ".join(self.expression(depth - 1) for _ in range(choose.pick((0, 1, 1, 2, 2, 3, 4))))
                return f"{choose.pick(_FUNCTIONS)}({args})"
            case 4 | 5:
                operator = choose.pick(_OPERATORS)
                right = choose.pick(_CAST) if operator == "::" else self.expression(depth - 1)
                right = f"({right}, {self.expression(0)})" if operator.endswith("IN") else right
                return f"{choose.pick(('', '', '- ', 'NOT ', '~'))}{self.expression(depth - 1)} {operator} {right}"
            case 6:
                return f"{choose.pick(('CAST', 'TRY_CAST'))}({self.expression(depth - 1)} AS {choose.pick(_CAST)})"
            case 7:
                when, then = self.expression(depth - 1), self.expression(depth - 1)
                return f"CASE WHEN {when} THEN {then} ELSE {self.expression(0)} END"
            case 8:
                return f"({self.query(depth - 1)})"
            case _:
                return self._aggregate(depth) if choose.chance(60) else self._window(depth)


@dataclass(frozen=True)
class Mutant:
    """A text, and the tables that it reads."""

    tables: Sequence[BaseTable]
    text: str

    def __str__(self) -> str:
        return f"{'; '.join(table.text.spark for table in self.tables)};\n{self.text}"


def mutant(choose: Choices) -> Mutant:
    """A random text."""
    tables: Sequence[BaseTable] = _TABLES
    grammar = Grammar(choose)
    if choose.chance(65):
        text = f"CREATE MATERIALIZED VIEW v AS {grammar.query(choose.between(0, 3))}"
        changes = choose.pick((0, 0, 1, 2))
    else:
        drawn = choose.pick((scenario, scenario, places_scenario, windows_scenario, top_scenario))(choose)
        tables, text = drawn.tables, drawn.views[0].text.spark
        changes = choose.between(1, 4)
    tokens = _TOKEN.findall(text)
    start = tokens.index("AS") + 1
    for _ in range(changes):
        for _ in range(_TRIES):
            changed = [*tokens[:start], *_changed(choose, grammar, tokens[start:])]
            if choose.chance(5) or _is_sql(" ".join(changed)):
                tokens = changed
                break
    return Mutant(tables, " ".join(tokens))


def _is_sql(text: str) -> bool:
    try:
        parse(SqlText(text))
    except FreshviewsError:
        return False
    return True


def _changed(choose: Choices, grammar: Grammar, tokens: list[str]) -> list[str]:
    at = choose.between(0, max(len(tokens) - 1, 0))
    other = choose.between(0, max(len(tokens) - 1, 0))
    before, after = tokens[:at], tokens[at + 1 :]
    match choose.between(0, 10):
        case 0:
            return [*before, *after]
        case 1:
            return [*tokens[: at + 1], *tokens[at:]]
        case 2 if tokens:
            made = list(tokens)
            made[at], made[other] = made[other], made[at]
            return made
        case 3:
            return [*before, choose.pick(_WORDS), *tokens[at:]]
        case 4:
            return [*before, choose.pick((*_WORDS, *_CONSTANTS)), *after]
        case 5:
            more = _TOKEN.findall(grammar.query(1))
            cut = choose.between(0, len(more) - 1)
            return [*before, *more[cut:]]
        case 6:
            calls = [i for i, (a, b) in enumerate(pairwise(tokens)) if b == "(" and a.isidentifier()]
            if not calls:
                return tokens
            at = choose.pick(calls)
            return [*tokens[:at], choose.pick(_FUNCTIONS), *tokens[at + 1 :]]
        case 7:
            constants = [i for i, one in enumerate(tokens) if one[0] in "'0123456789"]
            if not constants:
                return tokens
            at = choose.pick(constants)
            return [*tokens[:at], choose.pick(_CONSTANTS), *tokens[at + 1 :]]
        case 8:
            return [*before, *_TOKEN.findall(grammar.expression(2)), *after]
        case 9:
            return [*tokens[: min(at, other)], *tokens[max(at, other) :]]
        case _:
            columns = [i for i, one in enumerate(tokens) if one.isidentifier() and one.islower()]
            if not columns:
                return tokens
            at = choose.pick(columns)
            return [*tokens[:at], *_TOKEN.findall(grammar.expression(1)), *tokens[at + 1 :]]


def _row(choose: Choices, table: BaseTable) -> tuple[Any, ...]:
    values = []
    for column in table.columns:
        domain = _EXTREMES[column.type.partition("(")[0]]
        values.append(None if column.nullable and choose.chance(25) else choose.pick(domain))
    return tuple(values)


def run(choose: Choices, made: Mutant, outcomes: Counter[str]) -> None:
    """Create the view, then insert, delete, read and explain. Raises any exception that is not a FreshviewsError."""
    with Database() as database:
        database.execute("; ".join(table.text.spark for table in made.tables))
        rows = {table.name: [_row(choose, table) for _ in range(3)] for table in made.tables}
        before = choose.chance(30) and not any(table.trusted for table in made.tables)
        if before:
            _insert(database, rows, outcomes)
        try:
            database.execute(made.text)
        except FreshviewsError as refusal:
            outcomes[f"refused: {type(refusal).__name__}"] += 1
            return
        outcomes["created"] += 1
        if not before:
            _read(database)
            _insert(database, rows, outcomes)
        _read(database)
        for table in made.tables:
            with suppress(FreshviewsError):
                database.delete(table.name, rows[table.name][:1])
        _read(database)


def _insert(database: Database, rows: dict[str, list[tuple[Any, ...]]], outcomes: Counter[str]) -> None:
    for name, several in rows.items():
        for row in several:
            try:
                database.insert(name, [row])
                outcomes["rows inserted"] += 1
            except FreshviewsError:
                outcomes["rows refused"] += 1


def _read(database: Database) -> None:
    for name in database.views:
        with suppress(FreshviewsError):
            list(database.view(name))
        with suppress(FreshviewsError):
            database.view(name).explain()


def run_number(seed: int, outcomes: Counter[str]) -> tuple[Mutant, Exception] | None:
    """Run the text of a seed; returns it and its exception, if that is not a FreshviewsError."""
    choose = seeded(seed)
    made = mutant(choose)
    try:
        with at_most(LIMIT, "a text"):
            run(choose, made, outcomes)
    except Exception as error:
        return made, error
    return None


def explore(seconds: float, first: int, shown: Callable[[str], Any]) -> int:
    """Run texts for a time; returns the number of kinds of failures, by where they are raised. Prints each kind
    once."""
    outcomes: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    begun, number = time.process_time(), first
    while time.process_time() < begun + seconds:
        found = run_number(number, outcomes)
        outcomes["texts"] += 1
        if found is not None:
            made, error = found
            place = traceback.extract_tb(error.__traceback__)[-1]
            kind = f"{type(error).__name__} in {place.name} of {place.filename}:{place.lineno}"
            kinds[kind] += 1
            if kinds[kind] == 1:
                shown(f"--first {number} --seconds 0.001\n{made}\n{''.join(traceback.format_exception(error)[-4:])}")
        number += 1
    shown(f"{dict(outcomes)}\nfailures by place: {dict(kinds)}")
    return len(kinds)


def main(arguments: Sequence[str]) -> int:
    about = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m tests.agreement.mutants", description=about)
    parser.add_argument("--seconds", type=float, default=600, help="CPU seconds")
    parser.add_argument("--first", type=int, default=0, help="the seed of the first text")
    chosen = parser.parse_args(arguments)
    if os.environ.get("FRESHVIEWS_PURE_PYTHON") != "1":
        command = [sys.executable, "-m", "tests.agreement.mutants", *arguments]
        os.execve(sys.executable, command, os.environ | {"FRESHVIEWS_PURE_PYTHON": "1"})
    return int(explore(chosen.seconds, chosen.first, lambda text: print(text, flush=True)) > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
