"""Writes the statements over ordered indexes: Scan, Top, Beside, Framed, Forget, Renumber, Cross, RangeSum
and RangeLoop."""

from __future__ import annotations

from dataclasses import replace

from freshviews.codegen.layout import row_layout
from freshviews.codegen.writing.additions import write_removal, write_target
from freshviews.codegen.writing.context import Context
from freshviews.codegen.writing.payloads.integers import times
from freshviews.kernel.memory.mem import bits
from freshviews.kernel.ordered.index import TOP
from freshviews.kernel.ordered.percentiles import DESCENDING, DISCRETE
from freshviews.kernel.ordered.ranges import (
    HAS_HIGH,
    HAS_LOW,
    HIGH_FIRST,
    HIGH_STRICT,
    HIGH_WORDS,
    LOW_FIRST,
    LOW_STRICT,
    LOW_WORDS,
    OF_PLACES,
)
from freshviews.kernel.ordered.threshold_tree import OVERFLOWN, SELECTED
from freshviews.kernel.ordered.top import HELD, MOVED, NOW, NUMBER, OTHER, PLACE
from freshviews.kernel.scalar.payload import SUM_OVERFLOW
from freshviews.program.statements import (
    Beside,
    Cross,
    Forget,
    Framed,
    PlaceBound,
    Range,
    RangeLoop,
    RangeSum,
    Renumber,
    Scan,
    Sum,
    Top,
)
from freshviews.query import block
from freshviews.records import dataclass


@dataclass(frozen=True)
class _Side:
    """The bits of a bound of a range, and the function that has its address in the header."""

    given: int
    strict: int
    words: int
    first: int
    address: str


_LOW = _Side(HAS_LOW, LOW_STRICT, LOW_WORDS, LOW_FIRST, "low_of")
_HIGH = _Side(HAS_HIGH, HIGH_STRICT, HIGH_WORDS, HIGH_FIRST, "high_of")
_ENDS = {"min": "ordered_first", "min_by": "ordered_first", "max": "ordered_last", "max_by": "ordered_last"}


def write_scan(context: Context, statement: Scan) -> None:
    """Set a component to an aggregate of the rows of a group, or to 0 where the group has no row."""
    if statement.known:
        _write_scan_of_range(context, statement)
        return
    view, source = context.views[statement.view], context.views[statement.source]
    table = context.table(source.name)
    value = context.fresh(statement.component)
    arguments = f"load(load({table}, ORDERED_LIST), 0), {table}, {context.key(statement.within)}"
    percentile = block.percentile_of(statement.kind)
    if percentile is not None:
        way = DISCRETE * (percentile.function == block.DISCRETE) | DESCENDING * percentile.descending
        context.line(f"{value} = ordered_percentile({arguments}, {bits(percentile.fraction)}, {way}, status)")
    elif statement.kind in block.MODES:
        context.line(f"{value} = ordered_mode({arguments}, {source.folds.index(statement.kind)})")
    elif statement.kind in _ENDS and len(statement.within) == len(source.key) - len(source.ordered):
        context.line(f"{value} = {_ENDS[statement.kind]}({arguments})")
    else:
        context.line(f"{value} = ordered_fold({arguments}, {source.folds.index(statement.kind)})")
    row = write_target(context, view, statement.key)
    context.line(f"store({row}, {row_layout(view).offsets[statement.component]}, {value})")
    write_removal(context, view, row)


def _write_scan_of_range(context: Context, statement: Scan) -> None:
    """Set components to a fold of the rows of a range, and one to 1, or all to 0 where there are no rows."""
    view, source = context.views[statement.view], context.views[statement.source]
    value, known, by = (context.fresh(one) for one in (statement.component, statement.known, statement.by or "by"))
    if statement.kind:
        _, place, bounds = _range(context, Range(source.name, statement.within, statement.low, statement.high))
        context.line(f"{value} = range_fold({place}, {bounds}, {source.folds.index(statement.kind)})")
    else:
        context.line(f"{value} = NULL")
    context.line(f"{known} = 1 if {value} != NULL else 0")
    if statement.by:
        found, last = f"row_at({context.table(source.name)}, {value} - 1)", len(source.key) - 1
        context.line(f"{by} = load({found}, {last - 1}) if {known} != 0 else 0")
        context.line(f"{value} = load({found}, {last}) if {known} != 0 else 0")
    else:
        context.line(f"{value} = {value} if {known} != 0 else 0")
    row, offsets = write_target(context, view, statement.key), row_layout(view).offsets
    words = [(offsets[statement.component], value), (offsets[statement.known], known)]
    words += [(offsets[statement.by], by)] if statement.by else []
    if context.moved:
        changed = " or ".join(f"load({row}, {offset}) != {word}" for offset, word in words)
        with context.block(f"if {changed}:"):
            context.line(f"{context.moved} = 1")
    for offset, word in words:
        context.line(f"store({row}, {offset}, {word})")
    write_removal(context, view, row)


def write_top(context: Context, statement: Top) -> None:
    """Run the body for each row that enters or leaves the first rows of the order."""
    order, moved, table = _write_start(context, statement)
    step = f"{moved} = top_next({order}, {table}, {statement.first}, {statement.last})"
    context.line(step)
    with context.loop(f"while {moved} != 0:"):
        context.step()
        _write_moved(context, statement, order, moved)
        context.body(statement.body)
        context.line(step)


def write_beside(context: Context, statement: Beside) -> None:
    """Run the body for each row whose neighbour changes."""
    order, moved, table = _write_start(context, statement)
    other, there = context.fresh(f"{moved}_other"), context.variable(statement.there)
    step = f"{moved} = beside_next({order}, {table}, {statement.shift})"
    context.line(step)
    with context.loop(f"while {moved} != 0:"):
        context.step()
        _write_moved(context, statement, order, moved)
        context.line(f"{other} = load({order}, {TOP + OTHER})")
        context.line(f"{there} = 1 if {other} != 0 else 0")
        for i, variable in statement.other:
            context.line(f"{context.variable(variable)} = load({other}, {i}) if {other} != 0 else NULL")
        context.body(statement.body)
        context.line(step)


def write_framed(context: Context, statement: Framed) -> None:
    """Run the body for each row that enters or leaves the frame of a row."""
    order, moved, table = _write_start(context, statement)
    other = context.fresh(f"{moved}_other")
    step = f"{moved} = frame_next({order}, {table}, {statement.low}, {statement.high})"
    context.line(step)
    with context.loop(f"while {moved} != 0:"):
        context.step()
        _write_moved(context, statement, order, moved)
        if statement.other:
            context.line(f"{other} = load({order}, {TOP + OTHER})")
        for i, variable in statement.other:
            context.line(f"{context.variable(variable)} = load({other}, {i})")
        context.body(statement.body)
        context.line(step)


def _write_start(context: Context, statement: Top | Beside | Framed) -> tuple[str, str, str]:
    """Start the report of a change; return the variables of the index, of a row that it returns, and of the table."""
    view = context.view_of(statement.alias)
    table, row = context.table(view.name), context.row(statement.alias)
    order, moved = context.fresh(f"{view.name}_order"), context.fresh(f"{view.name}_moved")
    count = f"load({row}, {len(view.key)})"
    context.line(f"{order} = load(load({table}, ORDERED_LIST), 0)")
    context.line(f"top_start({order}, {table}, {row}, add_wrapping({count}, -{context.variable(statement.grown)}))")
    return order, moved, table


def _write_moved(context: Context, statement: Top | Beside | Framed | Renumber, order: str, moved: str) -> None:
    """Bind the key of a reported row, and its change."""
    for i, variable in enumerate(statement.key):
        context.line(f"{context.variable(variable)} = load({moved}, {i})")
    context.line(f"{context.variable(statement.change)} = load({order}, {TOP + MOVED})")


def write_forget(context: Context, statement: Forget) -> None:
    """Run the body for each place that was reported of a row."""
    view = context.view_of(statement.alias)
    row, place, key = context.row(statement.alias), context.variable(statement.place), len(view.key)
    until = context.fresh(f"{place}_until")
    context.line(f"{place} = load({row}, {key + NUMBER})")
    context.line(f"{until} = {place} + load({row}, {key + HELD})")
    with context.loop(f"while {place} < {until}:"):
        context.step()
        context.line(f"{place} += 1")
        context.body(statement.body)
    context.line(f"store({row}, {key + HELD}, 0)")
    context.line(f"store({row}, {key + NUMBER}, 0)")


def write_renumber(context: Context, statement: Renumber) -> None:
    """Run the body for each place to report, or to take back, from a key on."""
    view, places = context.views[statement.places.view], statement.places
    table, place = context.table(view.name), context.variable(statement.place)
    order, moved = context.fresh(f"{view.name}_order"), context.fresh(f"{view.name}_moved")
    until = context.fresh(f"{place}_until")
    context.line(f"{order} = load(load({table}, ORDERED_LIST), 0)")
    context.line(f"write_key(prefix_of({order}), {context.key(statement.start)})")
    context.line(f"renumber_start({order}, {table})")
    step = f"{moved} = renumber_next({order}, {table}, {places.last}, {int(places.ranks)})"
    context.line(step)
    with context.loop(f"while {moved} != 0:"):
        _write_moved(context, statement, order, moved)
        context.line(f"{place} = load({order}, {TOP + PLACE})")
        context.line(f"{until} = {place} + load({order}, {TOP + NOW})")
        with context.loop(f"while {place} < {until}:"):
            context.step()
            context.body(statement.body)
            context.line(f"{place} += 1")
        context.line(step)


def write_cross(context: Context, statement: Cross) -> None:
    """Run the body for each row of a group that enters the limit, or leaves it."""
    view = context.views[statement.view]
    table, limit = context.table(view.name), context.variable(statement.limit)
    order, point = context.fresh(f"{view.name}_order"), context.fresh(f"{view.name}_point")
    group = context.by_key("slice_of", context.index(view.name, view.indexes[0]), statement.within)
    context.line(f"{order} = load(load({table}, ORDERED_LIST), 0)")
    is_open = f"1 if {limit} != NULL else 0"
    context.line(f"threshold_start({order}, {table}, {group}, {limit}, {int(statement.strict)}, {is_open})")
    step = f"{point} = threshold_next({order}, {table})"
    context.line(step)
    with context.loop(f"while {point} != 0:"):
        context.step()
        context.line(f"{context.variable(statement.point)} = load({point}, {len(view.key) - 1})")
        selected = f"load({point}, {len(view.key) + SELECTED})"
        context.line(f"{context.variable(statement.change)} = 2 * {selected} - 1")
        context.body(statement.body)
        context.line(step)
    with context.block(f"if load({order}, {TOP + OVERFLOWN}) != 0:"):
        context.line(f"fail(status, {SUM_OVERFLOW})")


def write_range_sum(context: Context, statement: RangeSum) -> None:
    """Add the sums of a range to the accumulators of a Sum."""
    view, total = context.views[statement.rows.view], context.aliases[statement.alias]
    assert isinstance(total, Sum)
    context.step()
    order, place, bounds = _range(context, statement.rows)
    context.line(f"sum_range({place}, {bounds})")
    for component in total.components:
        local = context.local(statement.alias, component.name)
        at = f"{order}, {context.table(view.name)}, {view.sums.index(component.name)}"
        if component.ring == "real":
            context.line(f"real_add_scaled({local}, range_total({at}), {statement.coefficient})")
        else:
            factors = [] if statement.coefficient == 1 else [str(statement.coefficient)]
            amount = times(context, f"range_word({at}, status)", factors)
            context.line(f"{local} = plus({local}, {amount}, status)")


def write_range_loop(context: Context, statement: RangeLoop) -> None:
    """A loop over the rows of a range."""
    view = context.views[statement.rows.view]
    table, row = context.table(view.name), context.row(statement.alias)
    order, place, bounds = _range(context, statement.rows)
    if statement.only:
        found = context.fresh(f"{statement.alias}_{statement.only}")
        context.step()
        context.line(f"{found} = range_end({place}, {bounds}, {int(statement.only == 'last')})")
        with context.block(f"if {found} != 0:"):
            context.line(f"{row} = row_at({table}, {found} - 1)")
            for i, variable in enumerate(statement.key, len(statement.rows.prefix)):
                context.line(f"{context.variable(variable)} = load({row}, {i})")
            context.with_alias(statement.alias, view).body(statement.body)
        return
    following, last = context.fresh(f"{statement.alias}_next"), context.fresh(f"{statement.alias}_last")
    context.step()
    context.line(f"{following} = range_first({place}, {bounds})")
    context.line(f"{last} = range_last({place}, {bounds})")
    with context.loop(f"while {following} != 0:"):
        context.step()
        context.line(f"{row} = row_at({table}, {following} - 1)")
        # The body of the last row may have read another range of the index.
        _write_bounds(context, statement.rows, order)
        context.line(f"{following} = range_next({order}, {table}, {following}, {last}, {bounds})")
        for i, variable in enumerate(statement.key, len(statement.rows.prefix)):
            context.line(f"{context.variable(variable)} = load({row}, {i})")
        inside = context.with_alias(statement.alias, view)
        if not statement.steady:
            inside.body(statement.body)
            return
        moved = context.fresh(f"{statement.alias}_moved")
        context.line(f"{moved} = 0")
        replace(inside, moved=moved).body(statement.body)
        with context.block(f"if {moved} == 0:"):
            context.line("break")


def _range(context: Context, rows: Range) -> tuple[str, str, str]:
    """The variable of an ordered index, and the arguments of a kernel that takes a range of it: up to the prefix, and
    the bounds."""
    table, order = context.table(rows.view), context.fresh(f"{rows.view}_order")
    context.line(f"{order} = load(load({table}, ORDERED_LIST), 0)")
    has, bounds = 0, []
    for bound, side in ((rows.low, _LOW), (rows.high, _HIGH)):
        if bound is None:
            bounds.append("0")
        elif isinstance(bound, PlaceBound):
            has |= OF_PLACES | side.given | len(bound.variables) << side.words | bound.first << side.first
            bounds.append(f"{side.address}({order})")
        else:
            has |= side.given | bound.strict * side.strict
            bounds.append(context.variable(bound.variable))
    _write_bounds(context, rows, order)
    return order, f"{order}, {table}, {context.key(rows.prefix)}", f"{', '.join(bounds)}, {has}"


def _write_bounds(context: Context, rows: Range, order: str) -> None:
    """Store the bounds of a range of places where its kernels read them, in the header of the index."""
    for bound, side in ((rows.low, _LOW), (rows.high, _HIGH)):
        if isinstance(bound, PlaceBound):
            context.line(f"write_key({side.address}({order}), {context.key(bound.variables)})")
