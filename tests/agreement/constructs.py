"""The SQL constructs of a view, found in its text as the random generators write it."""

from __future__ import annotations

import re
from collections.abc import Callable

from tests.agreement.scenario import NamedView, Scenario

_PATTERNS = {
    "LEFT JOIN": r"LEFT JOIN",
    "RIGHT JOIN": r"RIGHT JOIN",
    "FULL JOIN": r"FULL JOIN",
    "LEFT SEMI JOIN": r"LEFT SEMI JOIN",
    "LEFT ANTI JOIN": r"LEFT ANTI JOIN",
    "NATURAL JOIN": r"NATURAL",
    "USING": r"USING \(",
    "LATERAL": r"LATERAL",
    "ASOF JOIN": r"ASOF ",
    "joins in parentheses": r"JOIN \((?!SELECT|VALUES|\w+ AS \w+\))",
    "a join on <, <= or <>": r"ON [^()]*?[a-z] (<|<=|<>|>|>=) [a-z]",
    "IN (SELECT)": r"(?<!NOT) IN \(SELECT",
    "NOT IN (SELECT)": r"NOT IN \(SELECT",
    "row IN (SELECT)": r"\([^()]+, [^()]+\) (NOT )?IN \(SELECT",
    "EXISTS": r"(?<!NOT )EXISTS \(",
    "NOT EXISTS": r"NOT EXISTS \(",
    "ANY, SOME": r"(ANY|SOME) \(SELECT",
    "ALL": r" ALL \(SELECT",
    "a scalar subquery": r"(?<!ANY |ALL )(?<!SOME |FROM |JOIN )(?<! IN )(?<!EXISTS )(?<!LATERAL )"
    r"\(SELECT (?:(?! AS | FROM ).)* FROM",
    "a subquery below a subquery": r"\(SELECT(?:(?!\(SELECT)[^()]|\([^()]*\))*\(SELECT",
    "correlated by =": r"u\d?\.\w+ = (?!u)[a-t]\.|(?<![u\w])[a-t]\.\w+ = u\d?\.",
    "correlated by a range": r"u\d?\.\w+ (<|<=|>|>=|BETWEEN) (?!u)[a-t]\.|(?<![u\w])[a-t]\.\w+ (<|<=|>|>=) u\d?\.",
    "correlated by <>": r"u\d?\.\w+ <> (?!u)[a-t]\.|(?<![u\w])[a-t]\.\w+ <> u\d?\.",
    "GROUP BY": r"GROUP BY",
    "grouping sets": r"ROLLUP|CUBE|GROUPING SETS",
    "HAVING": r"HAVING",
    "DISTINCT rows": r"SELECT DISTINCT",
    "DISTINCT aggregates": r"\(DISTINCT ",
    "MIN, MAX": r"M(IN|AX)\(",
    "MIN, MAX of a sum": r"M(IN|AX)\(\([^()]+ [+-] ",
    "MIN_BY, MAX_BY": r"M(IN|AX)_BY\(",
    "AVG": r"AVG\(",
    "texts of a group": r"STRING_AGG\(|LISTAGG\(|GROUP_CONCAT\(",
    "aggregates of plain Python": r"_in_python\(",
    "COFACTOR": r"COFACTOR\(",
    "CATEGORY": r"CATEGORY\(",
    "FILTER": r"FILTER \(",
    "UNION ALL": r"UNION ALL",
    "UNION": r"UNION (?!ALL)",
    "EXCEPT": r"EXCEPT (?!ALL)",
    "EXCEPT ALL": r"EXCEPT ALL",
    "INTERSECT": r"INTERSECT (?!ALL)",
    "INTERSECT ALL": r"INTERSECT ALL",
    "OVER": r"OVER \(",
    "ORDER BY": r"ORDER BY",
    "LIMIT": r"LIMIT",
    "OFFSET": r"OFFSET",
    "WITH": r"WITH w AS",
    "VALUES": r"VALUES",
    "CASE": r"CASE ",
}
_COMPILED = {name: re.compile(pattern) for name, pattern in _PATTERNS.items()}
_FROM = re.compile(r"(?:FROM|JOIN|,) (\w+) AS \w+")

_OF_SCENARIOS: dict[str, Callable[[Scenario], bool]] = {
    "a table with a key": lambda s: any(t.key and not t.trusted for t in s.tables),
    "a trusted table": lambda s: any(t.trusted for t in s.tables),
    "a table with a window": lambda s: any(t.window for t in s.tables),
    "a DEFAULT": lambda s: any(t.default for t in s.tables),
    "a plain view": lambda s: bool(s.plain),
}
NAMES = (*_PATTERNS, "a self join", "a view over views", *_OF_SCENARIOS)


def constructs(scenario: Scenario, view: NamedView) -> list[str]:
    """Names, of ``NAMES``, of the constructs of the view and of the tables that it reads."""
    text = view.query.spark
    found = [name for name, pattern in _COMPILED.items() if pattern.search(text)]
    sources = _FROM.findall(text)
    if len(sources) > len(set(sources)):
        found.append("a self join")
    if any(re.search(rf"\b{other.name}\b", text) for other in scenario.views if other.name != view.name):
        found.append("a view over views")
    return [*found, *(name for name, has in _OF_SCENARIOS.items() if has(scenario))]
