"""One view kept fresh: its programs, their compiled form and state, its change, its contents."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from freshviews.catalog.definitions import TableDef, ViewDef
from freshviews.codegen.block import CompiledBlock, compile_block
from freshviews.engine.blocks.at_once import hand_over, state_at_once, walked
from freshviews.engine.blocks.host import HostColumns, evaluate_columns, lift_program
from freshviews.engine.blocks.passes import relations_to_feed
from freshviews.engine.blocks.runtime import BlockState
from freshviews.engine.codes.code_batch import CodeBatch, Codes, address_of
from freshviews.engine.views.failure import Failure
from freshviews.engine.views.image import read_image, write_image
from freshviews.engine.views.output import Projection, consolidate, project, projection_of, two_values
from freshviews.engine.views.recompute import StoredRows
from freshviews.engine.views.set_rows import Flags, change_of, has, rows_of
from freshviews.expr.host import Evaluator, HostFailure
from freshviews.expr.nodes import Column
from freshviews.expr.ops import may_fail
from freshviews.kernel.scalar.failure import ERRORS, TWO_VALUES
from freshviews.kernel.scalar.payload import PAYLOAD_ERRORS
from freshviews.plan.explain import explain
from freshviews.plan.planner import may_be_negative, plan_block
from freshviews.plan.strategy import Plan
from freshviews.program.results import Held
from freshviews.program.upkeep import Evaluated, Recomputed
from freshviews.query.block import Block
from freshviews.types.dictionary import Dictionary

_CHANGES = 1 << 16
"""Rows of a change after which they are taken out of the triggers' buffer."""

_MESSAGES = {**ERRORS, **PAYLOAD_ERRORS}


class TooMany(Exception):
    """A batch that is run update by update has too large a change; so many ``updates`` have run."""

    def __init__(self, updates: int) -> None:
        self.updates = updates


@dataclass
class _Part:
    """One block of the view, at work."""

    plan: Plan
    projection: Projection
    compiled: CompiledBlock
    state: BlockState
    host: dict[str, HostColumns]
    evaluators: dict[str, dict[str, Evaluator]]
    needed: dict[str, tuple[str, ...]]
    keys: tuple[int, ...]
    """Where the free variables stand among the outputs, of a block whose rows are looked up."""
    fed: BlockState | None = None
    """What is fed in the place of the state, while it is made at once."""
    two_values: str = ""
    """Where ONLY_VALUE had no answer since ``failure`` was last asked."""

    def project(self, raw: Codes) -> Codes:
        """Output rows of raw rows."""
        rows = project(self.projection, self.compiled, self.state.state, raw)
        if self.state.status[0] == TWO_VALUES and not self.two_values:
            self.two_values = two_values(self.projection, self.compiled, self.state, raw)
        return rows

    def rows(self, limit: int) -> Iterator[Codes]:
        """The output rows, at most ``limit`` at a time."""
        return map(self.project, self.state.rows(limit))

    def has(self, rows: Codes) -> Flags:
        """Which output rows are among its own."""
        found, raw = self.state.groups([rows[:, i] for i in self.keys], len(rows))
        # A constant in the output must agree, too.
        found[found] = (self.project(raw)[:, :-1] == rows[found, :-1]).all(axis=1)
        return found

    def change(self) -> Codes:
        """The change since the last call, consolidated."""
        return consolidate(self.project(self.state.take_changes()))


class Maintained:
    """A view kept fresh over its inputs.

    ``inputs`` gives the definition of each relation the view reads. All state is ring-valued: a batch that
    failed in evaluation is taken back, exactly, by applying its negation.
    """

    def __init__(
        self, view: ViewDef, inputs: Mapping[str, TableDef | ViewDef], dictionary: Dictionary
    ) -> None:
        self.view = view
        self.inputs: tuple[str, ...] = view.inputs
        self.planning_seconds = 0.0
        self._definitions = dict(inputs)
        self._dictionary = dictionary
        self._parts: list[_Part] = []
        self._wants_change = False
        self._host_failure: Failure | None = None
        self._stored: StoredRows | None = None
        self._difference: list[Codes] = []
        self._made_anew = False
        self._stale = False
        self._before: Codes | None = None
        self.filling = False
        """Whether more batches come before anybody looks: a view that is made anew waits for the last."""
        self._cancels = False

    def prepare(self) -> None:
        """Plan and compile. Raises PlanError where the named strategy cannot keep the view."""
        start = time.perf_counter()
        for block in self.view.blocks:
            plan = plan_block(self.view, block, self._definitions)
            projection = projection_of(block, self._dictionary)
            program, host = lift_program(plan.program)
            keys = _keys_of(block) if self.view.combined is not None else None
            compiled = compile_block(
                program,
                block,
                projection.raw,
                projection.compiled,
                projection.having,
                looked_up=keys is not None,
            )
            width = len(block.free) + len(block.results) + 1
            state = BlockState(program, compiled, width, self._dictionary)
            needed: dict[str, dict[str, None]] = {}
            for trigger in compiled.triggers:
                needed.setdefault(trigger.relation, {}).update(dict.fromkeys(trigger.columns))
            names = {relation: tuple(columns) for relation, columns in needed.items()}
            evaluators = {name: h.evaluators(self._dictionary) for name, h in host.items() if h.found}
            self._parts.append(_Part(plan, projection, compiled, state, host, evaluators, names, keys or ()))
        if any(isinstance(part.plan.program.upkeep, Recomputed) for part in self._parts):
            self._stored = StoredRows({name: tuple(sorted(self.needed(name))) for name in self.inputs})
        self._made_anew = any(isinstance(part.plan.program.upkeep, Evaluated) for part in self._parts)
        self._stale = self._made_anew
        self._cancels = self._can_cancel()
        self.planning_seconds = time.perf_counter() - start

    def _can_cancel(self) -> bool:
        """Whether two raw rows may be one row of the view, with multiplicities of either sign."""
        signed = any(may_be_negative(relation) for relation in self._definitions.values())
        apart = len(self._parts) == 1 and self._parts[0].projection.injective
        return signed and not apart and any(block.kind == "bag" for block in self.view.blocks)

    def close(self) -> None:
        """Give all memory back."""
        for part in self._parts:
            part.state.close()
            if part.fed is not None:
                part.fed.close()
        self._parts.clear()

    @property
    def plans(self) -> tuple[Plan, ...]:
        """What the planner decided for each block."""
        return tuple(part.plan for part in self._parts)

    def needed(self, relation: str) -> frozenset[str]:
        """Columns of a relation that the view reads."""
        columns: set[str] = set()
        for part in self._parts:
            columns.update(c for c in part.needed.get(relation, ()) if not c.startswith("#"))
            if relation in part.host:
                columns.update(part.host[relation].columns())
        return frozenset(columns)

    @property
    def wants_change(self) -> bool:
        """Whether the change of each batch is kept for ``take_change``."""
        return self._wants_change

    @wants_change.setter
    def wants_change(self, wanted: bool) -> None:
        if wanted != self._wants_change:
            self.discard_change()
            self._wants_change = wanted
            for part in self._parts:
                part.state.want_changes(wanted)

    @property
    def strategies(self) -> tuple[str, ...]:
        """The strategies at work, each once."""
        return tuple(dict.fromkeys(part.plan.strategy for part in self._parts))

    @property
    def hints(self) -> frozenset[str]:
        """The options that its strategies read as hints."""
        return frozenset[str]().union(*(part.plan.by.hints for part in self._parts))

    @property
    def may_fail_in_output(self) -> bool:
        """Whether an output expression may have no value for a row, which shows when the change is taken."""
        exprs = [e for b in self.view.blocks for e in (*(o.expr for o in b.outputs), b.having) if e is not None]
        return any(r.may_fail for b in self.view.blocks for r in b.results) or any(map(may_fail, exprs))

    def tells_order(self, relation: str) -> bool:
        """Whether a batch of the relation can be run update by update: one block, whose result is not held."""
        return len(self._parts) == 1 and relation in self._parts[0].compiled.each and self._wants_change

    def apply_in_order(self, batch: CodeBatch, most: int) -> tuple[CodeBatch, Codes]:
        """Run a batch update by update; the changes in order, and the number of the update behind each row.

        The change can still be taken as a whole. TooMany where there are ``most`` rows of it or more and not all
        updates have run: those that have are to be taken back. Only where ``tells_order``; see ``failure``.
        """
        nothing = np.empty((0, len(self.view.columns) + 1), np.int64)
        found: list[tuple[Codes, Codes]] = [(nothing, np.empty(0, np.int64))]
        (part,) = self._parts
        columns = self._columns(part, batch)
        if columns is not None and len(batch):
            places = {name: address_of(columns[name]) for name in part.needed[batch.relation]}
            m = address_of(batch.multiplicities)
            count = 0
            limit = min(_CHANGES, most)
            for raw, numbers, done in part.state.each(batch.relation, places, m, len(batch), limit):
                found.append(self._output_in_order(part, raw, numbers))
                count += len(found[-1][0])
                if count >= most and done < len(batch):
                    raise TooMany(done)
        rows, numbers = found[-1]
        if len(found) > 2:
            rows = np.concatenate([rows for rows, _ in found])
            numbers = np.concatenate([numbers for _, numbers in found])
        self._difference.append(rows)
        return self._batch(rows), numbers

    def apply(self, batch: CodeBatch, more: bool = False) -> None:
        """Run the triggers of a relation. ``more``: a batch of another one follows in the same version, and what can be
        done once for all of them waits for the last. See ``failure`` for what could not be computed."""
        if len(batch) == 0:
            return
        if self._stored is not None:
            self._recompute(self._stored, batch)
        elif self._made_anew:
            if self._wants_change and self._before is None:
                self._before = self._rows()
            self._run(batch)
            self._stale = True
        else:
            self._run(batch)
            if not more:
                for part in self._parts:
                    part.state.walk()

    def passes(self, sizes: Mapping[str, float], at_once: bool = False) -> Generator[str, None, None]:
        """The relations to feed to the empty view, each whole before the next; ``sizes`` are their rows. ``at_once``:
        where that is cheaper, what is fed may be stored alone until ``joined``."""
        for part, block in zip(self._parts, self.view.blocks, strict=True):
            part.fed = state_at_once(part.plan, block, sizes, self._dictionary) if at_once else None
        states = [part.fed or part.state for part in self._parts if self._stored is None]
        return relations_to_feed(states, self.inputs, sizes)

    def joined(self) -> bool:
        """Join what was stored alone, walk what waits for it; False where that failed: the view is empty again then."""
        fed = [(part.fed, part.state) for part in self._parts if part.fed is not None]
        for part in self._parts:
            part.fed = None
        done = [hand_over(made, state) for made, state in fed] + [walked(part.state) for part in self._parts]
        if not all(done):
            self.clear()
        return all(done)

    def _settle(self) -> None:
        """Make anew what has changed."""
        if self._stale:
            self._stale = False
            for part in self._parts:
                part.state.evaluate()

    def _recompute(self, stored: StoredRows, batch: CodeBatch) -> None:
        """Make the view anew, and its change from the contents before and after."""
        before = self._rows() if self._wants_change else None
        stored.add(batch)
        for part in self._parts:
            part.state.clear()
        for every in stored.batches():
            self._run(every)
        if before is not None:
            self.discard_journals()
            before[:, -1] *= -1
            self._difference += [before, self._rows()]

    def _rows(self) -> Codes:
        """All rows of the contents, shape (n, columns + 1)."""
        return np.concatenate([np.empty((0, len(self.view.columns) + 1), np.int64), *self._pieces(1 << 16)])

    def _pieces(self, limit: int) -> Iterator[Codes]:
        """The rows of the contents, at most ``limit`` at a time."""
        self._settle()
        if self.view.combined is not None:
            yield from rows_of(self.view.combined, self._parts, limit)
            return
        for part in self._parts:
            yield from part.rows(limit)

    def _run(self, batch: CodeBatch) -> None:
        """Run the triggers, or none of them where a host expression has no answer for a row."""
        arrays = [self._columns(part, batch) for part in self._parts]
        m = address_of(batch.multiplicities)
        for part, columns in zip(self._parts, arrays, strict=True):
            names = part.needed.get(batch.relation)
            if names is None or any(one is None for one in arrays):
                continue
            assert columns is not None
            places = {name: address_of(columns[name]) for name in names}
            (part.fed or part.state).run(batch.relation, places, m, len(batch))

    def _columns(self, part: _Part, batch: CodeBatch) -> Mapping[str, Codes] | None:
        """The columns that a part reads; None where a host expression has no answer, which ``failure`` tells."""
        host = part.evaluators.get(batch.relation)
        try:
            return batch.columns if host is None else evaluate_columns(host, batch)
        except HostFailure as failure:
            self._host_failure = self._host_failure or Failure("evaluation", failure.reason, failure.row)
            return None

    def _output_in_order(self, part: _Part, raw: Codes, numbers: Codes) -> tuple[Codes, Codes]:
        """Output rows of raw rows, and the numbers that go with them."""
        if part.projection.having is None:
            rows = part.project(raw)
            return rows.copy() if rows is raw else rows, numbers
        kept, found = [part.project(raw[:0])], [numbers[:0]]
        for number in np.unique(numbers):
            rows = part.project(raw[numbers == number])
            kept.append(rows)
            found.append(np.full(len(rows), number, np.int64))
        return np.concatenate(kept), np.concatenate(found)

    def failure(self, more: bool = False) -> Failure | None:
        """What went wrong since the last call; forgotten by asking. ``more`` as in ``apply``."""
        if not (self.filling or more):
            self._settle()
        found, self._host_failure = self._host_failure, None
        for part in self._parts:
            status = part.state.status
            if part.state.failed():
                return Failure("memory", "memory ran out")
            if status[0] != 0:
                row = int(status[1])
                message = part.two_values or _MESSAGES[int(status[0])]
                found = found or Failure("evaluation", message, row if row >= 0 else None)
                part.two_values = ""
                part.state.reset_status()
        return found

    def take_change(self) -> CodeBatch:
        """The view's change since the last take, consolidated."""
        if self._stored is not None:
            empty = np.empty((0, len(self.view.columns) + 1), np.int64)
            pieces, self._difference = [empty, *self._difference], []
            return self._batch(consolidate(np.concatenate(pieces)))
        if self._made_anew:
            after, before = self._rows(), self._before
            self._before = None
            if before is None:
                return self._batch(after[:0])
            before[:, -1] *= -1
            return self._batch(consolidate(np.concatenate([before, after])))
        if self.view.combined is not None:
            return self._batch(change_of(self.view.combined, self._parts))
        pieces = []
        whole = len(self._parts) == 1
        for part in self._parts:
            raw = part.state.take_changes()
            rows = part.project(raw)
            if self._difference:
                rows = np.concatenate([*self._difference, rows])
                self._difference = []
            whole = whole and part.projection.injective and isinstance(part.plan.program.result, Held)
            pieces.append(rows)
        rows = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
        return self._batch(rows if whole else consolidate(rows))

    def _batch(self, rows: Codes) -> CodeBatch:
        columns = {column.name: rows[:, i] for i, column in enumerate(self.view.columns)}
        return CodeBatch(self.view.name, columns, rows[:, -1])

    def discard_change(self) -> None:
        """Forget the change since the last take."""
        self._difference.clear()
        self._before = None
        self.discard_journals()

    def discard_journals(self) -> None:
        """Forget what the blocks have noted of the change."""
        for part in self._parts:
            part.state.forget_changes()

    def contents(self, rows: int) -> Iterator[CodeBatch]:
        """The contents in batches of at most ``rows`` rows, multiplicities included.

        The view must not change until the iterator is done. Over Z, where rows may cancel out, all of them are
        merged first.
        """
        if self._cancels:
            merged = consolidate(self._rows())
            yield from (self._batch(merged[at : at + rows]) for at in range(0, len(merged), rows))
            return
        yield from (self._batch(found) for found in self._pieces(rows) if len(found))

    @property
    def group_columns(self) -> tuple[str, ...]:
        """Output columns that are the group's key, in its order; () where a row is not found by key."""
        if self.view.combined is not None and self.view.combined.kind != "all":
            return tuple(column.name for column in self.view.columns)
        if len(self.view.blocks) != 1 or self.view.blocks[0].kind != "groups":
            return ()
        block = self.view.blocks[0]
        names = {o.expr.name: o.name for o in reversed(block.outputs) if isinstance(o.expr, Column)}
        if not all(v in names for v in block.free):
            return ()
        return tuple(names[v] for v in block.free)

    def get(self, key: tuple[int, ...]) -> list[tuple[tuple[int, ...], int]]:
        """Rows of the group with the key's codes, with multiplicities: one or none."""
        self._settle()
        if self.view.combined is not None:
            return [(key, 1)] if has(self.view.combined, self._parts, np.array([[*key, 1]], np.int64))[0] else []
        (part,) = self._parts
        found = part.project(part.state.group(key))
        return [(tuple(map(int, row[:-1])), int(row[-1])) for row in found]

    def clear(self) -> None:
        """Empty all state, to be filled again."""
        if self._stored is not None:
            self._stored.clear()
        self._difference.clear()
        self._before = None
        self._stale = self._made_anew
        for part in self._parts:
            part.state.clear()

    def write_image(self, path: Path, *, sync: bool = True) -> None:
        """Write all state to a file, whole or not at all; the strings of its codes are left to their owner.

        ``sync``: it is on the disk before this returns. ValueError where there is a change to be taken,
        StoreError where the file cannot be written.
        """
        if self._difference or self._before is not None:
            raise ValueError(f"view {self.view.name} has a change: take it, or discard it, before an image is written")
        self._settle()
        states = [part.state for part in self._parts]
        stored = {} if self._stored is None else self._stored.rows
        write_image(path, self.view.name, states, stored, self._dictionary, sync)

    def read_image(self, path: Path, *, verify: bool = False) -> None:
        """Take the state from a file, which may be deleted but must not change as long as the view lives.

        The dictionary must have the strings that it had when the image was written, under the same codes, since
        before ``prepare``. Large arrays are mapped and read as they are touched; ``verify`` reads them at once to
        see that they are as they were written. Raises StoreError, OtherProgram where the view was kept by other
        programs when the image was written; the state is as before then.
        """
        stored = read_image(path, self.view.name, [p.state for p in self._parts], self._dictionary, verify)
        self._difference.clear()
        self._before = None
        self._stale = False
        if self._stored is not None:
            self._stored.take(stored)

    def sizes(self) -> dict[str, tuple[int, int]]:
        """Rows and bytes of each stored view of the program."""
        self._settle()
        found: dict[str, tuple[int, int]] = {}
        for i, part in enumerate(self._parts):
            prefix = f"{i + 1}." if len(self._parts) > 1 else ""
            found |= {prefix + name: size for name, size in part.state.sizes().items()}
        return found

    def bytes(self) -> int:
        """Bytes of all stored views."""
        return sum(size for _, size in self.sizes().values())

    @property
    def rows(self) -> int:
        """Rows of the contents by multiplicity; counted by reading them."""
        return int(sum(int(batch.multiplicities.sum()) for batch in self.contents(1 << 16)))

    def explain(self) -> str:
        """Class, reason, strategy, bounds, program, and what is stored."""
        balances = [size for part in self._parts if (size := part.state.balance_size()) is not None]
        traces = [line for part in self._parts for line in part.state.traces()]
        return explain(self.view, [part.plan for part in self._parts], self.sizes(), balances, traces)


def _keys_of(block: Block) -> tuple[int, ...] | None:
    """Where the free variables stand among the outputs of a block of distinct rows; None where one does not."""
    places = {o.expr.name: i for i, o in enumerate(block.outputs) if isinstance(o.expr, Column)}
    if block.kind != "groups" or not places.keys() >= set(block.free):
        return None
    return tuple(places[v] for v in block.free)
