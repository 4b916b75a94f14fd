"""The rebalancing of a program's parts as Python source: Balance in a trigger, and the functions that it calls.

``move_k(state, value...)`` moves a value of the k-th partition from part to part, where its degree calls for it, by
procedures that several moves share, ``turn_k(state, m, value...)``;
``rebalance(state, base)`` sets the threshold base, parts every view strictly and makes the auxiliary views anew.
They stand outside of the triggers (``kernel.memory.outside``), as most updates need none of them: each is compiled
once, not into every function that calls it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from freshviews.codegen.layout import CONSTANTS, STATUS, STATUS_STEPS, balance_word, table_word
from freshviews.codegen.writer import Names, Writer
from freshviews.kernel.hash.balance import FIRST_PARTITION, PARTITION_WORDS, RISE, SINK, STRICT
from freshviews.program.parts import Balancing, Partition, Procedure
from freshviews.program.program import Program
from freshviews.program.statements import Balance, Loop, Perform
from freshviews.program.structure import views_in, visit

if TYPE_CHECKING:
    from collections.abc import Callable

    from freshviews.codegen.writing.statements import StatementWriter

    Make = Callable[[Writer, Names], StatementWriter]


def _word(program: Program, partition: Partition, word: int) -> int:
    """The word of the balance block that a partition's own word is."""
    assert program.balancing is not None
    return FIRST_PARTITION + PARTITION_WORDS * program.balancing.partitions.index(partition) + word


def _handle(program: Program, view: str) -> str:
    return f"load(state, {table_word(program, view)})"


def _size(program: Program, balancing: Balancing) -> str:
    """Source of the number of rows that the stores have."""
    return " + ".join(f"load({_handle(program, store)}, LIVE)" for store in balancing.stores)


def _degree(writer: StatementWriter, partition: Partition, key: str) -> str:
    """Source of the number of rows that a value has."""
    if not partition.by:
        return f"load({_handle(writer.program, partition.view)}, LIVE)"
    writer.need("slice_of", "slice_count")
    return f"slice_count(slice_of({_index(writer.program, partition)}, {key}))"


def _index(program: Program, partition: Partition) -> str:
    place = program.view(partition.view).place_of_index(partition.by)
    return f"load(load({_handle(program, partition.view)}, INDEX_LIST), {place})"


def write_expecting(writer: StatementWriter) -> None:
    """Before a batch: the base is set for all of it."""
    balancing = writer.program.balancing
    if balancing is None:
        return
    writer.need("expected_base", "FEWEST", "store")
    expected = writer.names.of("balance", "expected")
    line = writer.writer.line
    line(f"{writer.balance} = load(state, {balance_word(writer.program)})")
    line(f"{expected} = expected_base({writer.balance}, {_size(writer.program, balancing)}, m_at, m_stride, n)")
    with writer.writer.block(f"if {expected} != 0:"):
        line(f"rebalance__HASH__(state, {expected})")
        line(f"store({writer.balance}, FEWEST, 0)")


def write_settling(writer: StatementWriter) -> None:
    """After a batch: a base that was set too large is set again."""
    balancing = writer.program.balancing
    if balancing is None:
        return
    writer.need("BASE", "FEWEST", "store")
    size = _size(writer.program, balancing)
    with writer.writer.block(f"if {writer.names.of('balance', 'expected')} != 0:"):
        writer.writer.line(f"store({writer.balance}, FEWEST, load({writer.balance}, BASE) // 4)")
        with writer.writer.block(f"if {size} < load({writer.balance}, FEWEST):"):
            writer.writer.line(f"rebalance__HASH__(state, 2 * ({size}) + 1)")


def write_balance(writer: StatementWriter, statement: Balance, row: str) -> None:
    """Sizes first, then the degree of the value. ``row``: the variable that has the row that was just added to, if it
    is known; where it is gone its values may have turned light, else heavy."""
    program = writer.program
    balancing = program.balancing
    assert balancing is not None
    writer.need("is_balanced", "next_base")
    writer.step()
    size = writer.names.fresh("size")
    line = writer.writer.line
    line(f"{size} = {_size(program, balancing)}")
    with writer.writer.block(f"if not is_balanced({writer.balance}, {size}):"):
        line(f"rebalance__HASH__(state, next_base({writer.balance}, {size}))")
    partitions = balancing.partitions_of(statement.view)
    if not partitions:
        return
    with writer.writer.block("else:"):
        gone = writer.names.fresh("gone")
        if row:
            line(f"{gone} = {writer.zero_test(program.view(statement.view), row)}")
        for partition in partitions:
            writer.need("find")
            writer.step()
            values = tuple(statement.key[i] for i in partition.by)
            key = writer.key(values)
            known = writer.found.get((partition.heavy, values))
            heavy = f"{known or f'find({_handle(program, partition.heavy)}, {key})'} != 0"
            degree = _degree(writer, partition, key)
            rise, sink = (f"load({writer.balance}, {_word(program, partition, word)})" for word in (RISE, SINK))
            if row:
                risen = degree
                if partition.by:
                    writer.need("slice_size")
                    risen = f"slice_size({_index(program, partition)}, {row})"
                turns = f"{heavy} and {degree} < {sink} if {gone} else {risen} >= {rise} and not {heavy}"
            else:
                held = writer.names.fresh("degree")
                line(f"{held} = {degree}")
                turns = f"({held} < {sink} and {heavy}) or ({held} >= {rise} and not {heavy})"
            with writer.writer.block(f"if {turns}:"):
                arguments = ", ".join(["state", *(writer.variable(v) for v in values)])
                line(f"move_{balancing.partitions.index(partition)}__HASH__({arguments})")


def _name(balancing: Balancing, procedure: Procedure) -> str:
    return f"turn_{balancing.procedures.index(procedure)}__HASH__"


def write_perform(writer: StatementWriter, statement: Perform) -> None:
    arguments = ", ".join(["state", str(statement.sign), *(writer.variable(v) for v in statement.arguments)])
    balancing = writer.program.balancing
    assert balancing is not None
    writer.writer.line(f"{_name(balancing, balancing.procedure(statement.procedure))}({arguments})")


def write_rebalancing(program: Program, make: Make, used: set[str]) -> list[str]:
    """Source of the functions that a program with parts has besides its triggers."""
    balancing = program.balancing
    if balancing is None:
        return []
    used.update(("load", "store", "outside"))
    return [
        *(_write_procedure(program, procedure, make) for procedure in balancing.procedures),
        *(_write_move(program, i, partition, make) for i, partition in enumerate(balancing.partitions)),
        _write_rebalance(program, balancing, make),
    ]


def _prologue(writer: StatementWriter, views: list[str]) -> None:
    line = writer.writer.line
    line(f"status = load(state, {STATUS})")
    line(f"constants = load(state, {CONSTANTS})")
    line(f"{writer.balance} = load(state, {balance_word(writer.program)})")
    for view in dict.fromkeys(views):
        line(f"{writer.table(view)} = {_handle(writer.program, view)}")
    if writer.counted:
        line("steps = 0")


def _epilogue(writer: StatementWriter) -> None:
    if writer.counted:
        writer.writer.line(f"store(status, {STATUS_STEPS}, load(status, {STATUS_STEPS}) + steps)")
    writer.writer.line("return 0")


def _write_procedure(program: Program, procedure: Procedure, make: Make) -> str:
    source = Writer()
    writer = make(source, Names(frozenset({"state", "status", "constants", "steps", "m"})))
    writer.outlined = True
    source.line("@outside")
    parameters = ", ".join(["state", "m", *(writer.variable(v) for v in procedure.parameters)])
    assert program.balancing is not None
    with source.block(f"def {_name(program.balancing, procedure)}({parameters}) -> int:"):
        source.line(f'"""{procedure.name}"""')
        _prologue(writer, [view for s in visit(procedure.body) for view in views_in(s)])
        writer.body(procedure.body)
        _epilogue(writer)
    return source.text()


def _write_move(program: Program, number: int, partition: Partition, make: Make) -> str:
    source = Writer()
    writer = make(source, Names(frozenset({"state", "status", "constants", "steps", "m"})))
    writer.outlined = True
    writer.need("find", "MINOR")
    values = [writer.variable(v) for v in partition.value]
    key = writer.key(partition.value)
    source.line("@outside")
    with source.block(f"def move_{number}__HASH__({', '.join(['state', *values])}) -> int:"):
        bodies = (*partition.rise, *partition.sink)
        _prologue(writer, [partition.heavy, *(view for s in visit(bodies) for view in views_in(s))])
        degree, heavy = writer.names.fresh("degree"), writer.names.fresh("is_heavy")
        source.line(f"{degree} = {_degree(writer, partition, key)}")
        source.line(f"{heavy} = find({writer.table(partition.heavy)}, {key}) != 0")
        rise, sink = (f"load({writer.balance}, {_word(program, partition, word)})" for word in (RISE, SINK))
        moves = (
            (f"if {degree} >= {rise} and not {heavy}:", partition.rise),
            (f"elif {degree} < {sink} and {heavy}:", partition.sink),
        )
        for head, body in moves:
            with source.block(head):
                source.line(f"store({writer.balance}, MINOR, load({writer.balance}, MINOR) + 1)")
                writer.body(body)
        _epilogue(writer)
    return source.text()


def _write_rebalance(program: Program, balancing: Balancing, make: Make) -> str:
    source = Writer()
    writer = make(source, Names(frozenset({"state", "status", "constants", "steps", "m", "base", "row", "number"})))
    writer.outlined = True
    writer.need("set_base", "MAJOR", "reset_table", "pack_table", "LIVE")
    source.line("@outside")
    with source.block("def rebalance__HASH__(state, base) -> int:"):
        views = [v for p in balancing.partitions for v in (p.view, p.heavy)]
        views += [*balancing.auxiliary, *(v for s in visit(balancing.recompute) for v in views_in(s))]
        _prologue(writer, views)
        source.line(f"store({writer.balance}, MAJOR, load({writer.balance}, MAJOR) + 1)")
        source.line(f"set_base({writer.balance}, base, {len(balancing.partitions)})")
        for view in _scanned(balancing):
            source.line(f"pack_table({writer.table(view)})")
        for view in balancing.auxiliary:
            if writer.counted:
                source.line(f"steps += load({writer.table(view)}, LIVE)")
            source.line(f"reset_table({writer.table(view)})")
        for view in dict.fromkeys(p.view for p in balancing.partitions):
            _write_parting(writer, view)
        writer.body(balancing.recompute)
        _epilogue(writer)
    return source.text()


def _scanned(balancing: Balancing) -> list[str]:
    """The views that are scanned to make others anew, beside those that are parted or hold heavy values."""
    made = {view for p in balancing.partitions for view in (p.view, p.heavy)}.union(balancing.auxiliary)
    scans = (s for s in visit(balancing.recompute) if isinstance(s, Loop) and not s.bound and not s.among)
    return list(dict.fromkeys(s.view for s in scans if s.view not in made))


def _write_parting(writer: StatementWriter, view: str) -> None:
    """All rows of a view leave its heavy parts; then each enters those in which its values are heavy."""
    program, line = writer.program, writer.writer.line
    balancing = program.balancing
    assert balancing is not None
    partitions = balancing.partitions_of(view)
    table = writer.table(view)
    writer.need("is_zero", "row_at", "upsert")
    line(f"pack_table({table})")
    places = {one: _places(program, one) for one in partitions}
    for partition in partitions:
        line(f"reset_table({writer.table(partition.heavy)})")
        for place in places[partition]:
            writer.need("reset_subset", "forget_place", "enter_slice")
            line(f"reset_subset({table}, {place})")
    with writer.writer.block(f"for number in range(load({table}, USED)):"):
        line(f"row = row_at({table}, number)")
        with writer.writer.block(f"if is_zero({table}, row):"):
            line("continue")
        for partition in partitions:
            writer.step()
            for place in places[partition]:
                line(f"forget_place({table}, {place}, row)")
            degree = f"load({table}, LIVE)"
            if partition.by:
                writer.need("slice_size")
                degree = f"slice_size({_index(program, partition)}, row)"
            strict = f"load({writer.balance}, {_word(program, partition, STRICT)})"
            with writer.writer.block(f"if {degree} >= {strict}:"):
                for place in places[partition]:
                    line(f"enter_slice({table}, {place}, row)")
                key = ", ".join(f"load(row, {i})" for i in partition.by)
                key = f"({key},)" if len(partition.by) == 1 else f"({key})"
                line(f"store(upsert({writer.table(partition.heavy)}, {key}), {len(partition.by)}, 1)")


def _places(program: Program, partition: Partition) -> list[int]:
    """The places of the indexes of the heavy part among those of its view."""
    if not partition.subset:
        return []
    view = program.view(partition.view)
    subset = next(s for s in view.subsets if s.name == partition.subset)
    return [view.place_of_index(bound, subset.name) for bound in subset.indexes]
