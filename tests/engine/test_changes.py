"""Iterators over the changes of a view lose none, repeat none, hold a bounded number of rows, and block no commit."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

import freshviews as fv
from tests.store.test_outside import in_child

pytestmark = [pytest.mark.plain_python, pytest.mark.compiled(4)]

SCRIPT = """
CREATE TABLE items (part STRING, qty INT);
CREATE TABLE others (n INT);
CREATE MATERIALIZED VIEW by_part AS SELECT part, SUM(qty) AS qty FROM items GROUP BY part;
CREATE MATERIALIZED VIEW pairs AS SELECT part, qty FROM items WHERE qty > 1;
"""


@pytest.fixture
def db() -> Iterator[fv.Database]:
    with fv.Database() as made:
        made.execute(SCRIPT)
        made.insert("items", [("bolt", 3), ("nut", 5)])
        yield made


class Replica:
    """The rows of a view, by its changes alone."""

    def __init__(self) -> None:
        self.rows: Counter[Any] = Counter()
        self.versions: list[int] = []
        self.snapshots = 0

    def add(self, change: fv.Change) -> None:
        if change.is_snapshot:
            self.rows.clear()
            self.snapshots += 1
        for row, multiplicity in change:
            self.rows[row] += multiplicity
            assert self.rows[row] >= 0
        self.versions.append(change.version)

    @property
    def contents(self) -> list[Any]:
        return sorted((+self.rows).elements())


def queues_of(view: fv.View) -> int:
    """How many iterators and functions a commit serves."""
    return len(view.state.subscriptions)


def in_thread(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_an_iterator_returns_a_snapshot_then_each_change(db: fv.Database) -> None:
    changes = db.view("by_part").changes()
    db.insert("items", [("bolt", 1)])
    first = next(changes)
    db.insert("items", [("nut", 2)])
    second = next(changes)
    assert (first.is_snapshot, first.version, list(first)) == (True, 2, [(("bolt", 4), 1), (("nut", 5), 1)])
    assert (second.is_snapshot, second.version) == (False, 3)
    assert sorted(second) == [(("nut", 5), -1), (("nut", 7), 1)]
    assert changes.take(0) is None


def test_an_iterator_that_begins_now_returns_only_later_changes(db: fv.Database) -> None:
    changes = db.view("by_part").changes("now")
    assert changes.take(0) is None
    db.insert("items", [("bolt", 0)])
    db.insert("others", [(1,)])
    db.insert("items", [("bolt", 1)])
    change = next(changes)
    assert (change.is_snapshot, change.version, changes.take(0.01)) == (False, 4, None)


def test_the_snapshot_of_an_empty_view_has_no_rows(db: fv.Database) -> None:
    db.execute("CREATE MATERIALIZED VIEW none AS SELECT part, qty FROM items WHERE qty > 100")
    found = next(db.view("none").changes())
    assert (found.is_snapshot, found.version, list(found), len(found)) == (True, 1, [], 0)
    assert found.to_arrow().schema.names == ["part", "qty", "_multiplicity"]


def test_a_snapshot_has_each_row_with_its_multiplicity(db: fv.Database) -> None:
    db.insert("items", [("bolt", 3), ("bolt", 3)])
    assert sorted(next(db.view("pairs").changes())) == [(("bolt", 3), 3), (("nut", 5), 1)]


def test_iterators_of_several_views_can_begin_at_the_same_version(db: fv.Database) -> None:
    with db.at_one_version() as version:
        found = [next(db.view(name).changes()) for name in ("by_part", "pairs")]
    assert [change.version for change in found] == [version, version]


def test_an_iterator_can_begin_at_an_old_version_while_its_changes_are_kept(db: fv.Database) -> None:
    view = db.view("by_part")
    assert view.changes(1).take(0) is None
    view.keep_changes(4)
    for _ in range(3):
        db.insert("items", [("bolt", 1)])
    assert next(view.changes(3)).version == 4
    with pytest.raises(fv.ArgumentError, match="after version 1 are not kept; pass a start from 2 to 4"):
        view.changes(1)
    with pytest.raises(fv.ArgumentError, match="after version 5 are not kept"):
        view.changes(5)
    changes = view.changes(2)
    assert [change.version for change in (next(changes), next(changes))] == [3, 4]
    view.keep_changes(0)
    assert queues_of(view) == 1
    with pytest.raises(fv.ArgumentError, match="pass start=4, the present version, or"):
        view.changes(3)


def test_an_iterator_can_begin_at_the_first_version_of_a_process(tmp_path: Path) -> None:
    with fv.Database(tmp_path / "d") as db:
        db.execute(SCRIPT)
        db.insert("items", [("bolt", 3)])
    with fv.Database(tmp_path / "d") as db:
        changes = db.view("by_part").changes(1)
        db.insert("items", [("bolt", 3)])
        assert next(changes).version == 2


def test_changes_beyond_the_queue_size_are_replaced_by_a_snapshot(db: fv.Database) -> None:
    replica, changes = Replica(), db.view("by_part").changes("now", size=4)
    for number in range(50):
        db.insert("items", [("bolt", 1 + number % 3)])
    found = changes.take(0)
    assert found is not None and found.is_snapshot and found.version == 51
    replica.add(found)
    db.insert("items", [("nut", 1)])
    replica.add(next(changes))
    assert replica.contents == sorted(db.view("by_part")) and replica.versions == [51, 52]


def test_a_change_larger_than_the_queue_size_is_returned_whole(db: fv.Database) -> None:
    changes = db.view("by_part").changes("now", size=1)
    db.insert("items", [(str(number), 1) for number in range(100)])
    found = next(changes)
    assert len(found) == 100 and not found.is_snapshot


def test_strings_of_waiting_changes_survive_the_close(db: fv.Database) -> None:
    changes = db.view("by_part").changes()
    first = next(changes)
    for number in range(300):
        db.insert("items", [(f"part {number}", 1)])
        db.delete("items", [(f"part {number}", 1)])
    db.delete("items", [("bolt", 3)])
    db.close()
    rows = [row for change in changes for row, multiplicity in change if multiplicity > 0]
    assert rows == [(f"part {number}", 1) for number in range(300)]
    assert list(first) == [(("bolt", 3), 1), (("nut", 5), 1)]


def test_an_iteration_ends_when_its_view_is_dropped(db: fv.Database) -> None:
    dropped, closed = db.view("pairs").changes("now"), db.view("by_part").changes("now")
    db.insert("items", [("bolt", 7)])
    taken: list[fv.Change] = []
    thread = in_thread(lambda: taken.extend(closed))
    db.execute("DROP VIEW pairs")
    assert [change.version for change in dropped] == [2]
    db.close()
    thread.join(10)
    assert [change.version for change in taken] == [2]
    lagging = fv.Database()
    lagging.execute(SCRIPT)
    changes = lagging.view("by_part").changes()
    lagging.close()
    assert list(changes) == []


def test_an_iterator_continues_after_its_view_is_replanned(db: fv.Database) -> None:
    replica, changes = Replica(), db.view("by_part").changes()
    replica.add(next(changes))
    db.execute("ALTER VIEW by_part SET TBLPROPERTIES ('freshviews.strategy' = 'recompute')")
    db.insert("items", [("bolt", 7), ("screw", 1)])
    replica.add(next(changes))
    assert replica.contents == sorted(db.view("by_part"))


def test_waiting_for_a_change_in_a_forked_child_is_refused(tmp_path: Path) -> None:
    with fv.Database(tmp_path / "shop") as durable:
        durable.execute("CREATE TABLE t (a INT); CREATE MATERIALIZED VIEW v AS SELECT a, COUNT(*) FROM t GROUP BY a")
        changes = durable.view("v").changes("now")
        assert "a child forked from it" in in_child(changes.take)
        assert "a child forked from it" in in_child(lambda: asyncio.run(anext(changes)))  # type: ignore[arg-type]
        durable.insert("t", [(1,)])
        assert len(changes.take(0) or ()) == 1


def test_closing_an_iterator_ends_the_wait_of_another_thread(db: fv.Database) -> None:
    with db.view("by_part").changes("now") as changes:
        waiting = threading.Event()

        def take() -> None:
            waiting.set()
            assert list(changes) == []

        thread = in_thread(take)
        waiting.wait(10)
    thread.join(10)
    assert not thread.is_alive()
    assert repr(changes) == "<changes of view by_part, ended>"


def test_waiting_for_a_change_is_refused_while_the_thread_holds_the_version(db: fv.Database) -> None:
    changes = db.view("by_part").changes("now")
    with db.at_one_version(), pytest.raises(fv.FreshviewsError, match="because this thread blocks new versions"):
        next(changes)
    seen: list[fv.Change] = []
    with db.view("by_part").subscribe(lambda change: seen.append(next(changes))):
        db.insert("items", [("bolt", 1)])
    assert [(one.version, len(one)) for one in seen] == [(2, 2)]


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"start": "later"}, "start must be 'snapshot', 'now' or a version, not 'later'"),
        ({"start": True}, "start must be"),
        ({"start": 1.0}, "start must be"),
        ({"size": 0}, r"changes\(size\): a whole number, 1 or more, is expected, not 0"),
        ({"full": "drop"}, "full must be 'snapshot' or 'wait', not 'drop'"),
        ({"timeout": -1}, r"timeout\): 0 or more seconds is expected, not -1"),
        ({"timeout": float("nan")}, r"timeout\): 0 or more seconds is expected, not nan"),
        ({"timeout": "long"}, r"changes\(timeout\): a number is expected"),
    ],
)
def test_the_error_of_a_wrong_argument_of_changes_names_the_argument(
    db: fv.Database, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(fv.ArgumentError, match=message):
        db.view("by_part").changes(**arguments)


# Iterators that are left


def test_an_abandoned_iterator_is_forgotten_at_the_next_commit(db: fv.Database) -> None:
    view = db.view("by_part")
    for _ in view.changes():
        break
    for _ in range(1000):
        view.changes(full="wait")
    gc.collect()
    assert queues_of(view) == 1
    db.insert("items", [("bolt", 1)])
    assert queues_of(view) == 0 and not view.state.wants_change and not db._queues.waited


def test_a_commit_continues_when_a_full_iterator_is_garbage_collected(db: fv.Database) -> None:
    kept = [db.view("by_part").changes("now", size=1, full="wait")]
    db.insert("items", [("bolt", 1)])
    thread = in_thread(lambda: db.insert("items", [("bolt", 1)]))
    kept.clear()
    gc.collect()
    thread.join(10)
    assert db.version == 3


# Commits that wait


def test_a_commit_waits_for_room_in_the_queue_of_an_iterator(db: fv.Database) -> None:
    view, replica = db.view("by_part"), Replica()
    changes = view.changes(size=4, full="wait")
    most = 0

    def work() -> None:
        nonlocal most
        for change in changes:
            replica.add(change)
            most = max(most, changes._queue.rows)
            db.insert("others", [(change.version,)])  # into a table that the view does not read: never waits
            if dict(view).get("last"):
                break

    thread = in_thread(work)
    for number in range(100):
        db.insert("items", [("bolt", 1 + number % 3)])
    db.insert("items", [("last", 1)])
    thread.join(60)
    while (left := changes.take(0)) is not None:
        replica.add(left)
    assert replica.contents == sorted(view) and replica.snapshots == 1
    assert most <= 4 + 2


def test_a_commit_never_waits_for_its_own_thread(db: fv.Database) -> None:
    view = db.view("by_part")
    changes = view.changes("now", size=1, full="wait", timeout=0.2)
    db.insert("items", [("bolt", 1)])
    with pytest.raises(fv.QueueFull, match=r"by_part: 2 rows .* the iterator took no change for 0\.2 seconds; the"):
        db.insert("items", [("bolt", 1)])
    next(changes)
    db.insert("items", [("bolt", 1)])
    with pytest.raises(fv.QueueFull, match="this thread reads the iterator"), db.batch() as batch:
        batch.insert("items", [("bolt", 1)])
    with pytest.raises(fv.QueueFull, match="this thread reads the iterator"):
        list(db.apply_in_order("items", [("bolt", 1, 1)], "by_part"))
    assert (db.version, view["bolt"]) == (3, ("bolt", 5))
    changes.close()
    db.insert("items", [("bolt", 1)])


def test_a_commit_in_a_subscriber_never_waits_for_a_full_queue(db: fv.Database) -> None:
    full = db.view("pairs").changes("now", size=1, full="wait")
    db.view("by_part").subscribe(lambda change: db.insert("items", [("nut", 9)]))
    with pytest.raises(fv.SubscriberError, match="cannot wait for the iterator"):
        db.insert("items", [("bolt", 7)])
    assert db.version == 2
    assert next(full).version == 2


# Threads


@pytest.mark.parametrize("size, full", [(1 << 16, "snapshot"), (8, "snapshot"), (8, "wait")])
def test_replicas_of_many_threads_follow_writers_of_many_threads(db: fv.Database, size: int, full: Any) -> None:
    view = db.view("by_part")
    replicas = [Replica() for _ in range(3)]

    def follow(replica: Replica, changes: fv.Changes) -> None:
        for change in changes:
            replica.add(change)
            if ("end", 1) in replica.rows:
                return

    followers = [
        in_thread(lambda one=one: follow(one, view.changes(size=size, full=full)))  # type: ignore[misc]
        for one in replicas
    ]

    def write(seed: int) -> None:
        random = Random(seed)
        for _ in range(100):
            db.insert("items", [(f"part {random.randrange(9)}", random.randrange(4)) for _ in range(3)])

    writers = [in_thread(lambda seed=seed: write(seed)) for seed in range(3)]  # type: ignore[misc]
    for thread in writers:
        thread.join(60)
    db.insert("items", [("end", 1)])
    for thread in followers:
        thread.join(60)
        assert not thread.is_alive()
    for replica in replicas:
        assert replica.contents == sorted(view)
        assert replica.versions == sorted(set(replica.versions))
        assert full == "snapshot" or replica.snapshots == 1


def test_threads_that_share_an_iterator_get_each_change_once(db: fv.Database) -> None:
    changes = db.view("by_part").changes("now")
    taken: list[int] = []
    threads = [in_thread(lambda: taken.extend(change.version for change in changes)) for _ in range(3)]
    for _ in range(50):
        db.insert("items", [("bolt", 1)])
    db.close()
    for thread in threads:
        thread.join(10)
    assert sorted(taken) == list(range(2, 52))


# Event loops


def test_a_task_follows_a_view_while_other_tasks_and_threads_insert(db: fv.Database) -> None:
    async def follow() -> Replica:
        replica = Replica()
        async with db.view("by_part").changes() as changes:
            async for change in changes:
                replica.add(change)
                if ("end", 1) in replica.rows:
                    break
        return replica

    async def write() -> None:
        for _ in range(50):
            db.insert("items", [("bolt", 1)])
            await asyncio.sleep(0)
            await asyncio.to_thread(db.insert, "items", [("nut", 1)])
        db.insert("items", [("end", 1)])

    async def main() -> list[Replica]:
        *found, _ = await asyncio.gather(follow(), follow(), write())
        return found

    for replica in asyncio.run(main()):
        assert replica.contents == sorted(db.view("by_part"))
        assert replica.versions == sorted(set(replica.versions)) and replica.snapshots == 1


def test_a_task_in_each_of_several_event_loops_follows_a_view(db: fv.Database) -> None:
    replicas = [Replica() for _ in range(3)]

    async def follow(replica: Replica) -> None:
        async for change in db.view("by_part").changes(size=16):
            replica.add(change)
            if ("end", 1) in replica.rows:
                return

    threads = [in_thread(lambda one=one: asyncio.run(follow(one))) for one in replicas]  # type: ignore[misc]
    for number in range(200):
        db.insert("items", [(f"part {number % 5}", 1)])
    db.insert("items", [("end", 1)])
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert all(replica.contents == sorted(db.view("by_part")) for replica in replicas)


def test_a_cancelled_task_loses_no_change(db: fv.Database) -> None:
    async def main() -> list[int]:
        changes = db.view("by_part").changes("now")
        versions: list[int] = []
        for _ in range(50):
            task = asyncio.ensure_future(anext(changes))
            await asyncio.sleep(0)
            db.insert("items", [("bolt", 1)])
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                versions.append((await task).version)
        while (left := changes.take(0)) is not None:
            versions.append(left.version)
        return versions

    assert asyncio.run(main()) == list(range(2, 52))


def test_a_timeout_of_asyncio_ends_the_wait_for_a_change(db: fv.Database) -> None:
    async def main() -> None:
        changes = db.view("by_part").changes("now")
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(anext(changes), 0.01)
        db.insert("items", [("bolt", 1)])
        assert (await anext(changes)).version == 2
        assert not changes._queue._wakers

    asyncio.run(main())


def test_the_iterator_of_a_cancelled_task_is_forgotten(db: fv.Database) -> None:
    view = db.view("by_part")

    async def follow() -> None:
        async for _ in view.changes(size=1, full="wait"):
            await asyncio.sleep(60)

    async def main() -> None:
        task = asyncio.create_task(follow())
        while view.state.subscriptions == [] or db._queues.waited[0].behind:
            await asyncio.sleep(0.01)
        db.insert("items", [("bolt", 1)])
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        del task
        gc.collect()
        db.insert("items", [("bolt", 1)])
        assert queues_of(view) == 0

    asyncio.run(main())


@pytest.mark.filterwarnings("ignore")
def test_a_closed_event_loop_blocks_no_commit(db: fv.Database) -> None:
    view = db.view("by_part")

    async def follow() -> None:
        async for _ in view.changes("now", size=1, full="wait"):
            pass

    loop = asyncio.new_event_loop()
    task = loop.create_task(follow())
    loop.run_until_complete(asyncio.sleep(0.01))
    loop.close()
    del task
    db.insert("items", [("bolt", 1)])
    db.insert("items", [("bolt", 1)])
    gc.collect()
    db.insert("items", [("bolt", 1)])
    assert queues_of(view) == 0


def test_a_task_can_take_a_snapshot_of_a_held_version(db: fv.Database) -> None:
    async def main() -> None:
        with db.at_one_version() as version:
            assert (await anext(db.view("by_part").changes())).version == version

    asyncio.run(main())


def test_an_insert_never_waits_for_its_own_event_loop(db: fv.Database) -> None:
    async def main() -> None:
        changes = db.view("by_part").changes("now", size=1, full="wait")
        task = asyncio.ensure_future(anext(changes))
        await asyncio.sleep(0)
        db.insert("items", [("bolt", 1)])
        with pytest.raises(fv.QueueFull, match="this thread reads the iterator"):
            db.insert("items", [("bolt", 1)])
        assert (await task).version == 2
        await asyncio.gather(asyncio.to_thread(db.insert, "items", [("bolt", 1)]), anext(changes))

    asyncio.run(main())


# Functions


def test_a_subscription_ends_at_the_end_of_its_with_block(db: fv.Database) -> None:
    seen: list[fv.Change] = []
    with db.view("by_part").subscribe(seen.append) as subscription:
        db.insert("items", [("bolt", 1)])
    db.insert("items", [("bolt", 1)])
    assert len(seen) == 1 and not subscription.active


class Later:
    async def __call__(self, change: fv.Change) -> None:
        """Never called."""


async def later(change: fv.Change) -> None:
    """Never called."""


@pytest.mark.parametrize("callback", [later, Later()], ids=["function", "object"])
def test_subscribe_refuses_an_async_function(db: fv.Database, callback: Any) -> None:
    with pytest.raises(fv.ArgumentError, match=r"cannot be an async def; await .* async for change in"):
        db.view("by_part").subscribe(callback)


def test_a_subscriber_that_returns_a_coroutine_raises_a_subscriber_error(db: fv.Database) -> None:
    db.view("by_part").subscribe(lambda change: later(change))
    with pytest.raises(fv.SubscriberError, match="a coroutine, which nothing awaits; await them in a task: async for"):
        db.insert("items", [("bolt", 1)])
    assert db.version == 2
