"""Maintains one view: applies batches of its inputs, and returns the view's change and the view's rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from freshviews.catalog.definitions import ReadOrder, TableDef, ViewDef
from freshviews.codegen.module import Compiled, compile_ahead
from freshviews.engine.blocks.at_once import end_version, hand_over, state_at_once
from freshviews.engine.blocks.passes import relations_to_feed
from freshviews.engine.codes.code_batch import CodeBatch, Codes, ViewRows
from freshviews.engine.interrupts import Uninterrupted
from freshviews.engine.views.change_reader import ChangeReader, reader_of
from freshviews.engine.views.failure import Failed, Failure
from freshviews.engine.views.output import consolidate
from freshviews.engine.views.set_rows import counts
from freshviews.engine.views.view_block import ViewBlocks, blocks_of
from freshviews.engine.views.view_image import read_image, write_image, written_by
from freshviews.engine.views.view_upkeep import ByTriggers, Recomputed, Settled, Traced, Upkeep, upkeep_of
from freshviews.expr.nodes import Column
from freshviews.expr.ops import may_fail
from freshviews.expr.texts import TextFunction
from freshviews.plan.costs.comparison import Comparison, DegreesOf, compare
from freshviews.plan.explain import explain, nothing_measured
from freshviews.plan.planner import may_be_negative
from freshviews.plan.strategy import Plan
from freshviews.query.sharing import with_shared_sums
from freshviews.types import SqlType
from freshviews.types.columns import decode_array
from freshviews.types.dictionary import Dictionary
from freshviews.types.sorting import sorted_rows


class MaintainedView:
    """A view over its inputs: programs, their state, and the upkeep of the result.

    ``inputs`` has the definition of each relation that the view reads. All state is ring-valued, so applying the
    negation of a batch that failed in evaluation undoes it exactly. A ``spoiled`` view must be cleared and backfilled
    instead.
    """

    blocks: ViewBlocks
    _upkeep: Upkeep

    def __init__(
        self, view: ViewDef, inputs: Mapping[str, TableDef | ViewDef], dictionary: Dictionary
    ) -> None:
        self.view = replace(view, blocks=tuple(map(with_shared_sums, view.blocks)))
        self.inputs: tuple[str, ...] = view.inputs
        self.planning_seconds = 0.0
        self._definitions = dict(inputs)
        self._dictionary = dictionary
        self._wants_change = False
        self.spoiled = False
        """Whether a user's ring whose laws do not hold modulo 2^64 has overflowed since ``clear``."""
        self._names = tuple(column.name for column in view.columns)

    def prepare(self) -> None:
        """Plan and compile. Raises PlanError if the named strategy cannot maintain the view."""
        start = time.perf_counter()
        signed = any(may_be_negative(relation) for relation in self._definitions.values())
        made = blocks_of(self.view, self._definitions, self._dictionary)
        self.blocks = ViewBlocks(self.view, made, signed, self._dictionary)
        self._upkeep = upkeep_of(self.blocks, {name: tuple(sorted(self.needed(name))) for name in self.inputs})
        self.planning_seconds = time.perf_counter() - start

    def close(self) -> None:
        """Give all memory back."""
        if hasattr(self, "blocks"):
            self.blocks.close()

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The plan of each block."""
        return tuple(block.plan for block in self.blocks)

    @property
    def strategies(self) -> tuple[str, ...]:
        """The strategies of the blocks, each once."""
        return tuple(dict.fromkeys(plan.strategy for plan in self.plans))

    @property
    def sums(self) -> tuple[str, ...]:
        """How the blocks store sums of doubles, each way once: "narrow", "real"."""
        return tuple(dict.fromkeys(filter(None, (block.sums for block in self.blocks))))

    @property
    def hints(self) -> frozenset[str]:
        """The options that the strategies read as hints."""
        return frozenset[str]().union(*(plan.by.hints for plan in self.plans))

    def needed(self, relation: str) -> frozenset[str]:
        """Columns of a relation that the view reads."""
        columns: set[str] = set()
        for block in self.blocks:
            columns.update(c for c in block.needed.get(relation, ()) if not c.startswith("#"))
            if relation in block.host:
                columns.update(block.host[relation].columns())
        return frozenset(columns)

    def wanted(self, relation: str) -> tuple[frozenset[str], dict[str, TextFunction]]:
        """The values that must be encoded of a relation: columns, and text functions by the names of their results in a
        batch."""
        if isinstance(self._upkeep, Recomputed):
            return self.needed(relation), {}
        columns: set[str] = set()
        functions: dict[str, TextFunction] = {}
        for block in self.blocks:
            columns.update(c for c in block.needed.get(relation, ()) if not c.startswith("#"))
            if relation in block.host:
                columns.update(block.host[relation].columns(functions=False))
                functions |= block.host[relation].functions()
        return frozenset(columns), functions

    @property
    def wants_change(self) -> bool:
        """Whether the change of each batch is noted for ``take_change``."""
        return self._wants_change

    @wants_change.setter
    def wants_change(self, wanted: bool) -> None:
        if wanted != self._wants_change:
            self.discard_change()
            self._wants_change = wanted
            for block in self.blocks:
                if block.texts is not None:
                    block.texts.forget()
            if wanted:
                compile_ahead(*self.blocks.change_calls())
            for block in self.blocks:
                block.state.want_changes(wanted)

    @property
    def may_be_spoiled(self) -> bool:
        """Whether an overflow makes the view ``spoiled``."""
        return not all(ring.keeps_modulo for ring in self.view.rings)

    @property
    def by_triggers(self) -> bool:
        """Whether triggers alone maintain the view."""
        return type(self._upkeep) is ByTriggers and all(block.texts is None for block in self.blocks)

    @property
    def takes_pieces(self) -> bool:
        """Whether a large batch may be applied in pieces, at no more cost."""
        return type(self._upkeep) in (ByTriggers, Settled)

    @property
    def settles(self) -> bool:
        """Whether work is done once per version, which a backfill does, and ``take_back`` leaves for later."""
        return type(self._upkeep) not in (ByTriggers, Traced)

    def use_threads(self, count: int) -> None:
        """Set the most threads in which later batches run (``engine.blocks.lanes``)."""
        for block in self.blocks:
            block.lanes.use(block.state, count if self.by_triggers else 1)

    @property
    def in_lanes(self) -> bool:
        """Whether a trigger ran in lanes since ``use_threads``; its error may differ from that of one thread."""
        return any(block.lanes.ran for block in self.blocks)

    @property
    def may_fail_in_output(self) -> bool:
        """Whether an output expression may fail for a row, which shows when the change is taken."""
        exprs = [e for b in self.view.blocks for e in (*(o.expr for o in b.outputs), b.having) if e is not None]
        return any(r.may_fail for b in self.view.blocks for r in b.results) or any(map(may_fail, exprs))

    @property
    def has_host_output(self) -> bool:
        """Whether the output needs the dictionary: for string functions, or texts of groups."""
        return any(block.projection.host or block.texts is not None for block in self.blocks)

    # Batches

    def calls(self, relations: Iterable[str]) -> list[Compiled]:
        """The functions that ``apply`` for batches of some relations and ``take_change`` call, as far as known."""
        found = [call for block in self.blocks for call in block.calls(relations)]
        return [*found, *self.blocks.change_calls()] if self._wants_change else found

    def prepare_batch(self, batch: CodeBatch) -> None:
        """Do the part of ``apply`` that adds to the dictionary; ``apply`` then only reads it. Raises Failed,
        KeyboardInterrupt."""
        if len(batch):
            self.blocks.prepare(batch)

    def apply(self, batch: CodeBatch, more: bool = False, widens: bool = True) -> Failure | None:
        """Apply a batch of an input; returns why it must be refused, or None. Its negation undoes it.

        ``more``: a batch of another input follows in the same version, so work that is done once per version waits.
        ``widens``: if narrow sums of doubles cannot take the batch, switch to reals instead of refusing it.
        """
        if len(batch) == 0:
            return None
        try:
            self._upkeep.apply(batch, more, self._wants_change)
            failure = self.blocks.failure()
        except Failed as failed:
            failure = failed.failure
        if failure is not None:
            self.spoiled |= self.may_be_spoiled and self.blocks.ring_failed
            self.blocks.reset()
            if failure.kind == "narrow" and widens:
                return self._with_reals(partial(self.apply, more=more, widens=False), batch)
        return failure

    def take_back(self, batch: CodeBatch) -> Failure | None:
        """Undo a batch that ``apply`` took; ``discard_change`` must follow. Returns why the view is spoiled, or that
        memory ran out. Work that is done once per version waits until the view is read or changed."""
        try:
            self._upkeep.take_back(batch)
            failure = self.blocks.failure()
        except Failed as failed:
            failure = failed.failure
        if failure is not None:
            self.spoiled |= self.may_be_spoiled and self.blocks.ring_failed
            self.blocks.reset()
        return failure

    def _settle(self) -> None:
        """Do the work that waits, before the contents are read. Raises Failed if memory runs out."""
        if self._upkeep.waits:
            with Uninterrupted():
                self._upkeep.settle()
            failure = self.blocks.failure()
            self.blocks.reset()
            if failure is not None and failure.kind == "memory":
                raise Failed(failure)

    def _with_reals(self, take: Callable[[CodeBatch], Failure | None], batch: CodeBatch) -> Failure | None:
        """Undo a batch that narrow sums could not take, and apply it with reals; returns why it is refused, or None."""
        # Compile first: if this raises, the batch is still applied, and the commit undoes it as usual.
        for wide in filter(None, (block.wide for block in self.blocks)):
            wide.compiled  # noqa: B018
        failure = take(batch.negated())
        if failure is not None and failure.kind == "memory":
            return failure
        return take(batch) if self.widen() else Failure("memory", "memory ran out")

    def widen(self) -> bool:
        """Replace narrow sums of doubles by reals, for good; False if memory runs out: the view must be cleared
        then."""
        widened = all(block.widen() for block in self.blocks)
        if self._wants_change:
            compile_ahead(*self.blocks.change_calls())
        return widened

    def take_change(self) -> CodeBatch:
        """The view's change since the last call, consolidated. Raises Failed if an output has no value."""
        return self.batch_of(self._upkeep.take_change())

    def change_reader(self) -> ChangeReader | None:
        """The compiled reader of the change, instead of ``take_change``; None if more work is needed."""
        return reader_of(self.blocks) if self.by_triggers and self.blocks.reads_whole else None

    def discard_change(self) -> None:
        """Forget the change since the last call of ``take_change``."""
        self._upkeep.discard_change()
        self.blocks.reset()

    def give_back(self) -> None:
        """Free memory after removals, in a bounded step. Call it after a version."""
        for block in self.blocks:
            block.state.give_back()

    def batch_of(self, rows: Codes) -> CodeBatch:
        """Output rows, shape (n, columns + 1), as a batch of the view."""
        return ViewRows(self.view.name, self._names, rows)

    # Backfill

    def passes(
        self, sizes: Mapping[str, float], at_once: bool = False
    ) -> tuple[list[str], Generator[str, None, None]]:
        """The relations to ``load`` into the empty view, each whole before the next, and an iterator over them.

        ``sizes``: rows by relation. ``at_once``: if a join of all rows is cheaper than a delta per row, rows are only
        stored until ``joined`` joins them.
        """
        for block, definition in zip(self.blocks, self.view.blocks, strict=True):
            narrow = block.wide is not None
            block.fed = state_at_once(block.plan, definition, sizes, self._dictionary, narrow) if at_once else None
        states = [block.fed or block.state for block in self.blocks]
        return relations_to_feed([] if isinstance(self._upkeep, Recomputed) else states, self.inputs, sizes)

    def load(self, batch: CodeBatch, more: bool = False, widens: bool = True) -> Failure | None:
        """As ``apply``, for a batch of a backfill; call ``joined`` after the last one."""
        try:
            self._upkeep.load(batch, more)
            failure = self.blocks.failure()
        except Failed as failed:
            failure = failed.failure
        if failure is not None:
            self.blocks.reset()
            if failure.kind == "narrow" and widens:
                return self._with_reals(partial(self.load, more=more, widens=False), batch)
        return failure

    @property
    def waits_for_join(self) -> bool:
        """Whether rows were only stored, so that ``joined`` joins them."""
        return any(block.fed is not None for block in self.blocks)

    def joined(self) -> bool:
        """Join the rows that were only stored, and bring traces up to date. False if that fails: the view is empty
        again then."""
        fed = [(block.fed, block.state) for block in self.blocks if block.fed is not None]
        for block in self.blocks:
            block.fed = None
        done = [hand_over(made, state) for made, state in fed] + [end_version(block.state) for block in self.blocks]
        if not all(done):
            self.clear()
        return all(done)

    def loaded(self) -> Failure | None:
        """End a backfill; returns why the view cannot be computed, or None."""
        self._upkeep.settle()
        failure = self.blocks.failure()
        if failure is not None:
            self.blocks.reset()
        return failure

    def clear(self) -> None:
        """Empty all state, for another backfill."""
        self.spoiled = False
        self._upkeep.clear()

    # Contents

    def contents(self, rows: int) -> Iterator[CodeBatch]:
        """The contents in batches of at most ``rows`` rows, multiplicities included. Raises Failed.

        The view must not change until the iterator is done. Rows that may cancel out are merged first.
        """
        self._settle()
        if self.blocks.cancels:
            merged = consolidate(self.blocks.all_rows())
            yield from (self.batch_of(merged[at : at + rows]) for at in range(0, len(merged), rows))
            return
        yield from (self.batch_of(found) for found in self.blocks.rows(rows) if len(found))

    def in_order(self, order: ReadOrder) -> Codes:
        """All rows, shape (n, columns + 1), in the view's order. Raises Failed."""
        self._settle()
        limit = self.view.blocks[0].limit
        if order.places is None and limit is not None:
            # Raw rows have the columns of ORDER BY, even if the view does not show them.
            (block,) = self.blocks
            raw = np.concatenate([*block.state.rows(1 << 16)])
            names = {name: i for i, name in enumerate(self.view.blocks[0].free)}
            keys = [(raw[:, names[c.variable]], c.type, c.descending, c.nulls_last) for c in limit.order]
            return block.project(self._sorted(raw, keys))
        batches = [np.column_stack([*b.columns.values(), b.multiplicities]) for b in self.contents(1 << 16)]
        rows = np.concatenate([self.blocks.empty(), *batches])
        columns = self.view.columns
        listed = [(p.column, p.descending, p.nulls_last) for p in order.places or ()]
        listed += [(i, False, False) for i in range(len(columns))]
        return self._sorted(rows, [(rows[:, i], columns[i].type, down, last) for i, down, last in listed])

    def _sorted(self, rows: Codes, keys: Sequence[tuple[Codes, SqlType, bool, bool]]) -> Codes:
        """Rows sorted by keys, each with codes, type, whether it descends, and whether NULL is last."""
        arrays = [(decode_array(of, codes, self._dictionary, True), down, last) for codes, of, down, last in keys]
        found: Codes = rows[sorted_rows(arrays)]
        return found

    @property
    def group_columns(self) -> tuple[str, ...]:
        """Output columns of the group's key, in its order; () if rows cannot be looked up by key."""
        if self.view.combined is not None and self.view.combined.kind != "all":
            return tuple(column.name for column in self.view.columns)
        if self.view.group and self._is_keyed:
            return self.view.group
        if len(self.view.blocks) != 1 or self.view.blocks[0].kind != "groups":
            return ()
        block = self.view.blocks[0]
        names = {o.expr.name: o.name for o in reversed(block.outputs) if isinstance(o.expr, Column)}
        if not all(v in names for v in block.free):
            return ()
        return tuple(names[v] for v in block.free)

    @property
    def _is_keyed(self) -> bool:
        """Whether the rows of its one block have a key of some of their variables."""
        return len(self.view.blocks) == 1 and next(iter(self.blocks)).state.has_key

    def get(self, key: tuple[int, ...]) -> list[tuple[tuple[int, ...], int]]:
        """Rows of the group with the key's codes, with multiplicities: one or none. Raises Failed."""
        self._settle()
        if self.view.combined is not None:
            (found,) = counts(self.view.combined, self.blocks.blocks, np.array([[*key, 1]], np.int64)).tolist()
            return [(key, found)] if found else []
        (block,) = self.blocks
        rows = block.project(block.state.by_key(key) if self._is_keyed else block.state.group(key))
        return [(tuple(map(int, row[:-1])), int(row[-1])) for row in rows]

    @property
    def rows(self) -> int:
        """Rows of the contents by multiplicity; counted by reading them."""
        return int(sum(int(batch.multiplicities.sum()) for batch in self.contents(1 << 16)))

    # State

    def write_image(self, path: Path, *, sync: bool = True) -> None:
        """Write all state to a file, whole or not at all, without the strings of the dictionary.

        ``sync``: it is on the disk before this returns. ValueError where a change was not taken, StoreError where the
        file cannot be written.
        """
        if self._upkeep.has_change():
            raise ValueError(
                f"view {self.view.name} has an unread change, which an image cannot store; read or discard the "
                "change first"
            )
        self._settle()
        states = [block.state for block in self.blocks]
        write_image(path, self.view.name, states, self._upkeep.stored_rows(), self._dictionary, sync)

    def read_image(self, path: Path, *, verify: bool = False) -> None:
        """Restore the state from a file, which may be deleted but must not change while the view exists.

        The dictionary must have had the strings of the image, under the same codes, since before ``prepare``. Large
        arrays are mapped and read on demand; ``verify`` reads them at once and checks their sums. Raises StoreError, or
        OtherProgram if other programs wrote the image, and then changes nothing.
        """
        wide = [block.state.program if block.wide is None else block.wide.program for block in self.blocks]
        if any(block.wide is not None for block in self.blocks) and written_by(path, wide) and not self.widen():
            raise MemoryError
        states = [block.state for block in self.blocks]
        for block in self.blocks:
            if block.texts is not None:
                block.texts.forget()
        self._upkeep.restore(read_image(path, self.view.name, states, self._dictionary, verify))

    def stored_strings(self) -> Iterator[Codes]:
        """The string columns of the input rows that a recomputed view stores."""
        for name, rows in self._upkeep.stored_rows().items():
            strings = {column.name for column in self._definitions[name].columns if column.type.is_text}
            for i, column in enumerate(sorted(self.needed(name))):
                if column in strings:
                    yield rows[:, i]

    def sizes(self) -> dict[str, tuple[int, int]]:
        """Rows and bytes of each stored view of the programs."""
        self._settle()
        found: dict[str, tuple[int, int]] = {}
        for i, block in enumerate(self.blocks):
            prefix = f"{i + 1}." if len(self.blocks) > 1 else ""
            found |= {prefix + name: size for name, size in block.state.sizes().items()}
            if block.texts is not None:
                found[f"{prefix}{block.texts.kept}"] = (block.texts.rows, block.texts.about_bytes)
        return found

    def bytes(self) -> int:
        """Bytes of all stores, and of the input rows of a recomputed view. Evaluates nothing."""
        held = sum(rows.nbytes for rows in self._upkeep.stored_rows().values())
        held += sum(block.texts.about_bytes for block in self.blocks if block.texts is not None)
        return held + sum(size for block in self.blocks for _, size in block.state.sizes().values())

    def compare(self, degrees_of: DegreesOf, rates: Mapping[str, float]) -> tuple[Comparison, ...]:
        """The steps of an update under each strategy, for each block. ``rates``: updates by input."""
        blocks = zip(self.view.blocks, self.plans, strict=True)
        return tuple(compare(self.view, block, self._definitions, plan, degrees_of, rates) for block, plan in blocks)

    def explain(self, degrees_of: DegreesOf = nothing_measured, comparisons: Sequence[Comparison] = ()) -> str:
        """Class, reason, strategy, cost, bounds, program, and what is stored. Arguments as in ``plan.explain``."""
        states = [block.state for block in self.blocks]
        parts = [text for state in states for part in state.parts for text in part.described(state)]
        return explain(self.view, list(self.plans), self.sizes(), parts, degrees_of, comparisons, self.sums)
