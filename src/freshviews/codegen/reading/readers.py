"""Generates the functions that read a result, which is held in one view or enumerated by group.

- ``read_change(state, out)`` puts each changed row into ``out``: the old one with -1, the new one with 1.
- ``read_rows(state, start, limit, out)`` puts ``limit`` rows into ``out``, and returns the next position or -1.
- ``read_group(state, key, out)`` looks up one row, ``read_groups`` several rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import groupby

from freshviews.codegen.layout import (
    CHANGES,
    STATUS,
    STATUS_SHAPES,
    RowLayout,
    emitted_row,
    payload_layout,
    row_layout,
    table_word,
)
from freshviews.codegen.writer import Module, Writer, tuple_of
from freshviews.codegen.writing.payloads.own_rings import ROW, addition, recorded_ring, results_of
from freshviews.kernel.output import buffer
from freshviews.kernel.output.results import INTEGER, NARROW_SUM, REALS, SUM
from freshviews.program.payload import COUNT, Component
from freshviews.program.program import Program
from freshviews.program.views import View
from freshviews.query.block import COFACTORS, RINGS, SCANNED, Block, Result, counts_values, part_of
from freshviews.ring import NARROW, REAL, CofactorRing, RealRing, named

_PRESENT = {"bag": "!= 0", "groups": "> 0"}
"""The condition on the count of a present row: over Z a bag may count below zero, but such a group is absent."""


def raw_width(block: Block) -> int:
    """Words of a raw row: free variables, results, multiplicity."""
    return len(block.free) + len(block.results) + 1


def write_readers(program: Program, module: Module, view: View, block: Block) -> str:
    """Source of the three readers of a result that is held in a view.

    All readers write *raw rows* into a buffer: the free variables, the values of the aggregates, the multiplicity.
    Output expressions and HAVING are applied to raw rows by ``freshviews.codegen.reading.projection``.

    - ``read_change(state, out)`` reads the journal and clears it. For each changed row it writes the old raw row with
      multiplicity -1, and the new one with 1. A SELECT without GROUP BY and without aggregates gets one row instead,
      whose multiplicity is the difference.
    - ``read_rows(state, start, limit, out)`` scans rows from a position until it has appended ``limit`` raw rows;
      returns the next position, or -1 at the end.
    - ``read_group(state, key, out)`` looks one key up and appends its raw row; ``key`` is the address of its words.
      Returns whether the key exists.
    - ``read_groups(state, columns, n, key, found, out)`` looks ``n`` keys up, and sets ``found`` to 1 or 0 for each
      key. Set operations call it for their blocks. ``columns`` has address and stride of the words of each free
      variable; ``key`` is scratch room for one key.
    """
    writer = Writer(module)
    write_finish(writer, view, block)
    _write_change(writer, program, view, block)
    _write_rows(writer, program, view, block)
    _write_group(writer, program, view, block)
    return writer.text()


def write_group_readers(program: Program, module: Module) -> str:
    """Source of ``read_change`` and ``read_group`` of groups that are enumerated, beside ``finish`` and
    ``read_payload``.

    The payloads that triggers emitted are merged by group. The payload of each group is looked up; the payload before
    is that minus the change.
    """
    layout = row_layout(emitted_row(program))
    count = layout.offsets[COUNT] - layout.key
    writer = Writer(module)
    own = any(recorded_ring(component.ring) for component in program.result.emitted)
    if own:
        _write_merge(writer, program.result.emitted, layout)
    with writer.function("read_change", "state, out"):
        writer.line(f"status = load(state, {STATUS})")
        writer.line(f"changes = load(state, {CHANGES})")
        if own:
            writer.line("merge_changes(state)")
        else:
            shape = 8 * module.shape(payload_layout(program.result.emitted))
            writer.line(f"shape = load(status, {STATUS_SHAPES}) + {shape}")
            writer.line(f"consolidate_payloads(changes, {layout.key}, shape)")
        writer.line(f"rows = load(changes, {buffer.ROWS})")
        writer.line(f"before = changes + {8 * buffer.HEADER}")
        with writer.loop(f"for i in range(load(changes, {buffer.COUNT})):"):
            writer.line(f"row = rows + i * {8 * (layout.key + layout.payload)}")
            writer.line(f"after = row + {8 * layout.key}")
            writer.line("read_payload(state, row, before)")
            if own:
                writer.line("merge_payload(before, after, -1, status)")
                writer.line("merge_payload(after, before, 1, status)")
            else:
                writer.line("take_apart(after, before, shape)")
            _write_difference(writer, f"load(before, {count}) > 0", f"load(after, {count}) > 0")
        writer.line(f"store(changes, {buffer.COUNT}, 0)")
        writer.line("return 0")
    with writer.function("read_group", "state, key, out"):
        writer.line(f"payload = load(state, {CHANGES}) + {8 * buffer.HEADER}")
        writer.line("read_payload(state, key, payload)")
        with writer.block(f"if load(payload, {count}) > 0:"):
            writer.line(f"finish(key, payload, append(out), 1, load(state, {STATUS}))")
            writer.line("return 1")
        writer.line("return 0")
    return writer.text()


def _write_merge(writer: Writer, components: Sequence[Component], layout: RowLayout) -> None:
    """``merge_payload(target, source, k, status)``, which adds a payload to another one, and ``merge_changes(state)``,
    which merges the payloads of each group. A program has them if an element is of a user's ring."""
    with writer.function("merge_payload", "target, source, k, status", "outside"):
        for ring, some in groupby(components, lambda component: recorded_ring(component.ring)):
            parts = list(some)
            for part in parts if ring else parts[:1]:
                at = 8 * (layout.offsets[part.name] - layout.key)
                if ring is not None:
                    function = addition(writer.module, ring, (ROW,))
                    writer.line(f"{function}(target + {at}, source + {at}, k, status)")
                else:
                    shape = f"load(status, {STATUS_SHAPES}) + {8 * writer.module.shape(payload_layout(parts))}"
                    writer.line(f"add_elements(target + {at}, source + {at}, {shape}, k)")
        writer.line("return 0")
    with writer.function("merge_changes", "state"):
        writer.line(f"status = load(state, {STATUS})")
        writer.line(f"changes = load(state, {CHANGES})")
        writer.line(f"rows = load(changes, {buffer.ROWS})")
        writer.line(f"count = load(changes, {buffer.COUNT})")
        writer.line(f"firsts = first_rows(changes, {layout.key}) if count > 1 else 0")
        with writer.block("if firsts != 0:"):
            with writer.loop("for i in range(count):"):
                writer.line("first = load(firsts, i)")
                with writer.block("if first != i:"):
                    size = 8 * (layout.key + layout.payload)
                    writer.line(f"source = rows + {size} * i + {8 * layout.key}")
                    writer.line(f"merge_payload(rows + {size} * first + {8 * layout.key}, source, 1, status)")
                    # Rows of zeros are dropped below.
                    writer.line(f"clear_words(source, {layout.payload})")
            writer.line("release(firsts)")
        writer.line(f"drop_zeros(changes, {layout.key})")
        writer.line("return 0")


def write_lookups(program: Program, module: Module) -> str:
    """Source of ``read_groups``, beside a ``read_group``."""
    writer = Writer(module)
    with writer.function("read_groups", "state, columns, n, key, found, out"):
        writer.line(f"rows = load(out, {buffer.COUNT})")
        with writer.loop("for i in range(n):"):
            for i in range(len(program.free)):
                writer.line(f"store(key, {i}, load(load(columns, {2 * i}), i * load(columns, {2 * i + 1})))")
            writer.line("read_group(state, key, out)")
            writer.line(f"store(found, i, load(out, {buffer.COUNT}) - rows)")
            writer.line(f"rows = load(out, {buffer.COUNT})")
        writer.line("return 0")
    return writer.text()


def write_finish(writer: Writer, view: View, block: Block) -> None:
    """``finish``, for payloads as those of a view."""
    layout = row_layout(view)
    with writer.function("finish", "key, payload, target, multiplicity, status"):
        for i in range(layout.key):
            writer.line(f"store(target, {i}, load(key, {i}))")
        i = layout.key
        for kernel, some in groupby(block.results, partial(_kernel_of, view)):
            results = list(some)
            if kernel == "@sums" and len(results) >= _LONG:
                _write_sums(writer, results, view, i)
            elif results[0].function in COFACTORS:
                _write_cofactor(writer, results, view, i)
            elif results[0].function in RINGS:
                _write_own(writer, results, view, i)
            elif results[0].function == "word":
                _write_words(writer, results, view, i)
            else:
                for place, result in enumerate(results, i):
                    writer.line(f"store(target, {place}, {_result(writer, result, view, layout)})")
            i += len(results)
        writer.line(f"store(target, {layout.key + len(block.results)}, multiplicity)")
        writer.line("return 0")


_LONG = 8
"""Minimum number of consecutive counts and sums that are read in a loop."""


def _place(view: View, layout: RowLayout, component: str) -> int:
    """The word of a payload that a result reads."""
    name, entry = part_of(component)
    place = layout.offsets[name] - layout.key
    if not entry:
        return place
    ring = named(view.component(name).ring)
    assert isinstance(ring, CofactorRing)
    return place + ring.place(entry)


def _kernel_of(view: View, result: Result) -> str:
    """The key on which results that one kernel can read in sequence agree; empty for results that are read alone."""
    first = part_of(result.components[0])[0]
    if result.function in (*COFACTORS, *RINGS):
        return first
    if result.function == "word":
        return f"@words of {first}"
    return "@sums" if _real_of(view, first) is not None or result.function in ("count", "sum") else ""


def _real_of(view: View, component: str) -> RealRing | None:
    """The ring of a component that is a sum of doubles; None for others."""
    ring = named(view.component(part_of(component)[0]).ring)
    return ring if isinstance(ring, RealRing) else None


def _of_doubles(real: RealRing, function: str) -> int:
    """The number of a result of a sum of doubles."""
    return (NARROW_SUM if real is NARROW else SUM) + REALS.index(function)


def _write_sums(writer: Writer, results: Sequence[Result], view: View, first: int) -> None:
    """Counts, sums, and means of doubles, in one loop over words that describe them."""
    layout = row_layout(view)
    words: list[int] = []
    for result in results:
        real = _real_of(view, result.components[0])
        number = -1 if result.function == "count" else _place(view, layout, result.components[1])
        function = INTEGER if real is None else _of_doubles(real, result.function)
        words += (function, _place(view, layout, result.components[0]), number)
    functions = f"load(status, {STATUS_SHAPES}) + {8 * writer.module.shape(tuple(words))}"
    writer.line(f"sum_results(target + {8 * first}, payload, {functions}, {len(results)})")


def _write_cofactor(writer: Writer, results: Sequence[Result], view: View, first: int) -> None:
    """The results of a cofactor, in one loop over words that describe them."""
    component = view.component(results[0].components[0])
    ring = named(component.ring)
    assert isinstance(ring, CofactorRing)
    words: list[int] = []
    for result in results:
        i, j = (*result.entry, -1, -1)[:2]
        scale = result.argument.scale if result.argument.is_decimal else 0
        words += (COFACTORS.index(result.function), i, j, scale)
    layout = row_layout(view)
    element = f"payload + {8 * (layout.offsets[component.name] - layout.key)}"
    functions = f"load(status, {STATUS_SHAPES}) + {8 * writer.module.shape(tuple(words))}"
    arguments = f"{element}, {len(ring.variables)}, {int(ring.number == 'double')}, {functions}, {len(results)}"
    writer.line(f"cofactor_results(target + {8 * first}, {arguments})")


def _write_words(writer: Writer, results: Sequence[Result], view: View, first: int) -> None:
    """Consecutive words of an element, in one call."""
    numbers = [number for (number,) in (result.entry for result in results)]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers))), numbers
    if _real_of(view, results[0].components[0]) is NARROW:
        # Elements have the words of reals wherever they leave a view.
        assert len(numbers) == REAL.words, numbers
        source = _place(view, row_layout(view), results[0].components[0])
        writer.line(f"narrow_as_real(target + {8 * first}, payload + {8 * source})")
        return
    place = _place(view, row_layout(view), results[0].components[0]) + numbers[0]
    writer.line(f"copy_words(target + {8 * first}, payload + {8 * place}, {len(numbers)})")


def _write_own(writer: Writer, results: Sequence[Result], view: View, first: int) -> None:
    """The values of an element of a user's ring, in one call."""
    element, known = results[0].components
    ring, layout = recorded_ring(view.component(element).ring), row_layout(view)
    assert ring is not None
    function = results_of(writer.module, ring, tuple(result.entry[0] for result in results))
    place, number = _place(view, layout, element), _place(view, layout, known)
    writer.line(f"{function}(target + {8 * first}, payload + {8 * place}, load(payload, {number}), status)")


def _result(writer: Writer, result: Result, view: View, layout: RowLayout) -> str:
    """Source of the value of an aggregate."""

    def place(component: str) -> int:
        return _place(view, layout, component)

    def word(component: str) -> str:
        return f"load(payload, {place(component)})"

    first = result.components[0]
    real = _real_of(view, first)
    match result.function:
        case "count":
            return word(first)
        case "bit_and":
            return f"bits_result({word(first)}, {word(first + '#n')}, status)"
        case kind if counts_values(kind):
            # Values of negative multiplicity are passed over: only with a number above 0 there is another one.
            return f"value_result({word(first)}, max({word(first + '#n')}, 0))"
        case kind if kind in SCANNED:
            return f"value_result({word(first)}, {word(first + '#n')})"
        case kind if real is not None:
            address = f"payload + {8 * place(first)}"
            return f"double_result({_of_doubles(real, kind)}, {address}, {word(result.components[1])})"
        case "sum":
            return f"value_result({word(first)}, {word(result.components[1])})"
        case "avg" if result.type.is_decimal:
            multiplier = 10 ** (result.type.scale - result.argument.scale)
            return f"avg_decimal({word(first)}, {word(result.components[1])}, {multiplier}, status)"
        case "avg" if result.type.is_interval:
            return f"avg_decimal({word(first)}, {word(result.components[1])}, 1, status)"
        case "avg":
            return f"avg_int({word(first)}, {word(result.components[1])})"
        case other:
            raise AssertionError(f"no result function {other}")


def _write_change(writer: Writer, program: Program, view: View, block: Block) -> None:
    layout = row_layout(view)
    count = layout.offsets[COUNT] - layout.key
    with writer.function("read_change", "state, out"):
        _load_table(writer, program, view)
        writer.line("journal = load(table, JOURNAL)")
        writer.line(f"status = load(state, {STATUS})")
        with writer.loop("for i in range(load(table, JOURNALED)):"):
            writer.line(f"entry = journal + i * {8 * (layout.payload + 1)}")
            writer.line("row = row_at(table, load(entry, 0))")
            writer.line("before = entry + 8")
            writer.line(f"after = row + {8 * layout.key}")
            if block.kind == "bag":
                writer.line(f"difference = load(after, {count}) - load(before, {count})")
                with writer.block("if difference != 0:"):
                    writer.line("finish(row, after, append(out), difference, status)")
                writer.line("continue")
            elif block.kind == "groups":
                _write_difference(writer, f"load(before, {count}) > 0", f"load(after, {count}) > 0")
            else:
                _write_difference(writer, "True", "True")
        writer.line("clear_journal(table)")
        writer.line("return 0")


def _write_difference(writer: Writer, was_present: str, is_present: str) -> None:
    """Delete the raw row of the payload ``before`` and insert that of ``after``; neither where they are equal."""
    writer.line("old = 0")
    with writer.block(f"if {was_present}:"):
        writer.line("old = 1")
        writer.line("finish(row, before, append(out), -1, status)")
    with writer.block(f"if {is_present}:"):
        writer.line("finish(row, after, append(out), 1, status)")
        with writer.block("if old == 1:"):
            writer.line("drop_equal(out)")


def _write_rows(writer: Writer, program: Program, view: View, block: Block) -> None:
    layout = row_layout(view)
    count = layout.offsets[COUNT] - layout.key
    with writer.function("read_rows", "state, start, limit, out"):
        _load_table(writer, program, view)
        writer.line(f"status = load(state, {STATUS})")
        if block.kind == "global":
            writer.line("row = find(table, ())")
            with writer.block("if row == 0:"):
                writer.line("row = load(table, SCRATCH)")
            writer.line("finish(row, row, append(out), 1, status)")
            writer.line("return -1")
            return
        writer.line("used = load(table, USED)")
        writer.line("found = 0")
        with writer.loop("for number in range(start, used):"):
            writer.line("row = row_at(table, number)")
            writer.line(f"payload = row + {8 * layout.key}")
            writer.line(f"count = load(payload, {count})")
            with writer.block(f"if count {_PRESENT[block.kind]}:"):
                multiplicity = "count" if block.kind == "bag" else "1"
                writer.line(f"finish(row, payload, append(out), {multiplicity}, status)")
                writer.line("found += 1")
                with writer.block("if found == limit:"):
                    writer.line("return number + 1")
        writer.line("return -1")


def _write_group(writer: Writer, program: Program, view: View, block: Block) -> None:
    layout = row_layout(view)
    count = layout.offsets[COUNT] - layout.key
    with writer.function("read_group", "state, key, out"):
        _load_table(writer, program, view)
        writer.line(f"status = load(state, {STATUS})")
        writer.line(f"row = find(table, {tuple_of(f'load(key, {i})' for i in range(layout.key))})")
        with writer.block("if row == 0:"):
            writer.line("row = load(table, SCRATCH)" if block.kind == "global" else "return 0")
        writer.line(f"payload = row + {8 * layout.key}")
        writer.line(f"count = load(payload, {count})")
        if block.kind != "global":
            with writer.block(f"if not count {_PRESENT[block.kind]}:"):
                writer.line("return 0")
        multiplicity = "count" if block.kind == "bag" else "1"
        writer.line(f"finish(row, payload, append(out), {multiplicity}, status)")
        writer.line("return 1")


def _load_table(writer: Writer, program: Program, view: View) -> None:
    writer.line(f"table = load(state, {table_word(program, view.name)})")
