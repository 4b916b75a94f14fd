"""STRING_AGG, PROVENANCE and categories: texts of groups stay right through undo, images, snapshots and collections.
"""

from __future__ import annotations

import datetime as dt
import json
import random
import re
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from freshviews import Database
from freshviews.engine.change import Change
from freshviews.engine.codes.code_batch import Codes
from freshviews.engine.commit.collection import Collection
from freshviews.engine.views.texts import Texts
from freshviews.errors import BatchError, EvaluationError, FreshviewsError, PlanError, SqlError
from freshviews.plan import STRATEGIES
from freshviews.program.statements import Loop
from freshviews.program.structure import visit

pytestmark = pytest.mark.plain_python

PAGE = Path(__file__).parents[2] / "docs" / "rings.md"
SCRIPT = """
CREATE TABLE orders (o_id BIGINT PRIMARY KEY, cust STRING);
CREATE TABLE items (o_id BIGINT, part STRING, qty INT);
CREATE MATERIALIZED VIEW parts AS
SELECT cust, STRING_AGG(part, ', ' ORDER BY qty DESC) AS parts, SUM(qty) AS qty, PROVENANCE() AS made_by
FROM orders o JOIN items i ON i.o_id = o.o_id GROUP BY cust;
CREATE MATERIALIZED VIEW texts AS SELECT parts, COUNT(*) AS n FROM parts GROUP BY parts;
CREATE MATERIALIZED VIEW sums AS
SELECT cust, COFACTOR(qty, CATEGORY(part), CATEGORY(i.o_id)) AS f
FROM orders o JOIN items i ON i.o_id = o.o_id GROUP BY cust;
"""


def expected(orders: dict[int, str], items: Counter[tuple[int, str, int]]) -> list[tuple[Any, ...]]:
    """The expected rows of ``parts``."""
    found = []
    for cust in {orders[o] for o, _, _ in items.elements() if o in orders}:
        own = [(o, part, qty) for o, part, qty in sorted(items.elements()) if orders.get(o) == cust]
        lined_up = sorted(own, key=lambda row: (-row[2], row[1]))
        monomials = [
            {"o": [o], "i": [o, part, qty], "times": n} for (o, part, qty), n in sorted(Counter(own).items())
        ]
        found.append((cust, ", ".join(part for _, part, _ in lined_up), sum(q for *_, q in own), json.dumps(monomials)))
    return sorted(found)


def expected_sums(orders: dict[int, str], items: Counter[tuple[int, str, int]]) -> list[tuple[Any, ...]]:
    """The expected rows of ``sums``."""
    found = []
    for cust in {orders[o] for o, _, _ in items.elements() if o in orders}:
        own = [row for row in items.elements() if orders.get(row[0]) == cust]

        def sums(number: Callable[[int], int], *keys: int, own: list[tuple[Any, ...]] = own) -> str:
            total = Counter[tuple[Any, ...]]()
            for row in own:
                total[tuple(row[i] for i in keys)] += number(row[2])
            return json.dumps([[*key, n] for key, n in sorted(total.items())], ensure_ascii=False)

        def one(qty: int) -> int:
            return 1

        numbers = [len(own), sum(qty for *_, qty in own), sums(one, 1), sums(one, 0), sum(q * q for *_, q in own)]
        found.append((cust, *numbers, sums(int, 1), sums(int, 0), sums(one, 1, 0)))
    return sorted(found)


class Shop:
    """A database, and its expected rows."""

    def __init__(self, path: Path | None = None) -> None:
        self.db = Database(path)
        if not self.db.tables:
            self.db.execute(SCRIPT)
        self.orders: dict[int, str] = {}
        self.items = Counter[tuple[int, str, int]]()

    def step(self, choose: random.Random) -> None:
        """Insert or delete a few rows."""
        with self.db.batch() as batch:
            for _ in range(choose.randint(1, 3)):
                number = choose.randint(1, 5)
                if number in self.orders:
                    batch.delete("orders", [(number, self.orders.pop(number))])
                else:
                    self.orders[number] = f"cust {choose.randint(1, 2)}"
                    batch.insert("orders", [(number, self.orders[number])])
                row = (choose.randint(1, 5), choose.choice(("bolt", "nut", "änker \"x\"")), choose.randint(1, 3))
                if self.items[row] and choose.random() < 0.6:
                    self.items[row] -= 1
                    batch.delete("items", [row])
                else:
                    self.items[row] += 1
                    batch.insert("items", [row])

    def check(self) -> None:
        rows = [(*row[:3], json.dumps(json.loads(row[3]))) for row in self.db.view("parts")]
        assert sorted(rows) == expected(self.orders, self.items)
        counts = Counter(parts for _, parts, _, _ in rows)
        assert sorted(self.db.view("texts")) == sorted(counts.items())
        assert sorted(self.db.view("sums")) == expected_sums(self.orders, self.items)


def test_the_example_in_the_provenance_docs_gives_the_text_shown() -> None:
    page = PAGE.read_text().split("\n## Provenance\n")[1]
    script = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)[0]
    text = re.findall(r"```json\n(.*?)\n```", page, re.DOTALL)[0]
    with Database() as db:
        db.execute(script)
        db.insert("orders", [(1, 7), (2, 7)])
        db.insert("items", [(1, "bolt"), (1, "bolt"), (2, "bolt")])
        assert list(db.view("parts")) == [("bolt", 3, text)]


def test_text_aggregates_follow_inserts_and_deletes() -> None:
    shop, choose = Shop(), random.Random(1)
    sums = Counter[tuple[Any, ...]]()

    def add(change: Change) -> None:
        for row, m in change:
            sums[tuple(row)] += m

    with shop.db:
        shop.db.view("parts").subscribe(add)
        for _ in range(40):
            shop.step(choose)
            shop.check()
            assert +sums == Counter(list(shop.db.view("parts"))) and min(sums.values(), default=0) >= 0


def test_a_refused_batch_leaves_text_aggregates_unchanged() -> None:
    shop, choose = Shop(), random.Random(2)
    with shop.db as db:
        db.execute("CREATE MATERIALIZED VIEW ratio AS SELECT cust, 100 / (qty - 50) AS r FROM parts")
        for _ in range(20):
            shop.step(choose)
            with pytest.raises(BatchError):
                db.insert("orders", [(6, "cust 1"), (6, "cust 2")])
            # The batch is refused after the texts have changed.
            with pytest.raises(EvaluationError), db.batch() as batch:
                batch.insert("orders", [(9, "cust 3")])
                batch.insert("items", [(9, "bolt", 25), (9, "nut", 25), (9, "nut", 0)])
            shop.check()


@pytest.mark.parametrize("snapshot", [False, True])
def test_text_aggregates_are_maintained_after_a_reopen(tmp_path: Path, snapshot: bool) -> None:
    choose = random.Random(3)
    shop = Shop(tmp_path)
    for number in range(12):
        shop.step(choose)
        if snapshot and number % 3 == 0:
            shop.db.snapshot()
        shop.db.close()
        again = Shop(tmp_path)
        again.orders, again.items, shop = shop.orders, shop.items, again
        shop.check()
    shop.db.close()


def test_strings_of_old_text_aggregates_leave_the_dictionary() -> None:
    shop, choose = Shop(), random.Random(4)
    with shop.db as db:
        db._collection = Collection(db._dictionary, 8)
        for _ in range(150):
            shop.step(choose)
            shop.check()
        assert db._collection.ended > 3
        texts = [text for text in db._dictionary.entries() if text is not None]
        assert len(texts) < 80


def test_text_aggregates_of_unchanged_groups_are_not_rendered(monkeypatch: pytest.MonkeyPatch) -> None:
    rendered: list[int] = []
    render = Texts._texts_of

    def counted(self: Texts, rows: Codes) -> list[str | None]:
        rendered.append(len(rows))
        return render(self, rows)

    with Database() as db:
        db.execute("CREATE TABLE t (g INT, x INT)")
        db.execute("CREATE MATERIALIZED VIEW v AS SELECT g, STRING_AGG(x, ',') AS xs FROM t GROUP BY g")
        db.insert("t", [(g, x) for g in range(200) for x in range(5)])
        db.insert("t", [(0, 9)])
        monkeypatch.setattr(Texts, "_texts_of", counted)
        db.insert("t", [(7, 9)])
        # The old text is remembered.
        assert rendered == [0, 6]
        db.delete("t", [(7, 9), (8, 0)])
        assert rendered == [0, 6, 0, 9]
        assert db.view("v").to_arrow().num_rows == 200


def test_provenance_writes_values_as_json() -> None:
    with Database() as db:
        db.execute("""CREATE TABLE t (a DECIMAL(9, 3), b DOUBLE, c BOOLEAN, d DATE, e TIMESTAMP, f STRING, g FLOAT);
        CREATE MATERIALIZED VIEW v AS SELECT PROVENANCE() AS p FROM t""")
        assert list(db.view("v")) == [("[]",)]
        moment = dt.datetime(2026, 1, 31, 8, 0, 0, 250000)
        db.insert("t", [(Decimal("1.500"), 0.1, True, dt.date(2026, 1, 31), moment, 'a "b"\n\u20ac', 0.5)])
        ((text,),) = db.view("v")
        assert '"t": [1.500, 0.1, true, "2026-01-31", "2026-01-31T08:00:00.250000",' in text
        (found,) = json.loads(text)
        assert found["t"][5:] == ['a "b"\n\u20ac', 0.5] and found["times"] == 1
        db.insert("t", [(None, float("nan"), None, None, None, None, float("-inf"))])
        ((text,),) = db.view("v")
        assert json.loads(text)[0]["t"] == [None, "NaN", None, None, None, None, "-Infinity"]


def one(select: str, rows: list[tuple[Any, ...]]) -> Any:
    """The one value of a SELECT over a table t(k, g, x, s, b)."""
    with Database() as db:
        db.execute("CREATE TABLE t (k INT PRIMARY KEY, g INT, x DECIMAL(4, 1), s STRING, b BOOLEAN)")
        db.execute(f"CREATE MATERIALIZED VIEW v AS {select}")
        db.insert("t", rows)
        ((value,),) = db.view("v")
        return value


ROWS = [
    (1, 10, Decimal("9.5"), "b", True),
    (2, 9, Decimal("10.5"), "a", False),
    (3, None, Decimal("9.5"), None, None),
    (10, 9, None, "B", True),
]


@pytest.mark.parametrize(
    "call, value",
    [
        ("STRING_AGG(s)", "Bab"),
        ("STRING_AGG(s, ', ')", "B, a, b"),
        ("GROUP_CONCAT(s)", "B,a,b"),
        ("LISTAGG(k, '-')", "1-2-3-10"),
        ("LISTAGG(DISTINCT g, '-') WITHIN GROUP (ORDER BY g DESC)", "10-9"),
        ("STRING_AGG(x, ' ')", "9.5 9.5 10.5"),
        ("STRING_AGG(DISTINCT x, ' ' ORDER BY x DESC)", "10.5 9.5"),
        ("STRING_AGG(s, '' ORDER BY g)", "Bab"),
        ("STRING_AGG(s, '' ORDER BY g DESC, k DESC)", "bBa"),
        ("STRING_AGG(k, ' ' ORDER BY g, k)", "3 2 10 1"),
        ("STRING_AGG(k, ' ' ORDER BY g NULLS LAST, k DESC)", "10 2 1 3"),
        ("STRING_AGG(b, ' ' ORDER BY k)", "true false true"),
        ("STRING_AGG(s, NULL ORDER BY k DESC)", "Bab"),
        ("STRING_AGG(s, '-' ORDER BY k) FILTER (WHERE g = 9)", "a-B"),
        ("STRING_AGG(s, '-') FILTER (WHERE g = 8)", None),
        ("UPPER(STRING_AGG(s || '!', '' ORDER BY k))", "B!A!B!"),
        ("STRING_AGG('x', '')", "xxxx"),
    ],
)
def test_joined_texts_have_the_given_order_and_separator(call: str, value: str | None) -> None:
    assert one(f"SELECT {call} AS v FROM t", ROWS) == value


def test_the_coefficients_of_a_provenance_add_up_to_the_count_of_its_group() -> None:
    with Database() as db:
        db.execute("""CREATE TABLE r (a INT, b INT); CREATE TABLE s (b INT, c INT);
        CREATE MATERIALIZED VIEW v AS
        SELECT c, COUNT(*) AS n, PROVENANCE() AS p FROM r p JOIN s q USING (b) JOIN r o ON o.a = q.c GROUP BY c""")
        choose = random.Random(5)
        for table in ("r", "s") * 3:
            db.insert(table, [(choose.randint(0, 2), choose.randint(0, 2)) for _ in range(6)])
            for _, n, text in db.view("v"):
                found = json.loads(text)
                assert sum(one["times"] for one in found) == n
                assert all(set(one) == {"p", "q", "o", "times"} for one in found)


@pytest.mark.parametrize(
    "select, message",
    [
        ("SELECT PROVENANCE() FROM t LEFT JOIN u USING (k)", "outer join, which may lack a row of u"),
        ("SELECT PROVENANCE() FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k)", "rows chosen by NOT EXISTS"),
        ("SELECT PROVENANCE() FROM t WHERE k IN (SELECT k FROM u)", "make a materialized view"),
        ("SELECT PROVENANCE() FROM (SELECT g, COUNT(*) n FROM t GROUP BY g) q", "PROVENANCE() of q, a subquery"),
        ("SELECT PROVENANCE() FROM (SELECT k FROM t UNION SELECT k FROM u) q", "make a materialized view of q"),
        ("SELECT PROVENANCE() OVER (PARTITION BY g) FROM t", "PROVENANCE() OVER is not supported"),
        ("SELECT PROVENANCE() FILTER (WHERE g > 1) FROM t", "with FILTER is not supported; select the rows by WHERE"),
        ("SELECT PROVENANCE(k) FROM t", "takes no arguments; it covers"),
        ("SELECT PROVENANCE() FROM t AS times", "give the table another alias"),
        ("SELECT STRING_AGG(DISTINCT k, ',' ORDER BY g) FROM t", "order by the value itself"),
        ("SELECT STRING_AGG(k, g) FROM t", "the separator of string_agg must be a string in quotes"),
        ("SELECT STRING_AGG(k, ',', 'x') FROM t", "takes 1 or 2 arguments"),
        ("SELECT STRING_AGG(k ORDER BY k, ',') FROM t", "ORDER BY must follow the separator"),
        ("SELECT LISTAGG(k ORDER BY k) WITHIN GROUP (ORDER BY g) FROM t", "write only one"),
        ("SELECT k FROM t WHERE STRING_AGG(k, '') = ''", "an aggregate function cannot stand in WHERE"),
        ("SELECT ARRAY_AGG(k) FROM t", "STRING_AGG joins values as a text"),
    ],
)
def test_the_error_names_the_refused_construct_and_its_place(select: str, message: str) -> None:
    with Database() as db:
        db.execute("CREATE TABLE t (k INT PRIMARY KEY, g INT); CREATE TABLE u (k INT, z INT)")
        with pytest.raises(SqlError, match=re.escape(message)) as caught:
            db.execute(f"CREATE MATERIALIZED VIEW v AS\n{select}")
        assert (caught.value.line, caught.value.column > 1) == (2, True)
        assert not db.views


def test_rows_with_text_aggregates_are_identified_by_the_key_of_their_view() -> None:
    with Database() as db:
        db.execute("""CREATE TABLE t (k INT PRIMARY KEY, g INT, s STRING);
        CREATE MATERIALIZED VIEW v AS SELECT g, STRING_AGG(s, ',') AS s FROM t GROUP BY g;
        CREATE MATERIALIZED VIEW w AS SELECT PROVENANCE() AS p FROM v""")
        db.insert("t", [(1, 1, "a"), (2, 2, "b"), (3, 1, "c")])
        assert list(db.view("w")) == [('[{"v": [1], "times": 1}, {"v": [2], "times": 1}]',)]


def test_each_grouping_set_has_its_own_text_aggregates() -> None:
    """Also a set that is written twice, and one whose groups are not selected."""
    with Database() as db:
        db.execute("""CREATE TABLE t (a INT, b STRING, c STRING);
        CREATE MATERIALIZED VIEW v AS SELECT a, b, STRING_AGG(c, ',') AS t, COUNT(*) AS n, GROUPING_ID(a, b) AS g FROM t
            GROUP BY ROLLUP (a, b) HAVING LENGTH(STRING_AGG(c, ',')) > 1;
        CREATE MATERIALIZED VIEW w AS SELECT b, STRING_AGG(c, '') AS t FROM t
            GROUP BY GROUPING SETS ((b), (a), (b), ());
        CREATE MATERIALIZED VIEW p AS SELECT a, PROVENANCE() AS by FROM t GROUP BY CUBE (a);
        CREATE MATERIALIZED VIEW one AS SELECT STRING_AGG(c, '') AS t FROM t GROUP BY GROUPING SETS (())""")
        assert {name: list(db.view(name)) for name in "vwp"} == {"v": [], "w": [], "p": []}
        assert list(db.view("one")) == [(None,)]
        db.insert("t", [(1, None, "x"), (1, "p", "y"), (None, None, "z"), (None, None, "z")])
        assert Counter(db.view("v")) == Counter(
            [*((None, None, "z,z", 2, g) for g in (0, 1)), (1, None, "x,y", 2, 1), (None, None, "x,y,z,z", 4, 3)]
        )
        assert Counter(db.view("w")) == Counter(
            [("p", "y"), ("p", "y"), (None, "xzz"), (None, "xzz"), (None, "xy"), (None, "zz"), (None, "xyzz")]
        )
        db.delete("t", [(1, None, "x"), (None, None, "z"), (None, None, "z")])
        assert list(db.view("v")) == [] and Counter(db.view("w")) == {("p", "y"): 2, (None, "y"): 2}
        found = '[{"t": [1, "p", "y"], "times": 1}]'
        assert Counter(db.view("p")) == {(1, found): 1, (None, found): 1}
        db.delete("t", [(1, "p", "y")])
        assert {name: list(db.view(name)) for name in "vwp"} == {"v": [], "w": [], "p": []}


LOOKED_UP = {
    "plain": ("SELECT a, b, STRING_AGG(c, ',') AS t FROM r GROUP BY a, b", ("a", "b")),
    "both": (
        "SELECT b, a AS x, COUNT(*) AS n, STRING_AGG(c, ',') AS t, UPPER(STRING_AGG(c, '-')) AS u FROM r"
        " GROUP BY a, b HAVING COUNT(*) > 1 AND LENGTH(STRING_AGG(c, ',')) > 2",
        ("x", "b"),
    ),
    "rows": ("SELECT a, PROVENANCE() AS p FROM r GROUP BY a", ("a",)),
    "joined": (
        "SELECT STRING_AGG(y.c, ',' ORDER BY y.b DESC) AS t, x.a, 1 AS k, SUM(y.a) AS s"
        " FROM r x JOIN r y ON x.a = y.a GROUP BY x.a",
        ("a",),
    ),
    "sums": ("SELECT COFACTOR(a, CATEGORY(b), CATEGORY(c)) AS f, b, c FROM r GROUP BY b, c", ("b", "c")),
}  # fmt: skip


ABLE = [name for name in STRATEGIES if not name.startswith("ivm_eps")]
"""Strategies that maintain lists of rows, unlike ``ivm_eps``."""


@pytest.mark.parametrize(
    "strategy", [None, *(pytest.param(one, marks=pytest.mark.plain_python(only=True)) for one in ABLE)]
)
def test_rows_with_text_aggregates_can_be_looked_up_by_their_group_keys(strategy: str | None, tmp_path: Path) -> None:
    """The lookup has no loop over a whole view, so it reads no row of another group."""
    named = "" if strategy is None else f"TBLPROPERTIES ('freshviews.strategy' = '{strategy}')"
    views = "; ".join(f"CREATE MATERIALIZED VIEW {name} {named} AS {select}" for name, (select, _) in LOOKED_UP.items())
    db = Database(tmp_path)
    db.execute(f"CREATE TABLE r (a BIGINT, b STRING, c STRING); {views}")
    for state in db._relations.views.values():
        for block in state.maintained.blocks:
            keyed = block.plan.program.keyed
            assert (keyed is not None) == (state.definition.name in LOOKED_UP)
            loops = [one for one in visit(() if keyed is None else keyed.body) if isinstance(one, Loop)]
            assert all(one.bound for one in loops)
    draw = random.Random(3)
    rows: list[tuple[Any, ...]] = []
    for step in range(12):
        values = (None, 1, 2), (None, "p", "q"), (None, "u", "vv")
        new = [tuple(map(draw.choice, values)) for _ in range(3)]
        gone = [rows.pop(draw.randrange(len(rows))) for _ in range(min(len(rows), draw.randrange(4)))]
        rows += new
        with db.batch() as batch:
            batch.insert("r", new)
            batch.delete("r", gone)
        if step == 8:
            db.close()
            db = Database(tmp_path)
        for name, (_, key) in LOOKED_UP.items():
            view = db.view(name)
            places = [view.schema.names.index(column) for column in key]
            found = list(view)
            assert [view[tuple(row[i] for i in places)] for row in found] == found
            for absent in ((7,) * len(key), (1, "p")[: len(key)]):
                if absent not in {tuple(row[i] for i in places) for row in found}:
                    with pytest.raises(KeyError):
                        view[absent]
    with pytest.raises(KeyError, match=re.escape("the key of view both is (x, b)")):
        db.view("both")[1]
    db.close()


def test_the_strategy_property_applies_to_text_aggregates() -> None:
    script = """CREATE TABLE r (a INT, b INT); CREATE TABLE s (b INT, c INT);
    CREATE MATERIALIZED VIEW v TBLPROPERTIES ('freshviews.strategy' = '{}') AS
    SELECT PROVENANCE() AS p FROM r JOIN s USING (b)"""
    with Database() as db:
        db.execute(script.format("first_order"))
        assert db._relations.views["v#1"].maintained.strategies == ("first_order",)
        with pytest.raises(SqlError, match="which has a text of the rows of each group"):
            db.execute("ALTER VIEW v SET TBLPROPERTIES ('freshviews.strategy' = 'crown')")
    with Database() as db, pytest.raises(FreshviewsError, match="ivm_eps") as caught:
        db.execute(script.format("ivm_eps"))
    assert isinstance(caught.value, PlanError)


def test_explain_shows_the_text_aggregates_and_their_cost() -> None:
    with Database() as db:
        db.execute("""CREATE TABLE t (k INT PRIMARY KEY, g INT, s STRING);
        CREATE MATERIALIZED VIEW v AS
        SELECT g, STRING_AGG(s, ',' ORDER BY k DESC) AS s, PROVENANCE() AS p FROM t GROUP BY g""")
        texts = [db._relations.views[f"v#{i}"].maintained.explain() for i in (1, 2)]
        assert "text      a2, joined by ',', of the rows of each (g1), in the order of (a1 DESC, a2)" in texts[0]
        assert "text      JSON of t, of the rows of each (g1), in the order of (a1)" in texts[1]
        assert "O(n log n) for each changed group of n rows" in texts[0]
