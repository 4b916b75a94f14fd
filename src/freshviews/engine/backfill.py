"""Backfills a view: initialises it with the rows of its inputs, in batches of bounded size."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, closing, nullcontext

from freshviews.engine.failures import evaluation_error
from freshviews.engine.relations import Relations
from freshviews.engine.tables.table_state import TableState
from freshviews.engine.views.failing_row import with_row
from freshviews.engine.views.view_state import ViewState
from freshviews.errors import EvaluationError, OutOfMemory
from freshviews.kernel.machine.beside import reporter
from freshviews.progress import Task

ROWS = 1 << 16
"""Rows of a batch."""


def fill(
    view: ViewState,
    relations: Relations,
    whole: Callable[[], AbstractContextManager[None]] = nullcontext,
    at_once: bool = False,
    threads: int = 1,
    again: bool = False,
) -> None:
    """Backfill an empty view. Rows of trusted tables are not stored, so they are left out.

    ``whole`` guards each batch: between batches the caller may be interrupted. ``at_once``: join all rows together
    where that is cheaper, and maintain traced joins once, after all rows; the join, or its derivations, take memory in
    addition. ``threads``: the most threads that share a batch. ``again``: the view had these rows before, perhaps in
    another order, so a sum that overflows on the way is right in the end. Raises EvaluationError, OutOfMemory; the view
    must then be cleared or closed.
    """
    view.maintained.use_threads(threads)
    start = time.perf_counter()
    try:
        _fill_whole(view, relations, whole, at_once, again)
        return
    except EvaluationError:
        if not view.maintained.in_lanes:
            raise
    finally:
        view.maintained.use_threads(1)
        view.seconds += time.perf_counter() - start
    # Perhaps not the first error in the order of the rows.
    view.maintained.clear()
    _fill_whole(view, relations, whole, at_once, again)


def _fill_whole(
    view: ViewState,
    relations: Relations,
    whole: Callable[[], AbstractContextManager[None]],
    at_once: bool,
    again: bool,
) -> None:
    sizes = input_rows(view, relations)
    _fill(view, sizes, relations, whole, at_once, again)
    rows = int(sum(sizes.values()))
    with whole(), reporter().rows("join", _shown(view), rows) if view.maintained.waits_for_join else nullcontext():
        done = view.maintained.joined()
    if not done:  # Deltas find the row at fault.
        _fill(view, sizes, relations, whole, again=again)
    with whole():
        failure = view.maintained.loaded()
    if failure is not None:
        name = _shown(view)
        if failure.kind == "memory":
            raise OutOfMemory(f"memory ran out while view {name} was backfilled")
        raise EvaluationError(f"view {name} cannot be computed: {failure.message}", table=name, rule=failure.message)


def input_rows(view: ViewState, relations: Relations) -> dict[str, float]:
    """Rows of the inputs as stored."""
    sizes = {}
    for name in view.maintained.inputs:
        source = relations.get(name)
        if isinstance(source, TableState):
            sizes[name] = float(source.stored.rows if source.stored is not None else 0)
        elif source is not None:
            sizes[name] = float(sum(rows for rows, _ in source.maintained.sizes().values()))
    return sizes


def _shown(view: ViewState) -> str:
    """The name of the view that a user knows."""
    return view.name.split("#")[0]


def _fill(
    view: ViewState,
    sizes: Mapping[str, float],
    relations: Relations,
    whole: Callable[[], AbstractContextManager[None]],
    at_once: bool = False,
    again: bool = False,
) -> None:
    """Feed relations to a view, one after the other; ``at_once`` and ``again`` as of ``fill``."""
    order, names = view.maintained.passes(sizes, at_once)
    rows = int(sum(sizes.get(name, 0) for name in order))
    with closing(names), reporter().rows("backfill", _shown(view), rows) if rows else nullcontext() as task:
        for name in names:
            source = relations.get(name)
            assert source is not None
            if source.is_stored:
                _feed(view, source, whole, at_once, again, task)


def _feed(
    view: ViewState,
    source: TableState | ViewState,
    whole: Callable[[], AbstractContextManager[None]],
    more: bool,
    again: bool,
    task: Task | None,
) -> None:
    """Feed a relation to a view; ``more`` as of ``load``."""
    forgives = again and not view.maintained.may_be_spoiled
    batches = source.batches(ROWS)
    while True:
        with whole():
            batch = next(batches, None)
            if batch is None:
                break
            failure = view.maintained.load(batch, more)
        if failure is None or (forgives and failure.kind == "evaluation"):
            view.counted += len(batch)
            if task is not None:
                task.step(task.done + len(batch))
            continue
        if failure.kind == "memory":
            raise OutOfMemory(f"memory ran out while view {_shown(view)} was backfilled")
        with whole():
            failure = with_row(failure, view.maintained, batch)
        raise evaluation_error(view, failure, source, batch, None)
