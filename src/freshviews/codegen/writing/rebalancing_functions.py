"""Writes the functions that move values between heavy and light parts; triggers call them.

- ``move_k(state, value...)`` moves a value to the other part if the number of its rows requires it.
- ``turn_k(state, m, value...)`` runs statements that several moves share, with the multiplicity ``m``.
- ``rebalance(state, base)`` sets the threshold base, classifies all values again and recomputes auxiliary views.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from freshviews.codegen.writer import Module, tuple_of
from freshviews.codegen.writing.appending import touched
from freshviews.codegen.writing.bodies import begin
from freshviews.codegen.writing.context import Context
from freshviews.codegen.writing.prologue import write_prologue, write_steps
from freshviews.codegen.writing.rebalancing import balancing_of, degree, index_of, partition_word
from freshviews.kernel.hash.heavy_light import RISE, SINK, STRICT
from freshviews.program.heavy_light import HALVES, Balancing, Partition, Procedure
from freshviews.program.program import Program
from freshviews.program.statements import Body, Loop
from freshviews.program.structure import visit

_RESERVED = frozenset({"state", "status", "constants", "steps", "m", "base", "row", "number"})


def write_procedures(program: Program, module: Module, counted: bool) -> list[str]:
    """Sources of the functions; none for a program without partitions."""
    balancing = program.balancing
    if balancing is None:
        return []

    def start() -> Context:
        return replace(begin(program, module, _RESERVED, counted), outlined=True)

    return [
        *(_write_procedure(start(), i, procedure) for i, procedure in enumerate(balancing.procedures)),
        *(_write_move(start(), i, partition) for i, partition in enumerate(balancing.partitions)),
        _write_rebalance(start(), balancing),
    ]


@contextmanager
def _function(context: Context, name: str, parameters: list[str], doc: str, views: list[str]) -> Iterator[None]:
    """A function over the balance and the tables of ``views``."""
    with context.writer.function(name, ", ".join(["state", *parameters]), "outside"):
        if doc:
            context.line(f'"""{doc}"""')
        write_prologue(context, ())
        context.load_balance()
        context.load_tables(views)
        if context.counted:
            context.line("steps = 0")
        yield
        write_steps(context)
        context.line("return 0")


def _write_procedure(context: Context, number: int, procedure: Procedure) -> str:
    parameters = ["m", *map(context.variable, procedure.parameters)]
    with _function(context, f"turn_{number}", parameters, procedure.name, list(touched(procedure.body))):
        context.body(procedure.body)
    return context.writer.text()


def _write_move(context: Context, number: int, partition: Partition) -> str:
    values = [context.variable(v) for v in partition.value]
    key = context.key(partition.value)
    views = [partition.heavy, *touched((*partition.rise, *partition.sink))]
    with _function(context, f"move_{number}", values, "", views):
        count, heavy = context.fresh("degree"), context.fresh("is_heavy")
        context.line(f"{count} = {degree(context, partition, key)}")
        context.line(f"{heavy} = find({context.table(partition.heavy)}, {key}) != 0")
        rise, sink = (partition_word(context, partition, word) for word in (RISE, SINK))
        with context.block(f"if {count} >= {rise} and not {heavy}:"):
            _write_minor(context, partition.rise)
        with context.block(f"elif {count} < {sink} and {heavy}:"):
            _write_minor(context, partition.sink)
    return context.writer.text()


def _write_minor(context: Context, body: Body) -> None:
    context.line(f"store({context.balance}, MINOR, load({context.balance}, MINOR) + 1)")
    context.body(body)


def _write_rebalance(context: Context, balancing: Balancing) -> str:
    views = [view for partition in balancing.partitions for view in (partition.view, partition.heavy)]
    views += [*balancing.auxiliary, *touched(balancing.recompute)]
    with _function(context, "rebalance", ["base"], "", views):
        context.line(f"store({context.balance}, MAJOR, load({context.balance}, MAJOR) + 1)")
        numbers = ", ".join(map(str, (len(balancing.partitions), *HALVES)))
        context.line(f"set_base({context.balance}, base, {numbers})")
        for view in _scanned_views(balancing):
            context.line(f"pack_table({context.table(view)})")
        for view in balancing.auxiliary:
            if context.counted:
                context.line(f"steps += load({context.table(view)}, LIVE)")
            context.line(f"reset_table({context.table(view)})")
        for view in dict.fromkeys(partition.view for partition in balancing.partitions):
            _write_partitioning(context, view)
        context.body(balancing.recompute)
    return context.writer.text()


def _scanned_views(balancing: Balancing) -> list[str]:
    """The views that the recomputation scans, besides those that are partitioned, of heavy values, or auxiliary."""
    made = {view for p in balancing.partitions for view in (p.view, p.heavy)}.union(balancing.auxiliary)
    scans = (s for s in visit(balancing.recompute) if isinstance(s, Loop) and not s.bound and not s.among)
    return list(dict.fromkeys(s.view for s in scans if s.view not in made))


def _write_partitioning(context: Context, view: str) -> None:
    """All rows of a view leave its heavy parts; then each enters those in which its values are heavy."""
    partitions = balancing_of(context.program).partitions_of(view)
    places = [_places(context, partition) for partition in partitions]
    table = context.table(view)
    context.line(f"pack_table({table})")
    for partition, own in zip(partitions, places, strict=True):
        context.line(f"reset_table({context.table(partition.heavy)})")
        for place in own:
            context.line(f"reset_subset({table}, {place})")
    with context.loop(f"for number in range(load({table}, USED)):"):
        context.line(f"row = row_at({table}, number)")
        with context.block(f"if is_zero({table}, row):"):
            context.line("continue")
        for partition, own in zip(partitions, places, strict=True):
            context.step()
            for place in own:
                context.line(f"forget_place({table}, {place}, row)")
            count = f"load({table}, LIVE)"
            if partition.by:
                count = f"slice_size({index_of(context, partition)}, row)"
            with context.block(f"if {count} >= {partition_word(context, partition, STRICT)}:"):
                for place in own:
                    context.line(f"enter_slice({table}, {place}, row)")
                key = tuple_of(f"load(row, {i})" for i in partition.by)
                context.line(f"store(upsert({context.table(partition.heavy)}, {key}), {len(partition.by)}, 1)")


def _places(context: Context, partition: Partition) -> list[int]:
    """The positions of the indexes of the heavy part among those of its view."""
    if not partition.subset:
        return []
    view = context.views[partition.view]
    subset = next(s for s in view.subsets if s.name == partition.subset)
    return [view.place_of_index(bound, subset.name) for bound in subset.indexes]
