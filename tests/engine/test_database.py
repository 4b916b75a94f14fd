"""Versions: a batch is applied whole, or the state is as before."""

from __future__ import annotations

import datetime as dt
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest

import freshviews as fv
from freshviews.engine.commit import commit as commits
from freshviews.engine.interrupts import Uninterrupted
from freshviews.engine.views.failure import Failure
from freshviews.engine.views.maintained import MaintainedView
from tests.engine.shop import seen, shop


@pytest.fixture
def db() -> Iterator[fv.Database]:
    with shop() as made:
        yield made


def test_the_readme_example_works() -> None:
    db = fv.Database()
    db.execute("""
      CREATE TABLE orders (o_id BIGINT PRIMARY KEY, cust BIGINT, day DATE, total DECIMAL(12, 2));
      CREATE TABLE items (o_id BIGINT, part STRING, qty INT);
      CREATE MATERIALIZED VIEW by_part AS
        SELECT part, SUM(qty) AS qty, COUNT(*) AS n
        FROM orders JOIN items USING (o_id) WHERE day >= DATE '2026-01-01' GROUP BY part;
    """)
    changes: list[fv.Change] = []
    view = db.view("by_part")
    end = view.subscribe(changes.append)
    with db.batch() as batch:
        batch.insert("orders", [(1, 7, dt.date(2026, 2, 1), Decimal("9.99")), (2, 7, dt.date(2025, 2, 1), None)])
        batch.insert("items", [(1, "bolt", 3), (1, "nut", 1), (2, "bolt", 50)])
    assert batch.version == db.version == 1
    assert view["bolt"] == ("bolt", 3, 1)
    db.delete("items", [(1, "bolt", 3)])
    assert [(c.version, sorted(c)) for c in changes] == [
        (1, [(("bolt", 3, 1), 1), (("nut", 1, 1), 1)]),
        (2, [(("bolt", 3, 1), -1)]),
    ]
    assert changes[1].to_arrow().to_pylist() == [{"part": "bolt", "qty": 3, "n": 1, "_multiplicity": -1}]
    end.unsubscribe()
    db.insert("items", [(1, "bolt", 4)])
    assert len(changes) == 2
    with pytest.raises(KeyError):
        view["screw"]
    assert view.to_pandas().shape == view.to_polars().shape == (2, 3)
    assert "first_order" in view.explain()
    assert db.tables == ("orders", "items") and db.views == ("by_part",)
    assert db.stats()["views"]["by_part"]["rows"] == 2


REFUSED: dict[str, tuple[str, list[Any], str, Any]] = {
    # table, signed rows, rule, what the error names
    "duplicate primary key": ("orders", [(3, 1, None, None, 1), (1, 1, None, None, 1)], "PRIMARY KEY", ("orders", 1)),
    "a row twice under a primary key": ("orders", [(3, 1, None, None, 2)], "PRIMARY KEY", ("orders", 0)),
    "delete of a missing row": ("items", [(1, "bolt", 3, -1), (1, "bolt", 9, -1)], "must be stored", ("items", 1)),
    "one delete too many": ("items", [(1, "bolt", 3, -3)], "must be stored", ("items", 0)),
    "child without parent": ("items", [(9, "bolt", 3, 1)], "FOREIGN KEY", ("items", 0)),
    "parent with children": ("orders", [(1, 7, None, None, -1)], "FOREIGN KEY", ("orders", 0)),
    "multiplicity overflow": ("items", [(None, "x", 1, 2**63 - 1), (None, "x", 1, 1)], "BIGINT", ("items", 1)),
}


@pytest.mark.parametrize("case", list(REFUSED))
def test_a_refused_batch_changes_no_table_and_no_view(db: fv.Database, case: str) -> None:
    table, rows, rule, place = REFUSED[case]
    before = seen(db)
    with pytest.raises(fv.BatchError) as caught:
        db.apply(table, rows)
    assert rule in caught.value.rule
    assert (caught.value.table, caught.value.row) == place
    assert seen(db) == before
    db.insert("orders", [(3, 1, None, None)])
    db.insert("items", [(3, "new", 2)])
    assert db.view("by_part")["new"] == ("new", 2, 1)


def test_the_error_of_a_duplicate_key_names_both_rows(db: fv.Database) -> None:
    with pytest.raises(fv.BatchError, match=r"\(1, 7, None, None\) and \(1, 9, None, None\)"):
        db.insert("orders", [(1, 9, None, None)])


def test_keys_and_foreign_keys_are_checked_for_the_net_effect_of_a_batch(db: fv.Database) -> None:
    db.apply("orders", [(1, 9, None, None, 1), (1, 7, None, None, -1)])
    with db.batch() as batch:
        batch.insert("items", [(4, "bolt", 1)])
        batch.insert("orders", [(4, 1, None, None)])
    with db.batch() as batch:
        batch.delete("orders", [(4, 1, None, None)])
        batch.delete("items", [(4, "bolt", 1)])
    assert sorted(db.table("orders")) == [(1, 9, None, None), (2, 8, None, None)]


def test_a_batch_is_refused_if_a_view_cannot_be_computed(db: fv.Database) -> None:
    before = seen(db)
    with pytest.raises(fv.EvaluationError, match=r"change of view by_part.*inverse") as caught:
        db.insert("items", [(1, "zero", 0)])
    assert caught.value.table == "by_part"
    assert seen(db) == before
    db.insert("items", [(1, "zero", 4)])
    assert (25, 1) in list(db.view("inverse"))


def test_an_evaluation_error_names_the_row_of_the_table() -> None:
    db = fv.Database()
    db.execute("CREATE TABLE t (a INT, b INT); CREATE MATERIALIZED VIEW v AS SELECT SUM(10 / b) AS s FROM t")
    before = seen(db)
    with pytest.raises(fv.EvaluationError, match=r"table t, row 2: view v .* for \(.*b = 0\)") as caught:
        db.insert("t", [(1, 1), (1, 2), (5, 0)])
    assert (caught.value.table, caught.value.row) == ("t", 2)
    assert seen(db) == before


def test_a_batch_is_refused_if_an_output_column_cannot_be_computed() -> None:
    db = fv.Database()
    db.execute(
        "CREATE TABLE t (a INT, b INT);"
        "CREATE MATERIALIZED VIEW v AS"
        " SELECT a, 10 / SUM(b) AS s, CAST(CAST(a AS STRING) AS INT) AS i FROM t GROUP BY a"
    )
    view = db.view("v")
    with pytest.raises(fv.EvaluationError, match="view v cannot be computed: division by zero"):
        db.insert("t", [(1, 0), (2, 5)])
    assert list(view) == [] and db.version == 0
    db.insert("t", [(2, 5)])
    with pytest.raises(fv.EvaluationError):
        db.insert("t", [(2, -5)])
    assert list(view) == [(2, 2.0, 2)]


def test_a_new_view_that_cannot_be_computed_is_refused() -> None:
    db = fv.Database()
    db.execute("CREATE TABLE t (b INT)")
    create = "CREATE MATERIALIZED VIEW v AS SELECT 10 / COUNT(*) AS s FROM t"
    with pytest.raises(fv.EvaluationError, match="view v: an output column"):
        db.execute(create)
    assert "v" not in db.views
    db.insert("t", [(1,), (2,)])
    db.execute(create)
    assert list(db.view("v")) == [(5.0,)]
    with pytest.raises(fv.EvaluationError):
        db.delete("t", [(1,), (2,)])
    assert list(db.view("v")) == [(5.0,)]


def test_a_row_inserted_and_deleted_in_one_batch_is_never_evaluated() -> None:
    db = fv.Database()
    db.execute("CREATE TABLE t (a INT, b INT); CREATE MATERIALIZED VIEW v AS SELECT SUM(10 / b) AS s FROM t")
    db.apply("t", [(1, 0, 1), (1, 5, 1), (1, 0, -1)])
    assert list(db.view("v")) == [(2.0,)]


def test_an_exception_inside_a_batch_leaves_nothing_behind(db: fv.Database) -> None:
    before = seen(db)
    with pytest.raises(RuntimeError), db.batch() as batch:
        batch.insert("orders", [(5, 5, None, None)])
        raise RuntimeError
    assert seen(db) == before
    with pytest.raises(fv.FreshviewsError, match="has ended"):
        batch.insert("orders", [(5, 5, None, None)])


def test_every_batch_makes_a_version_even_if_it_changes_nothing(db: fv.Database) -> None:
    version = db.version
    assert db.insert("items", []) == version + 1
    assert db.apply("items", [(1, "x", 1, 1), (1, "x", 1, -1)]) == version + 2
    with db.batch():
        pass
    assert db.version == version + 3


def test_the_version_is_unchanged_if_memory_runs_out_in_a_view(
    db: fv.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = seen(db)
    apply = MaintainedView.apply

    def failing(self: MaintainedView, batch: Any, more: bool = False, widens: bool = True) -> Failure | None:
        failure = apply(self, batch, more, widens)
        return Failure("memory", "memory ran out") if self.view.name == "bought" else failure

    monkeypatch.setattr(MaintainedView, "apply", failing)
    monkeypatch.setattr(commits, "fill", _disarmed(commits.fill, lambda: monkeypatch.undo()))
    with pytest.raises(fv.OutOfMemory):
        db.insert("items", [(1, "bolt", 9)])
    assert seen(db) == before
    db.insert("items", [(1, "bolt", 9)])
    assert db.view("by_part")["bolt"] == ("bolt", 15, 3)


def _disarmed(fill: Any, disarm: Any) -> Any:
    def first(*args: Any, **named: Any) -> None:
        disarm()
        fill(*args, **named)

    return first


def test_a_view_of_a_trusted_table_needs_a_reopen_after_memory_ran_out(monkeypatch: pytest.MonkeyPatch) -> None:
    db = fv.Database()
    db.execute(
        "CREATE TABLE t (a INT) TBLPROPERTIES ('freshviews.trusted' = 'true');"
        "CREATE MATERIALIZED VIEW v AS SELECT a, COUNT(*) AS n FROM t GROUP BY a"
    )
    db.insert("t", [(1,)])
    monkeypatch.setattr(MaintainedView, "apply", lambda *given: Failure("memory", "memory ran out"))
    with pytest.raises(fv.FreshviewsError, match="trusted"):
        db.insert("t", [(1,)] * 20)
    monkeypatch.undo()
    with pytest.raises(fv.FreshviewsError, match="open the database again"):
        db.view("v")


def test_an_unexpected_exception_in_a_view_undoes_the_batch(db: fv.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    before = seen(db)
    apply = MaintainedView.apply

    def failing(self: MaintainedView, batch: Any, more: bool = False, widens: bool = True) -> Failure | None:
        failure = apply(self, batch, more, widens)
        if self.view.name == "bought" and batch.multiplicities[0] > 0:
            raise RuntimeError("unexpected")
        return failure

    monkeypatch.setattr(MaintainedView, "apply", failing)
    with pytest.raises(RuntimeError, match="unexpected"):
        db.insert("items", [(1, "bolt", 9)])
    monkeypatch.undo()
    assert seen(db) == before


def test_all_subscribers_are_called_even_if_one_raises(db: fv.Database) -> None:
    told: list[Any] = []
    view = db.view("by_part")

    def failing(change: fv.Change) -> None:
        told.append(("failing", change.version))
        raise ValueError("mine")

    view.subscribe(failing)
    view.subscribe(lambda change: told.append(("second", change.version)))
    with pytest.raises(fv.SubscriberError, match="by_part") as caught:
        db.insert("items", [(1, "bolt", 1)])
    assert isinstance(caught.value.__cause__, ValueError)
    assert told == [("failing", 3), ("second", 3)]
    assert db.version == 3 and db.view("by_part")["bolt"] == ("bolt", 7, 3)


def test_a_batch_that_a_subscriber_inserts_is_reported_after_the_current_change(db: fv.Database) -> None:
    told: list[Any] = []
    view = db.view("by_part")

    def inserting(change: fv.Change) -> None:
        told.append(("first", change.version))
        if change.version == 3:
            db.insert("items", [(1, "bolt", 1)])

    view.subscribe(inserting)
    view.subscribe(lambda change: told.append(("second", change.version)))
    db.insert("items", [(1, "bolt", 1)])
    assert told == [("first", 3), ("second", 3), ("first", 4), ("second", 4)]


def test_readers_keep_the_version_at_which_they_began(db: fv.Database) -> None:
    view = db.view("bought")
    before = Counter(view)
    row_by_row = iter(view)
    first = next(row_by_row)
    batches = view.to_batches(rows=3)
    table = iter(db.table("items"))
    stored = Counter(db.table("items"))
    db.delete("items", [(1, "bolt", 3)])
    db.insert("items", [(2, "washer", 1)])
    assert Counter([first, *row_by_row]) == before
    assert Counter((row["cust"], row["part"]) for b in batches for row in b.to_pylist()) == before
    assert Counter(table) == stored
    assert Counter(view) != before
    late = iter(view)
    after = Counter(view)
    db.execute("DROP MATERIALIZED VIEW bought")
    assert Counter(late) == after
    with pytest.raises(fv.CatalogError, match="dropped"):
        len(view)


def test_the_size_of_record_batches_is_bounded_for_large_multiplicities() -> None:
    db = fv.Database()
    db.execute("CREATE TABLE t (a INT); CREATE MATERIALIZED VIEW v AS SELECT a FROM t")
    db.apply("t", [(1, 10), (2, 1), (3, 4)])
    sizes = [batch.num_rows for batch in db.view("v").to_batches(rows=4)]
    assert max(sizes) <= 4 and sum(sizes) == 15 == len(db.view("v"))


def test_a_script_is_executed_whole_or_not_at_all(db: fv.Database) -> None:
    tables, views, before = db.tables, db.views, seen(db)
    with pytest.raises(fv.SqlError):
        db.execute("CREATE TABLE x (a INT); CREATE MATERIALIZED VIEW y AS SELECT b FROM x")
    with pytest.raises(fv.EvaluationError):
        db.execute(
            "DROP MATERIALIZED VIEW bought; CREATE TABLE x (a INT);"
            "CREATE MATERIALIZED VIEW bad AS SELECT SUM(1 / (qty - 3)) AS s FROM items"
        )
    assert (db.tables, db.views) == (tables, views)
    assert seen(db) == before
    db.execute("CREATE TABLE x (a INT)")


def test_a_view_created_after_inserts_is_backfilled_from_tables_and_views(db: fv.Database) -> None:
    db.execute(
        "CREATE MATERIALIZED VIEW parts AS SELECT COUNT(*) AS n FROM by_part;"
        "CREATE MATERIALIZED VIEW units AS SELECT SUM(qty) AS s FROM items"
    )
    assert list(db.view("parts")) == [(2,)] and list(db.view("units")) == [(12,)]
    db.insert("items", [(1, "screw", 8)])
    assert list(db.view("parts")) == [(3,)] and list(db.view("units")) == [(20,)]


def test_dropping_a_relation_is_refused_while_a_view_reads_it(db: fv.Database) -> None:
    for sql, users in [("DROP TABLE items", "by_part"), ("DROP MATERIALIZED VIEW by_part", "inverse")]:
        with pytest.raises(fv.CatalogError, match=users):
            db.execute(sql)
    db.execute("DROP MATERIALIZED VIEW inverse; DROP MATERIALIZED VIEW by_part")
    db.insert("items", [(1, "zero", 0)])
    with pytest.raises(fv.CatalogError, match="unknown view by_part"):
        db.view("by_part")


def test_a_trusted_table_accepts_a_delete_before_the_insert_of_the_row() -> None:
    db = fv.Database()
    db.execute(
        "CREATE TABLE t (a INT, b STRING) TBLPROPERTIES ('freshviews.trusted' = 'true');"
        "CREATE MATERIALIZED VIEW v AS SELECT a, COUNT(*) AS n FROM t GROUP BY a"
    )
    db.delete("t", [(1, "x")])
    assert list(db.view("v")) == []
    db.insert("t", [(1, "x"), (1, "y")])
    assert list(db.view("v")) == [(1, 1)]
    with pytest.raises(fv.CatalogError, match="trusted"):
        db.execute("CREATE MATERIALIZED VIEW w AS SELECT b FROM t")
    with pytest.raises(fv.CatalogError, match="trusted"):
        db.table("t")
    with pytest.raises(fv.CatalogError, match="trusted"):
        db.execute(
            "CREATE TABLE p (a INT PRIMARY KEY) TBLPROPERTIES ('freshviews.trusted' = 'true');"
            "CREATE TABLE c (a INT, FOREIGN KEY (a) REFERENCES p (a))"
        )
    assert db.tables == ("t",)


def test_a_self_referring_foreign_key_is_checked_on_the_net_effect() -> None:
    db = fv.Database()
    db.execute("CREATE TABLE t (id INT PRIMARY KEY, boss INT, FOREIGN KEY (boss) REFERENCES t (id))")
    db.insert("t", [(1, None), (3, 2), (2, 1)])
    with pytest.raises(fv.BatchError, match="still refer"):
        db.delete("t", [(2, 1)])
    with pytest.raises(fv.BatchError, match="no row for 9"):
        db.insert("t", [(4, 9)])
    db.delete("t", [(2, 1), (3, 2)])
    assert list(db.table("t")) == [(1, None)]


def test_a_foreign_key_may_name_the_columns_of_a_key_in_another_order() -> None:
    db = fv.Database()
    db.execute(
        "CREATE TABLE p (a INT, b INT, PRIMARY KEY (a, b));"
        "CREATE TABLE c (y INT, x INT, FOREIGN KEY (y, x) REFERENCES p (b, a))"
    )
    db.insert("p", [(1, 2)])
    db.insert("c", [(2, 1), (None, 5)])
    with pytest.raises(fv.BatchError, match="no row for \\(1, 2\\)"):
        db.insert("c", [(1, 2)])
    with pytest.raises(fv.BatchError, match="still refer to \\(2, 1\\)"):
        db.delete("p", [(1, 2)])


@pytest.mark.parametrize("view, version", [("by_part", 2), ("inverse", 3)])
def test_ctrl_c_stops_a_commit_between_two_views_but_not_within_the_last_view(
    view: str, version: int, db: fv.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply = MaintainedView.apply

    def interrupting(self: MaintainedView, batch: Any, more: bool = False, widens: bool = True) -> Failure | None:
        if self.view.name == view:
            os.kill(os.getpid(), signal.SIGINT)
        return apply(self, batch, more, widens)

    monkeypatch.setattr(MaintainedView, "apply", interrupting)
    with pytest.raises(KeyboardInterrupt) as caught:
        db.insert("items", [(1, "bolt", 9)])
    monkeypatch.undo()
    assert isinstance(caught.value, fv.InterruptedAfterCommit) is (version == 3)
    assert db.version == version and db.view("by_part")["bolt"] == (("bolt", 15, 3) if version == 3 else ("bolt", 6, 2))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_signal_handlers_are_held_back_only_in_the_main_thread() -> None:
    before = signal.getsignal(signal.SIGINT)
    found: list[Any] = []

    def run() -> None:
        with Uninterrupted():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [before]


def test_threads_commit_one_after_the_other(db: fv.Database) -> None:
    def run(part: str) -> None:
        for _ in range(50):
            db.insert("items", [(1, part, 1)])
            list(db.view("bought"))

    threads = [threading.Thread(target=run, args=(part,)) for part in ("x", "y")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert db.version == 102
    assert db.view("by_part")["x"] == ("x", 50, 50) and db.view("by_part")["y"] == ("y", 50, 50)


def test_every_use_of_a_closed_database_is_refused(db: fv.Database) -> None:
    view = db.view("by_part")
    reader = iter(view)
    db.close()
    db.close()
    assert len(list(reader)) == 2
    for use in (lambda: db.insert("items", []), lambda: len(view), lambda: db.stats(), lambda: db.batch()):
        with pytest.raises(fv.FreshviewsError, match="closed"):
            use()


def test_the_error_names_an_argument_of_the_wrong_type(db: fv.Database) -> None:
    version = db.version
    for wrong, message in (
        (lambda: db.insert(None, [(1,)]), "the name of a table must be a str, not NULL"),  # type: ignore[arg-type]
        (lambda: db.view(5), "the name of a view must be a str, not 5"),  # type: ignore[arg-type]
        (lambda: db.execute(b"DROP TABLE t"), "a script of SQL must be a str, not bytes"),  # type: ignore[arg-type]
        (lambda: db.rule(None), "a text of rules must be a str, not NoneType"),  # type: ignore[arg-type]
    ):
        with pytest.raises(fv.FreshviewsError, match=message):
            wrong()
    with pytest.raises(TypeError, match="a subscriber must be a function of a change, not NoneType"):
        db.view(db.views[0]).subscribe(None)  # type: ignore[arg-type]
    assert db.version == version


def test_a_long_value_is_cut_off_in_messages() -> None:
    db = fv.Database()
    db.execute(
        "CREATE TABLE t (a STRING PRIMARY KEY, b INT); CREATE MATERIALIZED VIEW v AS SELECT a, 1 / b AS c FROM t"
    )
    long = "x" * 9999
    db.insert("t", [(long, 1)])
    for change in (
        lambda: db.insert("t", [(long, 2)]),
        lambda: db.insert("t", [(long + "y", 0)]),
        lambda: db.delete("t", [(long + "y", 1)]),
    ):
        with pytest.raises(fv.FreshviewsError) as caught:
            change()
        assert "characters)" in str(caught.value) and len(str(caught.value)) < 700


def test_errors_for_unknown_names_suggest_a_known_name(db: fv.Database) -> None:
    with pytest.raises(fv.CatalogError, match="did you mean items"):
        db.insert("item", [])
    with pytest.raises(fv.CatalogError, match="is a view"):
        db.insert("by_part", [])
    with pytest.raises(fv.CatalogError, match="no key to look up"):
        db.view("bought")[1]


def test_a_refused_batch_does_not_count_as_updates_of_a_view() -> None:
    with fv.Database() as db:
        db.execute("CREATE TABLE t (x BIGINT); CREATE MATERIALIZED VIEW v AS SELECT SUM(10 / x) AS q FROM t")
        db.insert("t", [(1,)])
        with pytest.raises(fv.EvaluationError):
            db.insert("t", [(i,) for i in range(50)])
        db.insert("t", [(i,) for i in range(1, 31)])
        assert db.stats()["views"]["v"]["updates"] == 31


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda db: db.execute("CREATE TABLE x (a INT)", (5,)), fv.SqlError, "0 parameters, but 1 values were passed"),
        (lambda db: db.execute("CREATE TABLE x (a INT)", parameters=[5]), fv.SqlError, "0 parameters, but 1 values"),
        (lambda db: db.define("CREATE TABLE x (a INT)"), fv.SqlError, "Database.execute takes the text of a script"),
        (lambda db: db.define(None), fv.SqlError, "a list of parsed statements, not NoneType"),
        (lambda db: db.bytes_of(None), fv.CatalogError, "must be a str, not NULL"),
        (lambda db: db.table("t").lookup(3), TypeError, r"not int; for one key: pyarrow.table\(\{'a': \[value\]\}\)"),
        (lambda db: db.table("t").to_batches("5"), TypeError, "to_batches: rows must be a whole number of 1 or more"),
        (lambda db: db.apply_net("t", [], "v", None), TypeError, "apply_net: rows must be a whole number"),
    ],
)
def test_errors_for_wrong_arguments_say_which_values_are_accepted(
    call: Callable[[Any], object], kind: type[Exception], message: str
) -> None:
    db = fv.Database()
    db.execute("CREATE TABLE t (b INT, a INT PRIMARY KEY); CREATE MATERIALIZED VIEW v AS SELECT a FROM t")
    with pytest.raises(kind, match=message):
        call(db)
    assert db.tables == ("t",)
