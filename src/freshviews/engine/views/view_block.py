"""Runs the blocks of a view. A block is one SELECT. It has a compiled program, a native state, and output expressions.

The rows of several blocks are combined by a set operation such as UNION.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property, partial

import numpy as np

from freshviews.catalog.definitions import TableDef, ViewDef, looked_up_blocks
from freshviews.codegen.compiled_block import CompiledBlock, compile_block
from freshviews.codegen.module import Compiled
from freshviews.codegen.narrowing import may_be_narrow, with_narrow_sums
from freshviews.engine.blocks.host_columns import HostColumn, HostColumns, evaluate_columns, lift_program
from freshviews.engine.blocks.lanes import Lanes
from freshviews.engine.blocks.native import widen_tables
from freshviews.engine.blocks.runtime import BlockState
from freshviews.engine.codes.code_batch import CodeBatch, Codes, address_of
from freshviews.engine.views.failure import Failed, Failure, failures_of
from freshviews.engine.views.folds import Folds, States
from freshviews.engine.views.output import MESSAGES, Projection, consolidate, project, projection_of, reason
from freshviews.engine.views.set_rows import change_of, rows_of
from freshviews.engine.views.texts import Texts
from freshviews.expr.host_evaluation import Failures
from freshviews.expr.nodes import Column
from freshviews.kernel.hash.shrink import shrink_tables
from freshviews.kernel.machine.interruption import INTERRUPTION
from freshviews.kernel.output import buffer as buffers
from freshviews.kernel.output.drain import any_failed, append_rows
from freshviews.kernel.scalar.payload import RING_ERRORS, TOO_NARROW
from freshviews.plan.planner import plan_block
from freshviews.plan.strategy import Plan
from freshviews.program.program import Program
from freshviews.program.results import Held
from freshviews.program.upkeep import ByTriggers, Evaluated, Recomputed
from freshviews.query.block import Block, Fold, Gathering
from freshviews.records import dataclass
from freshviews.ring import NARROW, REAL
from freshviews.types.dictionary import Dictionary
from freshviews.types.values import constant_code


@dataclass(frozen=True)
class Wide:
    """A program, and a function that compiles it."""

    program: Program
    compile: Callable[[], CompiledBlock]

    @cached_property
    def compiled(self) -> CompiledBlock:
        return self.compile()


@dataclass
class ViewBlock:
    """One block of a view: its plan, its compiled program, its native state and its output."""

    plan: Plan
    projection: Projection
    compiled: CompiledBlock
    state: BlockState
    lanes: Lanes
    host: dict[str, HostColumns]
    evaluators: dict[str, tuple[HostColumn, ...]]
    """By relation, the host expressions that are computed before the triggers run; see ``evaluate_columns``."""
    needed: dict[str, tuple[str, ...]]
    """By relation, the columns that triggers read."""
    keys: tuple[int, ...]
    """Positions of the free variables among the outputs, if rows of the block are looked up."""
    count: int | None = None
    """The word of a raw row with the count of the output row, if that is the first result of its groups."""
    is_inner: bool = True
    """False if an update may emit and retract the same row, as a default row equal to its replacement."""
    fed: BlockState | None = None
    """The state that takes the rows of a backfill instead of ``state``; see ``engine.blocks.at_once``."""
    texts: Texts | None = None
    """The texts of groups that the view has instead of the rows."""
    wide: Wide | None = None
    """The program with reals, if that of ``state`` has narrow sums of doubles instead."""
    failures: dict[int, Failures] = field(default_factory=dict)
    """By error, the rows of the last batch for which a host expression has no value."""

    @property
    def sums(self) -> str | None:
        """How sums of doubles are stored: "narrow" or "real" (docs/rings.md); None without such sums."""
        rings = {component.ring for view in self.state.program.views for component in view.components}
        return "real" if REAL.name in rings else "narrow" if NARROW.name in rings else None

    def widen(self) -> bool:
        """Replace narrow sums by reals; False if memory runs out: the block must be cleared then."""
        if self.wide is None:
            return True
        state, program, compiled = self.state, self.wide.program, self.wide.compiled
        if not widen_tables(state.tables, state.program.views, program.views) or not state.go_on(program, compiled):
            return False
        self.compiled, self.wide = compiled, None
        return True

    def columns(self, batch: CodeBatch) -> Mapping[str, Codes]:
        """The columns that the triggers read."""
        host = self.evaluators.get(batch.relation)
        if host is None:
            return batch.columns
        found, failed = evaluate_columns(host, batch)
        self.failures.update(failed)
        return found

    def failure(self) -> Failure:
        """The failure since ``reset``, by the status word."""
        error, row = map(int, self.state.status[:2])
        if error == TOO_NARROW:
            return Failure("narrow", "a sum of doubles needs more words")
        failed = self.failures.get(error, {})
        message = MESSAGES[error] if not failed else (failed.get(row) or next(iter(failed.values()))).reason
        return Failure("evaluation", message, row if row >= 0 else None)

    def reset(self) -> None:
        """Forget failures, except that memory ran out."""
        self.state.reset_status()
        self.failures.clear()

    def project(self, raw: Codes) -> Codes:
        """Output rows of raw rows. Raises Failed if reading ``raw`` failed or an output has no value."""
        rows = project(self.projection, self.compiled, self.state.state, raw)
        if self.state.status[0]:
            message = reason(self.projection, self.compiled, self.state, raw)
            self.state.reset_status()
            raise Failed(Failure("evaluation", message))
        if self.state.failed():
            raise Failed(Failure("memory", "memory ran out"))
        return rows

    def rows(self, limit: int) -> Iterator[Codes]:
        """The output rows, at most ``limit`` at a time. Raises Failed."""
        if self.texts is None:
            return map(self._rows, self.state.rows(limit))
        made = self.texts.of(self._all_rows())
        return (made[at : at + limit] for at in range(0, len(made), limit))

    def _rows(self, raw: Codes) -> Codes:
        """The output rows of raw rows, with their counts."""
        rows = self.project(raw)
        return rows if self.count is None else np.column_stack([rows[:, :-1], rows[:, -1] * raw[:, self.count]])

    @property
    def counted(self) -> bool:
        """Whether a row may have a count above 1."""
        return self.count is not None

    def counts(self, rows: Codes) -> Codes:
        """The count of each of these rows, in a block whose rows are looked up."""
        found, raw = self.state.groups([rows[:, i] for i in self.keys], len(rows))
        made = self._rows(raw)
        counts = np.zeros(len(rows), np.int64)
        # Constants in the output must match, too.
        counts[found] = np.where((made[:, :-1] == rows[found, :-1]).all(axis=1), made[:, -1], 0)
        return counts

    def calls(self, relations: Iterable[str]) -> list[Compiled]:
        """The functions that batches of some relations call, without those that read the change."""
        program, state = self.state.program, self.state
        derived = [one.derivations for one in program.upkeep.joins]
        triggers = [call.run for name in (*relations, *derived) for call in state.calls_of(name)]
        parts = [call for part in state.parts for call in part.calls]
        ends = filter(None, (self.compiled.end_version, self.compiled.evaluate))
        return [*triggers, *ends, *parts, any_failed, shrink_tables]

    def change_calls(self, reads_rows: bool, looks_up: bool) -> list[Compiled]:
        """The functions that read the change. ``reads_rows``: the change is the difference of the rows before and
        after. ``looks_up``: a set operation looks up rows in the other blocks."""
        made = self.compiled
        readers = [made.project, made.read_change, made.awake]
        readers += [made.read_rows, made.read_listed, made.close_listed, made.enumerate] if reads_rows else []
        readers += [made.read_group, made.read_groups] if looks_up else []
        return [reader for reader in readers if reader is not None]

    def change(self) -> Codes:
        """The change since the last call, consolidated."""
        return consolidate(self._rows(self._raw_changes()))

    def unmerged_change(self) -> Codes:
        """The change since the last call, not consolidated. Raises Failed."""
        if self.texts is None:
            return self._row_change()
        return self.texts.change(self._row_change, self._all_rows)

    def forget_change(self) -> None:
        """Forget the change since the last call of ``unmerged_change``."""
        if self.texts is None:
            self.state.forget_changes()
        else:
            self.texts.pass_over(self._row_change, self.state.forget_changes)

    def clear(self) -> None:
        """Empty all state."""
        self.state.clear()
        if self.texts is not None:
            self.texts.forget()

    def _all_rows(self) -> Codes:
        """All rows from which texts are made."""
        nothing = self.project(np.empty((0, self.state.width), np.int64))
        return np.concatenate([nothing, *map(self._rows, self.state.rows(1 << 16))])

    def _row_change(self) -> Codes:
        """The change of the rows, or of the rows from which texts are made."""
        return self.project(self._raw_changes())

    def _raw_changes(self) -> Codes:
        """The change of the raw rows. Rows that triggers emit and retract may have no output: they are dropped."""
        raw = self.state.take_changes()
        return consolidate(raw) if self.projection.fails else raw


class ViewBlocks:
    """All blocks of a view, in order, and the combination of their rows.

    ``signed``: an input may have negative multiplicities. A view without blocks has constant rows.
    """

    def __init__(self, view: ViewDef, blocks: Sequence[ViewBlock], signed: bool, dictionary: Dictionary) -> None:
        self.view = view
        self._dictionary = dictionary
        codes = [
            [*(constant_code(c.type, value, dictionary) for c, value in zip(view.columns, row, strict=True)), 1]
            for row in view.constants
        ]
        self._constants = np.array(codes, np.int64).reshape(-1, len(view.columns) + 1)
        self.blocks = tuple(blocks)
        apart = len(blocks) == 1 and blocks[0].projection.injective
        self.cancels = signed and not apart and any(block.kind == "bag" for block in view.blocks)
        """Whether several raw rows, with multiplicities of either sign, may make one row of the view."""
        self._consolidated = apart and isinstance(blocks[0].plan.program.result, Held)

    def __iter__(self) -> Iterator[ViewBlock]:
        return iter(self.blocks)

    def __len__(self) -> int:
        return len(self.blocks)

    def __getitem__(self, number: int) -> ViewBlock:
        return self.blocks[number]

    def change_calls(self) -> list[Compiled]:
        """The functions that read the change, which a commit must not wait for."""
        calls: list[Compiled] = [append_rows, buffers.consolidate, buffers.clear_buffer]
        for block in self.blocks:
            reads_rows = isinstance(block.plan.program.upkeep, Evaluated | Recomputed)
            calls += block.change_calls(reads_rows, self.view.combined is not None)
        return calls

    def prepare(self, batch: CodeBatch) -> None:
        """Do the part of ``run`` that adds to the dictionary."""
        for block in self.blocks:
            block.columns(batch)

    def run(self, batch: CodeBatch) -> None:
        """Run the triggers of a batch's relation in all blocks. KeyboardInterrupt comes before any block has run."""
        if len(self.blocks) > 1:
            self.prepare(batch)
        m = address_of(batch.multiplicities)
        for block in self.blocks:
            names = block.needed.get(batch.relation)
            if names is None:
                continue
            found = block.columns(batch) if batch.relation in block.evaluators else batch.columns
            places = {}
            for name in names:
                places[name] = address_of(found[name])
            INTERRUPTION.allowed = 0
            (block.fed or block.state).run(batch.relation, places, m, len(batch))

    def failure(self) -> Failure | None:
        """The failure since ``reset``, or None."""
        found = None
        for block in self.blocks:
            if block.state.failed():
                return Failure("memory", "memory ran out")
            if found is None and block.state.status[0]:
                found = block.failure()
        return found

    @property
    def ring_failed(self) -> bool:
        """Whether a function of a user's ring has failed since ``reset``."""
        return any(int(block.state.status[0]) in RING_ERRORS for block in self.blocks)

    def reset(self) -> None:
        """Forget evaluation failures. A failure of memory stays until the block is cleared."""
        for block in self.blocks:
            block.reset()

    def empty(self) -> Codes:
        """An empty array of output rows, shape (0, columns + 1)."""
        return np.empty((0, len(self.view.columns) + 1), np.int64)

    def rows(self, limit: int) -> Iterator[Codes]:
        """The output rows, at most ``limit`` at a time. Raises Failed."""
        if self.view.combined is not None:
            yield from rows_of(self.view.combined, self.blocks, limit)
            return
        for start in range(0, len(self._constants), limit):
            yield self._constants[start : start + limit].copy()
        for block in self.blocks:
            yield from block.rows(limit)

    def all_rows(self) -> Codes:
        """All output rows, shape (n, columns + 1)."""
        return np.concatenate([self.empty(), *self.rows(1 << 16)])

    def take_change(self) -> Codes:
        """The change of the output since the last call, consolidated. Raises Failed."""
        if self.view.combined is not None:
            return change_of(self.view.combined, self.blocks)
        if not self.blocks:
            return self.empty()
        pieces = [block.unmerged_change() for block in self.blocks]
        rows = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
        return rows if self._consolidated else consolidate(rows)

    @property
    def reads_whole(self) -> bool:
        """Whether the change is the raw rows of one block, column by column."""
        whole = self._consolidated and self.view.combined is None and not self._constants.size
        return whole and all(block.texts is None for block in self.blocks)

    def forget_changes(self) -> None:
        """Forget the change since the last call of ``take_change``."""
        for block in self.blocks:
            block.forget_change()

    def clear(self) -> None:
        """Empty all state."""
        for block in self.blocks:
            block.clear()

    def close(self) -> None:
        """Give all memory back; the blocks must not be used again."""
        for block in self.blocks:
            block.state.close()
            if block.fed is not None:
                block.fed.close()


def blocks_of(
    view: ViewDef, definitions: Mapping[str, TableDef | ViewDef], dictionary: Dictionary
) -> list[ViewBlock]:
    """Plan and compile the blocks of a view, and allocate their states.

    Sums of doubles are narrow, until one does not fit, if the negation of a batch undoes all of its effects. Raises
    PlanError if the named strategy cannot maintain the view.
    """
    made = []
    looked_up = {} if view.combined is None else looked_up_blocks(view.combined)
    plans = [plan_block(view, block, definitions) for block in view.blocks]
    by_triggers = all(isinstance(plan.program.upkeep, ByTriggers) for plan in plans)
    narrow = by_triggers and all(ring.keeps_modulo for ring in view.rings)
    for number, (block, plan) in enumerate(zip(view.blocks, plans, strict=True)):
        projection = projection_of(block, dictionary)
        program, host = lift_program(plan.program)
        keys = _keys_of(block) if view.combined is not None else None

        given = block, projection.raw, projection.compiled, projection.having
        wide = None
        if narrow and may_be_narrow(program):
            wide = Wide(program, partial(compile_block, program, *given, looked_up=keys is not None))
            program = with_narrow_sums(program)
        compiled = compile_block(program, *given, looked_up=keys is not None)
        width = len(block.free) + len(block.results) + 1
        state = BlockState(program, compiled, width, dictionary)
        needed: dict[str, dict[str, None]] = {}
        for trigger in compiled.triggers:
            needed.setdefault(trigger.relation, {}).update(dict.fromkeys(trigger.columns))
        names = {relation: tuple(columns) for relation, columns in needed.items()}
        evaluators = {name: h.computed(dictionary) for name, h in host.items() if h.found}
        has_count = any(result.name not in failures_of(block) for result in block.results[:1])
        count = len(block.free) if looked_up.get(number, False) and has_count else None
        inner = block.query.is_inner
        lanes = Lanes(plan.keys)
        one = ViewBlock(plan, projection, compiled, state, lanes, host, evaluators, names, keys or (), count, inner)
        one.wide = wide
        if block.gathering is not None:
            one.texts = _texts_of(block.gathering, dictionary)
        made.append(one)
    return made


def _texts_of(gathering: Gathering, dictionary: Dictionary) -> Texts:
    """An object that makes the texts of groups, or their values."""
    if not isinstance(gathering, Fold):
        return Texts(gathering, dictionary)
    return (States if gathering.removes else Folds)(gathering, dictionary)


def _keys_of(block: Block) -> tuple[int, ...] | None:
    """Positions of the free variables among the outputs of a block of distinct rows; None if one is missing."""
    places = {o.expr.name: i for i, o in enumerate(block.outputs) if isinstance(o.expr, Column)}
    if block.kind != "groups" or not places.keys() >= set(block.free):
        return None
    return tuple(places[v] for v in block.free)
