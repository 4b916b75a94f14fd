"""Join trees chosen by the updates of tables, at CREATE and on request, and views altered in place."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from freshviews import Database
from freshviews.engine.measured.replanning import ADVISED_FROM
from freshviews.errors import CatalogError, FreshviewsError, PlanError, SqlError

pytestmark = pytest.mark.compiled(6)

TABLES = """CREATE TABLE r (a BIGINT NOT NULL, b BIGINT NOT NULL){r};
CREATE TABLE s (b BIGINT NOT NULL, c BIGINT NOT NULL);
CREATE TABLE t (c BIGINT NOT NULL, d BIGINT NOT NULL);"""
VIEW = """CREATE MATERIALIZED VIEW v AS SELECT r.a, r.b, s.c, t.d
  FROM r JOIN s ON r.b = s.b JOIN t ON s.c = t.c;"""
# The best tree for equally many updates of each table is [b](r, s(t)), for many of t [c](t, s(r)).

Told = Counter[tuple[int, ...]]


def tree_of(db: Database) -> str:
    lines = db.view("v").explain().splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("tree"))
    end = next(i for i in range(at, len(lines)) if not lines[i])
    return "\n".join(lines[at:end])


def top_of(db: Database) -> str:
    return tree_of(db).splitlines()[0].split()[-1]


def rows_of_t(first: int, count: int) -> list[tuple[int, int]]:
    return [(i % 7, i) for i in range(first, first + count)]


def expected(t: list[tuple[int, int]]) -> Counter[tuple[int, ...]]:
    return Counter((1, 2, c, d) for c, d in t if c == 3)


def fill(db: Database) -> None:
    db.insert("r", [(1, 2)])
    db.insert("s", [(2, 3)])


def test_the_planner_uses_past_updates_to_plan_a_new_view() -> None:
    with Database() as db:
        db.execute(TABLES.format(r=""))
        fill(db)
        db.insert("t", rows_of_t(0, 50))
        db.execute(VIEW)
        assert top_of(db) == "[c]"
        assert Counter(db.view("v")) == expected(rows_of_t(0, 50))


@pytest.mark.parametrize("strategy", ["view_tree", "first_order"])
def test_only_views_with_a_join_tree_store_numbers_of_updates(strategy: str) -> None:
    with Database() as db:
        db.execute(TABLES.format(r=""))
        db.insert("t", rows_of_t(0, 50))
        db.execute(VIEW.replace("VIEW v", f"VIEW v TBLPROPERTIES ('freshviews.strategy' = '{strategy}')"))
        assert "freshviews.updates" not in dict(db._relations.views["v"].definition.properties)


def test_declared_update_rates_replace_measured_update_rates() -> None:
    with Database() as db:
        db.execute(TABLES.format(r=" TBLPROPERTIES ('freshviews.update_rate' = '1')"))
        fill(db)
        db.insert("t", rows_of_t(0, 50))
        db.execute(VIEW)
        assert top_of(db) == "[b]"
        db.insert("t", rows_of_t(50, ADVISED_FROM))
        assert not db.replan("v") and advice(db) is None
        assert top_of(db) == "[b]"


def advice(db: Database) -> str | None:
    """The advice of ``stats`` to replan, which EXPLAIN repeats."""
    found: str | None = db.stats()["views"]["v"]["replan"]
    assert (found is not None) == ("db.replan('v')" in db.view("v").explain())
    return found


def test_no_commit_replans_a_view() -> None:
    with Database() as db:
        db.execute(TABLES.format(r="") + VIEW)
        fill(db)
        kept_by = db._relations.views["v"].maintained
        for first in range(0, 2 * ADVISED_FROM, 5_000):
            assert (advice(db) is None) == (first < ADVISED_FROM)
            db.insert("t", rows_of_t(first, 5_000))
        assert db._relations.views["v"].maintained is kept_by and top_of(db) == "[b]"
        assert advice(db) == f"r 1, s 1, t {2 * ADVISED_FROM}"


def test_replan_uses_the_numbers_of_past_updates() -> None:
    """Handles, readers and subscribers of the view continue; later changes come from the new tree."""
    with Database() as db:
        db.execute(TABLES.format(r="") + VIEW)
        held = db.view("v")
        told: Told = Counter()
        held.subscribe(lambda change: told.update(dict(change)))
        fill(db)
        db.insert("t", rows_of_t(0, 1000))
        reader = held.to_batches(16)
        first = next(reader)
        assert db.replan("V") and not db.replan("v")
        assert top_of(db) == "[c]" and advice(db) is None
        assert sum(batch.num_rows for batch in reader) + len(first) == len(expected(rows_of_t(0, 1000)))
        db.insert("t", rows_of_t(1000, 20))
        db.delete("t", rows_of_t(0, 10))
        left = expected(rows_of_t(10, 1010))
        assert Counter(held) == left
        assert +told == left
        with pytest.raises(CatalogError, match="unknown view w"):
            db.replan("w")
        db.execute("DROP MATERIALIZED VIEW v")
        with pytest.raises(CatalogError, match="v was dropped"):
            list(held)


def test_a_view_is_replanned_again_if_the_load_changes() -> None:
    """Also if the tree was chosen by the few updates before CREATE, or by an earlier replanning."""
    with Database() as db:
        db.execute(TABLES.format(r=""))
        fill(db)
        db.insert("t", rows_of_t(0, 5))
        db.execute(VIEW)
        assert top_of(db) == "[c]"
        for first in range(0, 3 * ADVISED_FROM, 5_000):
            db.insert("r", [(i, 2) for i in range(first, first + 5_000)])
        assert advice(db) is not None and db.replan("v")
        assert top_of(db) == "[b]" and advice(db) is None
        assert len(db.view("v")) == sum(expected(rows_of_t(0, 5)).values()) * (3 * ADVISED_FROM + 1)


def test_errors_of_replan_name_the_view() -> None:
    with Database() as db:
        db.execute(TABLES.format(r="") + VIEW)
        for name, message in (("w", "unknown view w"), ("r", "r is a table, not a view"), (None, "not NULL")):
            with pytest.raises(CatalogError, match=message):
                db.replan(name)  # type: ignore[arg-type]


def test_equal_numbers_of_updates_cause_no_replanning() -> None:
    with Database() as db:
        db.execute(TABLES.format(r="") + VIEW)
        state = db._relations.views["v"]
        kept_by = state.maintained
        for table in "rst":
            db.insert(table, [(i, i) for i in range(ADVISED_FROM // 2)])
        assert advice(db) is None and not db.replan("v")
        assert state.maintained is kept_by


def test_the_chosen_join_tree_survives_a_reopen(tmp_path: Path) -> None:
    with Database(tmp_path / "db") as db:
        db.execute(TABLES.format(r=""))
        fill(db)
        db.insert("t", rows_of_t(0, 50))
        db.execute(VIEW + " -- the end")
        chosen = tree_of(db)
    for snapshot in (False, True):
        with Database(tmp_path / "db") as db:
            assert tree_of(db) == chosen
            assert Counter(db.view("v")) == expected(rows_of_t(0, 50))
            if not snapshot:
                db.snapshot()


def test_a_view_created_and_dropped_in_one_script_is_absent_after_a_reopen(tmp_path: Path) -> None:
    """Also one that is altered later in the script, and nested views."""
    nested = """CREATE MATERIALIZED VIEW n AS SELECT a, COUNT(*) AS n FROM
      (SELECT DISTINCT r.a, s.c, t.d FROM r JOIN s ON r.b = s.b JOIN t ON s.c = t.c) GROUP BY a;"""
    altered = VIEW.replace("VIEW v", "VIEW w")
    altered += "ALTER VIEW w SET TBLPROPERTIES ('freshviews.join_tree' = '[b](r, s(t))');"
    with Database(tmp_path / "db") as db:
        db.execute(TABLES.format(r=""))
        fill(db)
        db.insert("t", rows_of_t(0, 50))
        db.execute(VIEW + "DROP MATERIALIZED VIEW v;" + nested + altered)
        before = list(db.view("n")), sorted(db.view("w"))
    with Database(tmp_path / "db") as db:
        assert db.views == ("n", "w")
        assert (list(db.view("n")), sorted(db.view("w"))) == before
        assert "[b]" in db.view("w").explain()


def test_a_replanned_view_survives_a_reopen(tmp_path: Path) -> None:
    with Database(tmp_path / "db") as db:
        db.execute(TABLES.format(r="") + VIEW)
        fill(db)
        db.insert("t", rows_of_t(0, 100))
        assert db.replan("v") and top_of(db) == "[c]"
        db.insert("t", rows_of_t(100, 10))
    with Database(tmp_path / "db") as db:
        assert top_of(db) == "[c]"
        assert Counter(db.view("v")) == expected(rows_of_t(0, 110))


# ALTER VIEW


def test_a_view_is_altered_in_place_and_its_readers_continue() -> None:
    with Database() as db:
        db.execute(TABLES.format(r="") + VIEW)
        db.execute("CREATE MATERIALIZED VIEW n AS SELECT c, COUNT(*) AS n FROM v GROUP BY c")
        fill(db)
        db.insert("t", rows_of_t(0, 20))
        db.execute("ALTER VIEW v SET TBLPROPERTIES ('freshviews.join_tree' = 's(r, t)')")
        assert tree_of(db).splitlines()[0].split()[1].startswith("s(")
        db.insert("t", rows_of_t(20, 20))
        left = expected(rows_of_t(0, 40))
        assert Counter(db.view("v")) == left
        assert list(db.view("n")) == [(3, len(left))]
        db.execute("ALTER VIEW V SET TBLPROPERTIES ('freshviews.join_tree' = '', 'freshviews.strategy' = 'view_tree')")
        assert "strategy  view_tree: named by the user" in db.view("v").explain()
        db.delete("t", rows_of_t(0, 20))
        assert list(db.view("n")) == [(3, len(expected(rows_of_t(20, 20))))]


def test_a_property_may_set_the_number_of_updates() -> None:
    with Database() as db:
        db.execute(TABLES.format(r="") + VIEW)
        db.execute("ALTER VIEW v SET TBLPROPERTIES ('freshviews.updates' = 'T 5000, r 10')")
        assert top_of(db) == "[c]"
        with pytest.raises(PlanError, match="'x 3' must be a name and its number of updates"):
            db.execute("ALTER VIEW v SET TBLPROPERTIES ('freshviews.updates' = 't 5000, x 3')")
        assert top_of(db) == "[c]"


def test_a_failing_script_leaves_the_view_unchanged() -> None:
    with Database() as db:
        db.execute(TABLES.format(r="") + VIEW)
        fill(db)
        db.insert("t", rows_of_t(0, 20))
        before = tree_of(db)
        for bad in ("DROP TABLE nothing", "ALTER VIEW v SET TBLPROPERTIES ('freshviews.join_tree' = '[r_b](r, s)')"):
            with pytest.raises(FreshviewsError):
                db.execute(f"ALTER VIEW v SET TBLPROPERTIES ('freshviews.join_tree' = 's(r, t)'); {bad}")
            assert tree_of(db) == before
        assert Counter(db.view("v")) == expected(rows_of_t(0, 20))


def test_a_view_is_altered_twice_and_dropped_in_one_script() -> None:
    one = "ALTER VIEW v SET TBLPROPERTIES ('freshviews.join_tree' = 's(r, t)');"
    other = one.replace("s(r, t)", "r(s(t))")
    with Database() as db:
        db.execute(TABLES.format(r="") + VIEW + one + other)
        fill(db)
        db.insert("t", rows_of_t(0, 20))
        held = db.view("v")
        db.execute(one + other)
        assert Counter(held) == expected(rows_of_t(0, 20))
        assert "r(" in tree_of(db).splitlines()[0]
        db.execute(one + "DROP MATERIALIZED VIEW v;" + VIEW)
        with pytest.raises(CatalogError, match="v was dropped"):
            list(held)
        assert Counter(db.view("v")) == expected(rows_of_t(0, 20))


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("ALTER VIEW w SET TBLPROPERTIES ('freshviews.strategy' = 'crown')", "unknown view w; there are v"),
        ("ALTER VIEW v SET TBLPROPERTIES ('freshviews.window' = '3 rows')", "unknown property freshviews.window"),
        ("ALTER VIEW v RENAME TO w", "SET TBLPROPERTIES"),
        ("ALTER TABLE r SET TBLPROPERTIES ('freshviews.rows' = '3')", "this ALTER TABLE is not supported"),
    ],
)
def test_alterations_that_are_not_supported_are_refused(sql: str, message: str) -> None:
    with Database() as db:
        db.execute(TABLES.format(r="") + VIEW)
        with pytest.raises(SqlError) as refusal:
            db.execute(sql)
        assert message in str(refusal.value)


def test_a_view_of_trusted_tables_with_rows_is_not_altered() -> None:
    with Database() as db:
        db.execute(TABLES.format(r=" TBLPROPERTIES ('freshviews.trusted' = 'true')") + VIEW)
        db.execute("ALTER VIEW v SET TBLPROPERTIES ('freshviews.strategy' = 'first_order')")
        fill(db)
        with pytest.raises(CatalogError, match="are not stored; create the view"):
            db.execute("ALTER VIEW v SET TBLPROPERTIES ('freshviews.strategy' = 'view_tree')")
        db.insert("t", [(3, 4)])
        assert list(db.view("v")) == [(1, 2, 3, 4)]
