"""Writes the calls by which triggers move values between heavy and light parts.

``codegen.writing.rebalancing_functions`` writes the called functions.
"""

from __future__ import annotations

from freshviews.codegen.writing.context import Context
from freshviews.codegen.writing.payloads.integers import zero_test
from freshviews.kernel.hash.heavy_light import FIRST_PARTITION, PARTITION_WORDS, RISE, SINK
from freshviews.program.heavy_light import Balancing, Partition
from freshviews.program.program import Program
from freshviews.program.statements import Balance, Perform


def balancing_of(program: Program) -> Balancing:
    assert program.balancing is not None
    return program.balancing


def partition_word(context: Context, partition: Partition, word: int) -> str:
    """Source of a word of a partition in the balance."""
    number = balancing_of(context.program).partitions.index(partition)
    return f"load({context.balance}, {FIRST_PARTITION + PARTITION_WORDS * number + word})"


def degree(context: Context, partition: Partition, key: str) -> str:
    """Source of the number of rows that a value has."""
    if not partition.by:
        return f"load({context.handle(partition.view)}, LIVE)"
    return f"slice_count(slice_of({index_of(context, partition)}, {key}))"


def index_of(context: Context, partition: Partition) -> str:
    """Source of the index of a partition's view by the value."""
    place = context.views[partition.view].place_of_index(partition.by)
    return f"load(load({context.handle(partition.view)}, INDEX_LIST), {place})"


def write_expecting(context: Context) -> None:
    """Before a batch: set the threshold base for the size that the batch leads to."""
    balancing = context.program.balancing
    if balancing is None:
        return
    expected = _expected(context)
    context.load_balance()
    size = _size(context, balancing)
    context.line(f"{expected} = expected_base({context.balance}, {size}, m_at, m_stride, n)")
    with context.block(f"if {expected} != 0:"):
        context.line(f"rebalance(state, {expected})")
        context.line(f"store({context.balance}, FEWEST, 0)")


def write_settling(context: Context) -> None:
    """After a batch: set a threshold base that was too large again."""
    balancing = context.program.balancing
    if balancing is None:
        return
    size = _size(context, balancing)
    with context.block(f"if {_expected(context)} != 0:"):
        context.line(f"store({context.balance}, FEWEST, load({context.balance}, BASE) // 4)")
        with context.block(f"if {size} < load({context.balance}, FEWEST):"):
            context.line(f"rebalance(state, 2 * ({size}) + 1)")


def write_balance(context: Context, statement: Balance, row: str) -> None:
    """A major rebalancing if the size has left its bounds; otherwise a minor one if a degree has left its bounds.

    ``row`` is the variable of the row that was just changed, if known: if it has vanished, its values can only have
    become light, otherwise only heavy.
    """
    balancing = balancing_of(context.program)
    context.step()
    size = context.fresh("size")
    context.line(f"{size} = {_size(context, balancing)}")
    with context.block(f"if not is_balanced({context.balance}, {size}):"):
        context.line(f"rebalance(state, next_base({context.balance}, {size}))")
    partitions = balancing.partitions_of(statement.view)
    if not partitions:
        return
    with context.block("else:"):
        gone = context.fresh("gone")
        if row:
            context.line(f"{gone} = {zero_test(context, context.views[statement.view], row)}")
        for partition in partitions:
            _write_minor(context, partition, statement, row, gone)


def _write_minor(context: Context, partition: Partition, statement: Balance, row: str, gone: str) -> None:
    context.step()
    values = tuple(statement.key[i] for i in partition.by)
    key = context.key(values)
    known = context.found.get((partition.heavy, values))
    heavy = f"{known or f'find({context.handle(partition.heavy)}, {key})'} != 0"
    count = degree(context, partition, key)
    rise, sink = (partition_word(context, partition, word) for word in (RISE, SINK))
    if row:
        risen = count
        if partition.by:
            risen = f"slice_size({index_of(context, partition)}, {row})"
        turns = f"{heavy} and {count} < {sink} if {gone} else {risen} >= {rise} and not {heavy}"
    else:
        held = context.fresh("degree")
        context.line(f"{held} = {count}")
        turns = f"({held} < {sink} and {heavy}) or ({held} >= {rise} and not {heavy})"
    with context.block(f"if {turns}:"):
        number = balancing_of(context.program).partitions.index(partition)
        context.line(f"move_{number}({', '.join(['state', *map(context.variable, values)])})")


def write_perform(context: Context, statement: Perform) -> None:
    """Call a procedure."""
    balancing = balancing_of(context.program)
    number = balancing.procedures.index(balancing.procedure(statement.procedure))
    arguments = ["state", str(statement.sign), *map(context.variable, statement.arguments)]
    context.line(f"turn_{number}({', '.join(arguments)})")


def _expected(context: Context) -> str:
    """The threshold base that was set before the batch, or 0."""
    return context.writer.names.of("balance", "expected")


def _size(context: Context, balancing: Balancing) -> str:
    """Source of the number of rows of all stores."""
    return " + ".join(f"load({context.handle(store)}, LIVE)" for store in balancing.stores)
