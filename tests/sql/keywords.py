"""The places where Spark 4.1 accepts each of its keywords as a name, which are nearly all.

``PLACES``: a query or a statement for each place; ``{k}`` is the keyword as it is, ``{q}`` the same name in backquotes.
Spark's plan of a text was compared with its plan of the text in which the keyword is in backquotes. They are equal but
for ``REFUSED``, where Spark refuses the text, and ``OTHER``, where the word has its meaning as a keyword.
"""

from __future__ import annotations

_KEYWORDS = """
    add after aggregate all alter always analyze and anti any any_value archive array as asc at atomic authorization
    begin between bigint binary binding boolean both bucket buckets by byte cache call called cascade case cast
    catalog catalogs change char character check clear cluster clustered codegen collate collation collection column
    columns comment commit compact compactions compensation compute concatenate condition constraint contains
    continue cost create cross cube current current_date current_time current_timestamp current_user data database
    databases date dateadd datediff date_add date_diff day dayofyear days dbproperties dec decimal declare default
    defined definer delay delete delimited desc describe deterministic dfs directories directory distinct distribute
    div do double drop else elseif end enforced escape escaped evolution except exchange exclude execute exists exit
    explain export extend extended external extract false fetch fields fileformat filter first float flow following
    for foreign format formatted found from full function functions generated geography geometry global grant group
    grouping handler having hour hours identifier identity if ignore ilike immediate import in include increment
    index indexes inner inpath input inputformat insert int integer intersect interval into invoker is items iterate
    join json key keys language last lateral lazy leading leave left level like limit lines list load local location
    lock locks logical long loop macro map matched materialized max merge microsecond microseconds millisecond
    milliseconds minus minute minutes modifies month months msck name namespace namespaces nanosecond nanoseconds
    natural no none norely not null nulls numeric of offset on only option options or order out outer outputformat
    over overlaps overlay overwrite partition partitioned partitions percent pivot placing position preceding
    primary principals procedure procedures properties purge quarter query range reads real recordreader
    recordwriter recover recursion recursive reduce references refresh rely rename repair repeat repeatable replace
    reset respect restrict return returns revoke right role roles rollback rollup row rows schema schemas second
    seconds security select semi separated serde serdeproperties session_user set sets short show single skewed
    smallint some sort sorted source specific sql sqlexception sqlstate start statistics stored stratify stream
    streaming string struct substr substring sync system_time system_version table tables tablesample target
    tblproperties terminated then time timediff timestamp timestampadd timestampdiff timestamp_ltz timestamp_ntz
    tinyint to touch trailing transaction transactions transform trim true truncate try_cast type unarchive
    unbounded uncache union unique unknown unlock unpivot unset until update use user using value values var varchar
    variable variant version view views void watermark week weeks when where while window with within without x year
    years zone
"""
KEYWORDS = tuple(_KEYWORDS.split())
"""The rows of ``SELECT * FROM sql_keywords()``."""

PLACES = {
    "a table": "SELECT o FROM {k}",
    "a table, joined": "SELECT t.o FROM t JOIN {k} AS u ON t.o = u.o",
    "a table, after a comma": "SELECT t.o FROM t, {k} AS u WHERE t.o = u.o",
    "a table, with an alias": "SELECT r.o FROM {k} AS r",
    "a table, with a short alias": "SELECT r.o FROM {k} r",
    "a table's alias after AS": "SELECT o FROM t AS {k}",
    "a table's alias": "SELECT o FROM t {k}",
    "a table's alias before WHERE": "SELECT o FROM t {k} WHERE o > 10",
    "a table's alias before JOIN": "SELECT u.o FROM t {k} JOIN t AS u ON {q}.o = u.o",
    "a joined table's alias": "SELECT u.o FROM t AS u JOIN t {k} ON {q}.o = u.o",
    "a subquery's alias": "SELECT o FROM (SELECT o FROM t) {k}",
    "a subquery's alias after AS": "SELECT o FROM (SELECT o FROM t) AS {k}",
    "a qualifier": "SELECT {k}.o FROM t AS {q}",
    "a qualifier, later": "SELECT 1 + {k}.o AS s FROM t AS {q}",
    "a qualifier in a condition": "SELECT o FROM t AS {q} WHERE {k}.o > 10",
    "a qualifier of itself": "SELECT {k}.{k} FROM t AS {q}",
    "a qualified star": "SELECT {k}.* FROM t AS {q}",
    "an alias after AS": "SELECT o AS {k} FROM t",
    "an alias": "SELECT o {k} FROM t",
    "an alias before another item": "SELECT o {k}, o AS p FROM t",
    "an alias of a sum": "SELECT o + 1 {k} FROM t",
    "an alias of a call": "SELECT abs(o) {k} FROM t",
    "an alias of an aggregate": "SELECT SUM(o) {k} FROM t",
    "an alias of a parenthesis": "SELECT (o) {k} FROM t",
    "an alias of a number": "SELECT 1 {k} FROM t",
    "an alias of a CASE": "SELECT CASE WHEN o > 10 THEN 1 END {k} FROM t",
    "an item": "SELECT {k} FROM t",
    "the first item": "SELECT {k}, o FROM t",
    "the last item": "SELECT o, {k} FROM t",
    "an item with an alias": "SELECT {k} AS a FROM t",
    "an item with a short alias": "SELECT {k} a FROM t",
    "an item after DISTINCT": "SELECT DISTINCT {k} FROM t",
    "an item in parentheses": "SELECT ({k}) AS a FROM t",
    "a qualified item": "SELECT t.{k} FROM t",
    "a qualified item with an alias": "SELECT t.{k} a FROM t",
    "a left operand": "SELECT {k} + 1 AS a FROM t",
    "a right operand": "SELECT 1 + {k} AS a FROM t",
    "a left operand of *": "SELECT {k} * 2 AS a FROM t",
    "a left operand of -": "SELECT {k} - 1 AS a FROM t",
    "after a minus": "SELECT - {k} AS a FROM t",
    "an operand of DIV": "SELECT {k} DIV 2 AS a FROM t",
    "a cast ::": "SELECT {k}::INT AS a FROM t",
    "WHERE": "SELECT o FROM t WHERE {k} = 2",
    "WHERE, on the right": "SELECT o FROM t WHERE 2 = {k}",
    "WHERE, after AND": "SELECT o FROM t WHERE o = 10 AND {k} > 1",
    "WHERE, after NOT": "SELECT o FROM t WHERE NOT {k} > 1",
    "WHERE, in parentheses": "SELECT o FROM t WHERE ({k} > 1)",
    "IS NULL": "SELECT o FROM t WHERE {k} IS NOT NULL",
    "IN": "SELECT o FROM t WHERE {k} IN (1, 2)",
    "NOT IN": "SELECT o FROM t WHERE {k} NOT IN (1, 2)",
    "a member of IN": "SELECT o FROM t WHERE 2 IN (1, {k})",
    "BETWEEN": "SELECT o FROM t WHERE {k} BETWEEN 1 AND 2",
    "a bound of BETWEEN": "SELECT o FROM t WHERE 2 BETWEEN {k} AND 3",
    "LIKE": "SELECT o FROM t WHERE {k} LIKE '2'",
    "IS DISTINCT FROM": "SELECT o FROM t WHERE {k} IS DISTINCT FROM 2",
    "ON": "SELECT t.o FROM t JOIN t AS u ON {k} = 2",
    "GROUP BY": "SELECT COUNT(*) AS n, MIN({q}) AS a FROM t GROUP BY {k}",
    "GROUP BY, first": "SELECT COUNT(*) AS n, MIN({q}) AS a FROM t GROUP BY {k}, o",
    "GROUP BY, last": "SELECT COUNT(*) AS n, MIN({q}) AS a FROM t GROUP BY o, {k}",
    "GROUP BY, before HAVING": "SELECT COUNT(*) AS n FROM t GROUP BY {k} HAVING MIN({q}) > 1",
    "ROLLUP": "SELECT COUNT(*) AS n, MIN({q}) AS a FROM t GROUP BY ROLLUP ({k})",
    "GROUPING SETS": "SELECT COUNT(*) AS n, MIN({q}) AS a FROM t GROUP BY GROUPING SETS (({k}), ())",
    "HAVING": "SELECT {q} AS a FROM t GROUP BY {q} HAVING {k} > 1",
    "ORDER BY": "SELECT o, {q} AS a FROM t ORDER BY {k} LIMIT 1",
    "ORDER BY, descending": "SELECT o, {q} AS a FROM t ORDER BY {k} DESC LIMIT 1",
    "ORDER BY, NULLS": "SELECT o, {q} AS a FROM t ORDER BY {k} NULLS LAST LIMIT 1",
    "ORDER BY, later": "SELECT o, {q} AS a FROM t ORDER BY o, {k} LIMIT 1",
    "ORDER BY, before OFFSET": "SELECT o, {q} AS a FROM t ORDER BY {k} LIMIT 1 OFFSET 1",
    "an argument": "SELECT abs({k}) AS a FROM t",
    "the first argument": "SELECT coalesce({k}, o) AS a FROM t",
    "the last argument": "SELECT coalesce(NULL, {k}) AS a FROM t",
    "an argument of SUM": "SELECT SUM({k}) AS a FROM t",
    "an argument of COUNT DISTINCT": "SELECT COUNT(DISTINCT {k}) AS a FROM t",
    "an argument of CAST": "SELECT CAST({k} AS INT) AS a FROM t",
    "FILTER": "SELECT COUNT(*) FILTER (WHERE {k} > 1) AS a FROM t",
    "a sum in an argument": "SELECT abs({k} - 2) AS a FROM t",
    "CASE": "SELECT CASE {k} WHEN 1 THEN 2 END AS a FROM t",
    "WHEN": "SELECT CASE WHEN {k} = 1 THEN 2 END AS a FROM t",
    "THEN": "SELECT CASE WHEN o = 10 THEN {k} END AS a FROM t",
    "THEN, before ELSE": "SELECT CASE WHEN o = 10 THEN {k} ELSE o END AS a FROM t",
    "ELSE": "SELECT CASE WHEN o = 10 THEN 1 ELSE {k} END AS a FROM t",
    "a subquery's column": "SELECT s.{k} FROM (SELECT {k} FROM t) AS s",
    "a correlated column": "SELECT o FROM t WHERE EXISTS (SELECT 1 FROM t AS u WHERE u.o = 10 * t.{k})",
    "a column of IN's subquery": "SELECT o FROM t WHERE o IN (SELECT 10 * {k} FROM t)",
    "a column of a scalar subquery": "SELECT o, (SELECT MAX({k}) FROM t) AS m FROM t",
    "after UNION ALL": "SELECT o FROM t UNION ALL SELECT {k} FROM t",
    "before UNION ALL": "SELECT {k} FROM t UNION ALL SELECT o FROM t",
    "a CTE": "WITH {k} AS (SELECT o FROM t) SELECT o FROM {q}",
    "a second CTE": "WITH w AS (SELECT o FROM t), {k} AS (SELECT o FROM t) SELECT o FROM {q}",
    "a CTE's column": "WITH w ({k}) AS (SELECT o FROM t) SELECT {q} FROM w",
    "an alias's column": "SELECT s.{q} FROM t AS s ({k}, p)",
    "USING": "SELECT t.o FROM t JOIN t AS u USING ({k})",
    "USING, second": "SELECT t.o FROM t JOIN t AS u USING (o, {k})",
    "* EXCEPT": "SELECT * EXCEPT ({k}) FROM t",
    "a window": "SELECT o, ROW_NUMBER() OVER {k} AS n FROM t WINDOW {q} AS (ORDER BY {q})",
    "a window's name": "SELECT o, ROW_NUMBER() OVER {q} AS n FROM t WINDOW {k} AS (ORDER BY {q})",
    "PARTITION BY": "SELECT o, SUM(o) OVER (PARTITION BY {k}) AS n FROM t",
    "PARTITION BY, before ORDER BY": "SELECT o, SUM(o) OVER (PARTITION BY {k} ORDER BY o) AS n FROM t",
    "a window's ORDER BY": "SELECT o, SUM(o) OVER (ORDER BY {k}) AS n FROM t",
    "a window's ORDER BY, before ROWS": "SELECT o, SUM(o) OVER (ORDER BY {k} ROWS UNBOUNDED PRECEDING) AS n FROM t",
    "CREATE TABLE, a column": "CREATE TABLE r ({k} BIGINT, o BIGINT)",
    "CREATE TABLE, a later column": "CREATE TABLE r (o BIGINT NOT NULL, {k} BIGINT NOT NULL)",
    "CREATE TABLE": "CREATE TABLE {k} (o BIGINT)",
    "DROP TABLE": "DROP TABLE {k}",
    "ALTER TABLE ADD COLUMN": "ALTER TABLE t ADD COLUMN {k} BIGINT",
    "ALTER TABLE ADD COLUMNS": "ALTER TABLE t ADD COLUMNS ({k} BIGINT)",
    "CREATE VIEW": "CREATE VIEW {k} AS SELECT o FROM t",
    "CREATE VIEW, a column": "CREATE VIEW r ({k}) AS SELECT o FROM t",
    "PRIMARY KEY": "CREATE TABLE r ({q} BIGINT NOT NULL, PRIMARY KEY ({k}))",
}

REFUSED: dict[str, tuple[str, ...]] = {
    "lateral": (
        "a table, joined", "a table, after a comma",
    ),
    "anti cross except full inner intersect join lateral left minus natural on right semi union using": (
        "a table's alias after AS", "a table's alias", "a table's alias before WHERE", "a joined table's alias",
        "a subquery's alias", "a subquery's alias after AS",
    ),
    "except intersect join lateral minus natural on union using": (
        "a table's alias before JOIN",
    ),
    "having limit not offset where": (
        "LIKE",
    ),
    "identifier": (
        "CREATE TABLE",
    ),
}
"""The places where Spark refuses keywords, by the keywords."""

OTHER: dict[str, tuple[str, ...]] = {
    "stream": (
        "a table, joined", "a table, after a comma",
    ),
    "from lateral stream": (
        "a table, with an alias",
    ),
    "from having lateral limit offset stream where": (
        "a table, with a short alias",
    ),
    "anti cross full inner left right semi": (
        "a table's alias before JOIN",
    ),
    "false null true": (
        "a qualifier", "a qualifier, later", "a qualifier in a condition", "a qualifier of itself", "the first item",
        "an item in parentheses", "a right operand", "a left operand of *", "after a minus", "an operand of DIV",
        "a cast ::", "WHERE", "WHERE, on the right", "WHERE, after AND", "WHERE, after NOT", "WHERE, in parentheses",
        "IS NULL", "a member of IN", "BETWEEN", "a bound of BETWEEN", "LIKE", "IS DISTINCT FROM", "ON", "GROUP BY",
        "GROUP BY, first", "GROUP BY, last", "GROUP BY, before HAVING", "ROLLUP", "GROUPING SETS", "HAVING",
        "ORDER BY", "ORDER BY, NULLS", "ORDER BY, later", "ORDER BY, before OFFSET", "an argument",
        "the first argument", "the last argument", "an argument of SUM", "an argument of COUNT DISTINCT",
        "an argument of CAST", "FILTER", "CASE", "WHEN", "THEN", "THEN, before ELSE", "ELSE",
        "a column of IN's subquery", "a column of a scalar subquery", "PARTITION BY", "PARTITION BY, before ORDER BY",
        "a window's ORDER BY", "a window's ORDER BY, before ROWS",
    ),
    "and collate div ilike like or": (
        "an alias", "an alias of a sum", "an alias of a parenthesis", "an alias of a number", "an alias of a CASE",
    ),
    "and collate div ilike like or over": (
        "an alias of a call", "an alias of an aggregate",
    ),
    "all distinct false not null true": (
        "an item", "an item with an alias", "an item with a short alias", "a left operand", "a left operand of -",
        "a sum in an argument", "a subquery's column", "after UNION ALL", "before UNION ALL",
    ),
    "false not null true": (
        "the last item", "an item after DISTINCT", "ORDER BY, descending",
    ),
    "false having join limit not null offset true where": (
        "IN",
    ),
    "false having limit not null offset true where": (
        "NOT IN",
    ),
    "recursive": (
        "a CTE",
    ),
}
"""The places where a word has its meaning as a keyword, by the words."""
