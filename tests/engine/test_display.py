"""Objects print as tables, on terminals and in notebooks, and EXPLAIN has its parts; no text becomes markup."""

from __future__ import annotations

import json
import pickle
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import freshviews as fv
from tests.engine.shop import shop

pytestmark = pytest.mark.plain_python(only=True)

HOSTILE = "<script>alert(1)</script>&\"'`\x1b[31m\n]]>"


@pytest.fixture
def db() -> Iterator[fv.Database]:
    with shop() as made:
        yield made


def html_of(thing: Any) -> ElementTree.Element:
    """The HTML of an object, which must be well-formed."""
    return ElementTree.fromstring(thing._repr_html_())


def texts_of(thing: Any) -> str:
    return " ".join(html_of(thing).itertext())


def test_a_printed_view_or_table_shows_rows_types_version_and_size(db: fv.Database) -> None:
    view = db.view("by_part")
    caption, names, types, *rows = repr(view).splitlines()
    assert re.fullmatch(r"view by_part at version 2: 2 rows, [\d.]+ K?B", caption)
    assert names.split() == ["part", "qty", "n"]
    assert types.split("  ") == ["STRING", "BIGINT NOT NULL", "BIGINT NOT NULL"]
    assert sorted(row.split() for row in rows) == [["bolt", "6", "2"], ["nut", "5", "1"]]
    table = repr(db.table("orders"))
    assert table.startswith("table orders at version 2: 2 rows, ") and "BIGINT NOT NULL" in table and "NULL" in table
    assert "bolt" in texts_of(view) and "DECIMAL(12, 2)" in texts_of(db.table("orders"))


def test_at_most_ten_rows_and_twenty_columns_are_shown() -> None:
    db = fv.Database()
    db.execute(f"CREATE TABLE t ({', '.join(f'c{i} INT' for i in range(25))})")
    db.insert("t", [tuple(range(i, i + 25)) for i in range(12)])
    lines = repr(db.table("t")).splitlines()
    assert lines[0].startswith("table t at version 1: 12 rows, ")
    assert lines[-2:] == ["... and more rows", "... and 5 more columns"] and len(lines) == 1 + 2 + 10 + 2
    assert len(html_of(db.table("t")).findall(".//tr")) == 12
    db.execute("CREATE TABLE none (c INT)")
    assert repr(db.table("none")).splitlines()[1:] == ["c", "INT"]


def test_a_printed_change_marks_inserted_and_deleted_rows(db: fv.Database) -> None:
    changes: list[fv.Change] = []
    subscription = db.view("by_part").subscribe(changes.append)
    db.insert("items", [(1, "bolt", 4)])
    caption, *_, gone, new = repr(changes[0]).splitlines()
    assert caption == "change of view by_part at version 3: 2 rows"
    assert (gone.split(), new.split()) == (["-1", "bolt", "6", "2"], ["+1", "bolt", "10", "3"])
    rows = html_of(changes[0]).findall(".//tr")
    colours = [row.get("style") for row in rows]
    assert colours[:2] == [None, None] and None not in colours[2:] and colours[2] != colours[3]
    assert repr(subscription).startswith("subscription to view by_part, active: <built-in method append")
    subscription.unsubscribe()
    assert texts_of(subscription).startswith("subscription to view by_part, ended")


def test_a_printed_database_lists_its_relations_and_their_inputs(db: fv.Database) -> None:
    db.execute("CREATE VIEW few AS SELECT part FROM by_part WHERE qty < 9; CREATE TABLE trusted (x INT) "
               "TBLPROPERTIES ('freshviews.trusted' = 'true'); CREATE MATERIALIZED VIEW late AS "
               "SELECT part, LAG(qty) OVER (ORDER BY part) AS q FROM by_part")  # fmt: skip
    caption, names, *rows = repr(db).splitlines()
    assert re.fullmatch(r"Database in memory, version 2: [\d.]+ KB", caption)
    assert names.split() == ["name", "kind", "rows", "memory", "reads"]
    listed = {row.split()[0]: re.split(r"  +", row) for row in rows}
    assert listed["items"][1:3] == ["table", "4 rows"] and listed["trusted"][2] == "not stored"
    assert listed["by_part"][2] == listed["late"][2] == "2 rows"
    assert listed["by_part"][-1] == "orders, items" and listed["late"][-1] == listed["few"][-1] == "by_part"
    assert not any("#" in name for name in listed)
    drawn = [text.text for text in html_of(db).iter() if text.tag.endswith("text")]
    assert {"orders", "items", "by_part", "late"} <= set(drawn)


def test_a_closed_or_dropped_object_shows_its_state_when_printed(db: fv.Database) -> None:
    view, empty = db.view("inverse"), fv.Database()
    db.execute("DROP MATERIALIZED VIEW inverse")
    assert repr(view) == "view inverse: inverse was dropped" == texts_of(view)
    assert re.fullmatch(r"Database in memory, version 0: \d+ B", repr(empty))
    table = db.table("items")
    db.close()
    assert repr(db) == "Database in memory, version 2, closed" == texts_of(db)
    assert repr(table) == "table items: the database is closed"


def test_stats_returns_a_dict_that_is_printed_as_a_table_with_units(db: fv.Database) -> None:
    stats = db.stats()
    assert isinstance(stats, dict) and json.loads(json.dumps(stats)) == stats and dict(stats) == stats
    caption, names, *rows = repr(stats).splitlines()
    assert re.fullmatch(r"version 2: \d strings of [\d.]+ K?B, [\d.]+ KB in all", caption)
    assert names.split() == ["name", "kind", "rows", "memory", "updates", "time", "strategy"]
    assert [row.split()[0] for row in rows] == ["orders", "items", "by_part", "bought", "inverse"]
    assert stats.units["bytes"] == "bytes" and stats.units["seconds"] == "seconds"
    assert "by_part" in texts_of(stats)


def test_stats_count_the_updates_and_seconds_of_a_backfill(db: fv.Database) -> None:
    db.execute("CREATE MATERIALIZED VIEW late AS SELECT part, SUM(qty) AS qty FROM items GROUP BY part")
    found = db.stats()["views"]["late"]
    assert found["updates"] == 3 and found["seconds"] > 0  # items has three distinct rows
    db.execute("ALTER VIEW late SET TBLPROPERTIES ('freshviews.strategy' = 'first_order')")
    assert db.stats()["views"]["late"]["updates"] == 6


@pytest.mark.parametrize(
    "shown",
    [
        lambda db: db,
        lambda db: db.view(f"v {HOSTILE[:20]}"),
        lambda db: db.table(f"t {HOSTILE[:20]}"),
        lambda db: db.stats(),
        lambda db: db.view(f"v {HOSTILE[:20]}").explain(),
        lambda db: db.changes[0],
        lambda db: db.subscription,
    ],
    ids=["database", "view", "table", "stats", "explanation", "change", "subscription"],
)
def test_hostile_text_is_escaped_in_every_printed_object(shown: Callable[[Any], Any]) -> None:
    db: Any = fv.Database()
    name = HOSTILE[:20].replace("`", "``")
    db.execute(f"CREATE TABLE `t {name}` (`c {name}` STRING);"
               f"CREATE MATERIALIZED VIEW `v {name}` AS SELECT `c {name}`, COUNT(*) AS n FROM `t {name}` "
               f"WHERE `c {name}` <> '<b>' GROUP BY `c {name}`")  # fmt: skip
    db.changes = []
    db.subscription = db.view(f"v {name}").subscribe(db.changes.append)
    db.insert(f"t {name}", [(HOSTILE,)])
    thing = shown(db)
    assert "\x1b" not in repr(thing) and "\x1b" not in thing._repr_html_()
    assert not [tag for tag in html_of(thing).iter() if tag.tag in ("script", "b")]
    assert "<script" not in thing._repr_html_()
    if isinstance(thing, fv.Explanation):
        assert not set("<>&\"'`") & set("".join(re.findall(r'\["(.*)"\]', thing.mermaid().replace("<br/>", " "))))
        ElementTree.fromstring(thing.svg())


def test_explain_shows_internal_views_and_their_common_bound() -> None:
    db = fv.Database()
    db.execute("""CREATE TABLE t (id INT, g STRING, x INT);
    CREATE MATERIALIZED VIEW lagged AS SELECT id, g, LAG(x) OVER (PARTITION BY g ORDER BY id) AS p FROM t;
    CREATE MATERIALIZED VIEW texts AS SELECT g, STRING_AGG(CAST(x AS STRING), ',' ORDER BY x) AS s, COUNT(*) AS n
      FROM t GROUP BY g;
    CREATE MATERIALIZED VIEW plain AS SELECT g, COUNT(*) AS n FROM t GROUP BY g""")
    db.insert("t", [(1, "a", 3), (2, "a", 5)])
    lagged = db.view("lagged").explain()
    assert isinstance(lagged, str) and lagged.splitlines()[:5] == [
        "view lagged(id INT, g STRING, p INT)",
        "reads lagged#1",
        "whole     the update of a row costs the sum of",
        "          lagged#1  per row of t: O(log N), for each of 2 rows",
        "          lagged    per changed row of lagged#1: O(1)",
    ]
    assert "\nview lagged#1(id INT," in lagged and "(assumed)" not in lagged
    parts = lagged.to_dict()
    (inner,) = parts["inner"]
    assert inner["blocks"][0]["bounds"]["update"] == "O(log N), for each of 2 rows"
    assert parts["reads"] == ["lagged#1"] and inner["reads"] == ["t"] and inner["stored"]["t"]["rows"] == 2
    assert parts["blocks"][0]["costs"]["lagged#1"] == {
        "lookups": 0, "rows_walked": 0, "writes": 1, "measured": True,
    }  # fmt: skip
    assert json.loads(json.dumps(parts)) == parts
    parts.clear()
    assert lagged.to_dict()["view"] == "lagged"
    texts = db.view("texts").explain()
    assert "texts#2  per row of t: O(1), plus O(n log n) for each changed group of n rows" in texts
    assert "texts    per changed row of texts#1 or texts#2: O(1)" in texts
    plain = db.view("plain").explain()
    assert "whole" not in plain and plain.to_dict()["inner"] == []


def test_an_explanation_can_be_drawn_as_mermaid_or_svg(db: fv.Database) -> None:
    explanation = db.view("by_part").explain()
    bound = explanation.to_dict()["blocks"][0]["bounds"]["update"]
    assert repr(explanation) == str(explanation) and type(str(explanation)) is str
    assert explanation.mermaid().splitlines() == [
        "flowchart LR",
        '    n0["orders"]',
        '    n1["items"]',
        f'    n2["by_part<br/>first_order<br/>{bound}"]',
        "    n0 --> n2",
        "    n1 --> n2",
    ]
    drawn = ElementTree.fromstring(explanation.svg())
    assert [text.text for text in drawn.iter() if text.tag.endswith("text")][:3] == ["orders", "items", "by_part"]
    copy = pickle.loads(pickle.dumps(explanation))
    assert copy == explanation and copy.to_dict() == explanation.to_dict() and copy.svg() == explanation.svg()


def test_completion_offers_the_keys_of_a_view(db: fv.Database) -> None:
    assert sorted(db.view("by_part")._ipython_key_completions_()) == ["bolt", "nut"]
    assert db.view("bought")._ipython_key_completions_() == []


KINDS = {
    "lag": ("SELECT g, o, LAG(v) OVER (PARTITION BY g ORDER BY o) AS p FROM t", 1),
    "text": ("SELECT g, STRING_AGG(CAST(v AS STRING), ',' ORDER BY o) AS x FROM t GROUP BY g", 1),
    "text and sum": ("SELECT g, STRING_AGG(CAST(v AS STRING)) AS x, SUM(w) AS w FROM t JOIN s USING (g) GROUP BY g", 2),
    "running sum": ("SELECT g, o, SUM(v) OVER (PARTITION BY g ORDER BY o) AS p FROM t", 2),
    "share": ("SELECT g, v, SUM(v) OVER (PARTITION BY g) AS p FROM t", 1),
    "rank": ("SELECT g, o, RANK() OVER (PARTITION BY g ORDER BY v) AS r FROM t", 1),
    "first rows": ("SELECT g, o FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY g ORDER BY v) <= 3", 1),
    "order that is not shown": ("SELECT g FROM t ORDER BY v DESC", 1),
    "correlated": ("SELECT g, v FROM t WHERE v > (SELECT AVG(w) FROM s WHERE s.g = t.g)", 1),
    "maximum of sums": ("SELECT g, MAX(x) AS m FROM (SELECT g, SUM(v) AS x FROM t GROUP BY g, o) AS q GROUP BY g", 1),
    "full join": ("SELECT t.g, v, w FROM t FULL JOIN s ON s.g = t.g", 1),
    "lag over a join": (
        "SELECT p FROM (SELECT LAG(v) OVER (PARTITION BY g ORDER BY o) AS p FROM t JOIN s USING (g)) AS q WHERE p > 3",
        2,
    ),
    "union": ("SELECT g FROM t UNION SELECT g FROM s", 0),
}


@pytest.mark.parametrize(("query", "inner"), KINDS.values(), ids=KINDS)
def test_explain_begins_with_the_update_bounds(query: str, inner: int) -> None:
    with fv.Database() as db:
        db.execute("CREATE TABLE t (g STRING, o INT, v INT); CREATE TABLE s (g STRING, w INT)")
        db.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
        explanation = db.view("v").explain()
        names = [f"v#{number}" for number in range(1, inner + 1)]
        lines = str(explanation).splitlines()
        assert lines[2] == "whole     the update of a row costs the sum of"
        bounds = lines[3 : 4 + inner]
        assert [line.split()[0] for line in bounds] == [*names, "v"]
        assert all(" per " in line and "row of " in line and ": O(" in line for line in bounds)
        assert all(f"\nview {name}(" in str(explanation) for name in names)
        assert [part["view"] for part in explanation.to_dict()["inner"]] == names


def test_ipython_completes_the_names_of_tables_and_views(db: fv.Database) -> None:
    shells = pytest.importorskip("IPython.core.interactiveshell")
    completer = pytest.importorskip("IPython.core.completer")
    shell = shells.InteractiveShell(user_ns={"db": db, "other": {"a": 1}, "fv": fv})
    shell.run_line_magic("load_ext", "freshviews")

    def offered(line: str) -> list[str]:
        with completer.provisionalcompleter():
            return [one.text for one in shell.Completer.completions(line, len(line))]

    assert offered('db.view("') == sorted(db.views) and offered('x = db.insert("IT') == ["items"]
    assert offered("db.table('") == sorted(db.tables) and "items" not in offered('db.view("it')
    assert "items" not in offered('other.table("') and "items" not in offered('unknown.table("')
