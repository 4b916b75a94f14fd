"""Reading a result: its change after a batch, its contents, one group.

Three generated functions per block whose result is held in one view. All write *raw rows* into a buffer: the
free variables, the values of the aggregates, the multiplicity. Output expressions and HAVING are applied to raw
rows by ``freshviews.codegen.reading.projection``.

- ``read_change(state, out)`` walks the journal: per touched row the raw row before, times -1, and after, times 1
  (for a bag: one row with the difference); an unchanged raw row is left out. Clears the journal.
- ``read_rows(state, start, limit, out)`` scans rows from a position until ``limit`` raw rows are out; returns the
  next position, or -1 at the end.
- ``read_group(state, key, out)`` looks one key up; ``key`` is the address of its words.

``read_groups(state, columns, n, key, found, out)``, for a block under set operations, looks ``n`` keys up: ``columns``
has address and stride of the words of each free variable, ``key`` is room for one of them; ``found`` is set to 1 and 0.
"""

from __future__ import annotations

from freshviews.codegen.layout import (
    CHANGES,
    STATUS,
    RowLayout,
    emitted_integers,
    emitted_row,
    row_layout,
    table_word,
)
from freshviews.codegen.writer import Writer
from freshviews.kernel.output import buffer
from freshviews.program.payload import COUNT
from freshviews.program.program import Program
from freshviews.program.views import View
from freshviews.query.block import SCANNED, Block, Result

_PRESENT = {"bag": "!= 0", "groups": "> 0"}
"""What the count of a row is where the row is there: over Z a bag counts below zero, a group is not there."""


def raw_width(block: Block) -> int:
    """Words of a raw row: free variables, results, multiplicity."""
    return len(block.free) + len(block.results) + 1


def write_readers(program: Program, view: View, block: Block, prefix: str, used: set[str]) -> str:
    """Source of the three readers of a block whose result is a view."""
    writer = Writer()
    used.update({"load", "store", "append", "is_zero", "find", "row_at", "clear_journal", "drop_equal"})
    write_finish(writer, view, block, prefix, used)
    writer.line()
    writer.line()
    _write_change(writer, program, view, block, prefix)
    writer.line()
    writer.line()
    _write_rows(writer, program, view, block, prefix)
    writer.line()
    writer.line()
    _write_group(writer, program, view, block, prefix)
    return writer.text()


def write_group_readers(program: Program, block: Block, used: set[str]) -> str:
    """Source of ``read_change`` and ``read_group`` of groups that are enumerated, beside ``finish`` and
    ``read_payload``: what triggers emitted is merged by group; the payload of a group is looked up, and what it was
    before is that less the change."""
    view = emitted_row(program)
    layout = row_layout(view)
    integers, count = emitted_integers(program), layout.offsets[COUNT] - layout.key
    used.update({"load", "store", "append", "drop_equal", "consolidate_payloads", "take_apart"})
    writer = Writer()
    writer.line("@jit")
    with writer.block("def read_change__HASH__(state, out):"):
        writer.line(f"status = load(state, {STATUS})")
        writer.line(f"changes = load(state, {CHANGES})")
        writer.line(f"consolidate_payloads(changes, {layout.key}, {integers})")
        writer.line(f"rows = load(changes, {buffer.ROWS})")
        writer.line(f"before = changes + {8 * buffer.HEADER}")
        with writer.block(f"for i in range(load(changes, {buffer.COUNT})):"):
            writer.line(f"row = rows + i * {8 * (layout.key + layout.payload)}")
            writer.line(f"after = row + {8 * layout.key}")
            writer.line("read_payload__HASH__(state, row, before)")
            writer.line(f"take_apart(after, before, {integers}, {layout.payload})")
            _write_difference(writer, f"load(%s, {count}) > 0", "")
        writer.line(f"store(changes, {buffer.COUNT}, 0)")
        writer.line("return 0")
    writer.line()
    writer.line()
    writer.line("@jit")
    with writer.block("def read_group__HASH__(state, key, out):"):
        writer.line(f"payload = load(state, {CHANGES}) + {8 * buffer.HEADER}")
        writer.line("read_payload__HASH__(state, key, payload)")
        with writer.block(f"if load(payload, {count}) > 0:"):
            writer.line(f"finish__HASH__(key, payload, append(out), 1, load(state, {STATUS}))")
            writer.line("return 1")
        writer.line("return 0")
    return writer.text()


def write_lookups(program: Program, prefix: str) -> str:
    """Source of ``read_groups``, beside a ``read_group``."""
    writer = Writer()
    writer.line("@jit")
    with writer.block(f"def {prefix}read_groups__HASH__(state, columns, n, key, found, out):"):
        writer.line(f"rows = load(out, {buffer.COUNT})")
        with writer.block("for i in range(n):"):
            for i in range(len(program.free)):
                writer.line(f"store(key, {i}, load(load(columns, {2 * i}), i * load(columns, {2 * i + 1})))")
            writer.line(f"{prefix}read_group__HASH__(state, key, out)")
            writer.line(f"store(found, i, load(out, {buffer.COUNT}) - rows)")
            writer.line(f"rows = load(out, {buffer.COUNT})")
        writer.line("return 0")
    return writer.text()


def write_finish(writer: Writer, view: View, block: Block, prefix: str, used: set[str]) -> None:
    """Source of ``finish(key, payload, target, multiplicity, status)``, which writes a raw row."""
    layout = row_layout(view)
    writer.line("@jit")
    with writer.block(f"def {prefix}finish__HASH__(key, payload, target, multiplicity, status):"):
        for i in range(layout.key):
            writer.line(f"store(target, {i}, load(key, {i}))")
        for i, result in enumerate(block.results):
            writer.line(f"store(target, {layout.key + i}, {_result(result, view, layout, used)})")
        writer.line(f"store(target, {layout.key + len(block.results)}, multiplicity)")
        writer.line("return 0")


def _result(result: Result, view: View, layout: RowLayout, used: set[str]) -> str:
    def place(component: str) -> int:
        return layout.offsets[component] - layout.key

    def word(component: str) -> str:
        return f"load(payload, {place(component)})"

    first = result.components[0]
    real = view.component(first).ring == "real"
    match result.function:
        case "count":
            return word(first)
        case "bit_and":
            used.add("bits_result")
            return f"bits_result({word(first)}, {word(first + '#n')}, status)"
        case kind if kind in SCANNED:
            used.add("scan_result")
            return f"scan_result({word(first)}, {word(first + '#n')})"
        case "sum" if real:
            used.add("sum_real")
            return f"sum_real(payload + {8 * place(first)}, {word(result.components[1])})"
        case "sum":
            used.add("sum_result")
            return f"sum_result({word(first)}, {word(result.components[1])})"
        case "avg" if real:
            used.add("avg_real")
            return f"avg_real(payload + {8 * place(first)}, {word(result.components[1])})"
        case "avg" if result.type.is_decimal:
            used.add("avg_decimal")
            multiplier = 10 ** (result.type.scale - result.argument.scale)
            return f"avg_decimal({word(first)}, {word(result.components[1])}, {multiplier}, status)"
        case "avg":
            used.add("avg_int")
            return f"avg_int({word(first)}, {word(result.components[1])})"
        case other:
            raise AssertionError(f"no result function {other}")


def _write_change(writer: Writer, program: Program, view: View, block: Block, prefix: str) -> None:
    layout = row_layout(view)
    count = layout.offsets[COUNT] - layout.key
    writer.line("@jit")
    with writer.block(f"def {prefix}read_change__HASH__(state, out):"):
        _table(writer, program, view)
        writer.line("journal = load(table, JOURNAL)")
        writer.line(f"status = load(state, {STATUS})")
        with writer.block("for i in range(load(table, JOURNALED)):"):
            writer.line(f"entry = journal + i * {8 * (layout.payload + 1)}")
            writer.line("row = row_at(table, load(entry, 0))")
            writer.line("before = entry + 8")
            writer.line(f"after = row + {8 * layout.key}")
            if block.kind == "bag":
                writer.line(f"difference = load(after, {count}) - load(before, {count})")
                with writer.block("if difference != 0:"):
                    writer.line(f"{prefix}finish__HASH__(row, after, append(out), difference, status)")
                writer.line("continue")
            else:
                _write_difference(writer, f"load(%s, {count}) > 0" if block.kind == "groups" else "True", prefix)
        writer.line("clear_journal(table)")
        writer.line("return 0")


def _write_difference(writer: Writer, present: str, prefix: str) -> None:
    """The raw row of a payload ``before``, out, and that of the one ``after``, in; neither where they agree."""
    writer.line("old = 0")
    with writer.block(f"if {present.replace('%s', 'before')}:"):
        writer.line("old = 1")
        writer.line(f"{prefix}finish__HASH__(row, before, append(out), -1, status)")
    with writer.block(f"if {present.replace('%s', 'after')}:"):
        writer.line(f"{prefix}finish__HASH__(row, after, append(out), 1, status)")
        with writer.block("if old == 1:"):
            writer.line("drop_equal(out)")


def _write_rows(writer: Writer, program: Program, view: View, block: Block, prefix: str) -> None:
    layout = row_layout(view)
    count = layout.offsets[COUNT] - layout.key
    writer.line("@jit")
    with writer.block(f"def {prefix}read_rows__HASH__(state, start, limit, out):"):
        _table(writer, program, view)
        writer.line(f"status = load(state, {STATUS})")
        if block.kind == "global":
            writer.line("row = find(table, ())")
            with writer.block("if row == 0:"):
                writer.line("row = load(table, SCRATCH)")
            writer.line(f"{prefix}finish__HASH__(row, row, append(out), 1, status)")
            writer.line("return -1")
            return
        writer.line("used = load(table, USED)")
        writer.line("found = 0")
        with writer.block("for number in range(start, used):"):
            writer.line("row = row_at(table, number)")
            writer.line(f"payload = row + {8 * layout.key}")
            writer.line(f"count = load(payload, {count})")
            with writer.block(f"if count {_PRESENT[block.kind]}:"):
                multiplicity = "count" if block.kind == "bag" else "1"
                writer.line(f"{prefix}finish__HASH__(row, payload, append(out), {multiplicity}, status)")
                writer.line("found += 1")
                with writer.block("if found == limit:"):
                    writer.line("return number + 1")
        writer.line("return -1")


def _write_group(writer: Writer, program: Program, view: View, block: Block, prefix: str) -> None:
    layout = row_layout(view)
    count = layout.offsets[COUNT] - layout.key
    writer.line("@jit")
    with writer.block(f"def {prefix}read_group__HASH__(state, key, out):"):
        _table(writer, program, view)
        writer.line(f"status = load(state, {STATUS})")
        words = "".join(f"load(key, {i}), " for i in range(layout.key))
        writer.line(f"row = find(table, ({words.rstrip()}))")
        with writer.block("if row == 0:"):
            if block.kind == "global":
                writer.line("row = load(table, SCRATCH)")
            else:
                writer.line("return 0")
        writer.line(f"payload = row + {8 * layout.key}")
        writer.line(f"count = load(payload, {count})")
        if block.kind != "global":
            with writer.block(f"if not count {_PRESENT[block.kind]}:"):
                writer.line("return 0")
        multiplicity = "count" if block.kind == "bag" else "1"
        writer.line(f"{prefix}finish__HASH__(row, payload, append(out), {multiplicity}, status)")
        writer.line("return 1")


def _table(writer: Writer, program: Program, view: View) -> None:
    writer.line(f"table = load(state, {table_word(program, view.name)})")


