"""The evaluators of a DAG of views: the engine, the interpreter, and the oracle that they must agree with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from freshviews.engine.codes.code_batch import CodeBatch
from freshviews.engine.views.maintained import MaintainedView
from freshviews.plan.assemble import number_of
from freshviews.program.program import Program
from freshviews.program.reference.interpreter import State
from freshviews.program.results import Held, Listed
from freshviews.query.block import SCANNED, Block, counts_values
from freshviews.query.grouping_sets import each
from freshviews.ring import named
from freshviews.types import NULL
from tests.agreement.views_of_script import Definitions
from tests.plan.oracle import Key, Relation, evaluate_query, evaluate_view, evaluated_of, first_rows, selected_rows

Rows = Counter[Key]


def is_determined(definitions: Definitions, contents: Mapping[str, Rows]) -> bool:
    """False if rows of a trusted table are negative and a view asks whether there are any: strategies store different
    columns, so rows that cancel out in one do not in another."""
    queries = [block.query for view in definitions.views for block in view.blocks]
    asks = any(not query.is_ordinary(atom) for query in queries for atom in query.occurrences)
    return not asks or all(m > 0 for rows in contents.values() for m in rows.values())


class Oracle:
    """All relations by their definitions."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self.relations: dict[str, Relation] = {
            name: Relation(tuple(c.name for c in one.columns)) for name, one in definitions.relations.items()
        }

    def apply(self, batches: Mapping[str, CodeBatch]) -> None:
        """Apply a version, and compute every view from its inputs."""
        for name, batch in batches.items():
            for key, m in updates_of(batch):
                self.relations[name].add(key, m)
        for view in self._definitions.views:
            self.relations[view.name].rows = evaluate_view(view, self.relations, self._definitions.dictionary)

    def is_bag(self) -> bool:
        """True if no table has a negative multiplicity."""
        return all(m >= 0 for t in self._definitions.tables for m in self.relations[t.name].rows.values())


class Engine:
    """Maintained views, each given the changes of the relations that it reads."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self.views: dict[str, MaintainedView] = {}
        for view in definitions.views:
            maintained = MaintainedView(view, definitions.inputs(view), definitions.dictionary)
            maintained.prepare()
            # Aggregates without GROUP BY, and constants, have their one row from the start.
            for name in maintained.inputs:
                if name in self.views:
                    for batch in self.views[name].contents(1 << 16):
                        maintained.apply(batch)
            maintained.wants_change = True
            self.views[view.name] = maintained

    def apply(self, batches: Mapping[str, CodeBatch]) -> dict[str, CodeBatch]:
        """Run a version through all views; returns their changes."""
        changes = dict(batches)
        for name, maintained in self.views.items():
            come = [relation for relation in maintained.inputs if relation in changes and len(changes[relation])]
            for number, relation in enumerate(come, 1):
                failure = maintained.apply(changes[relation], more=number < len(come))
                assert failure is None, f"{name}: {failure}"
            changes[name] = maintained.take_change()
        return {name: changes[name] for name in self.views}

    def contents(self, view: str, limit: int) -> Rows:
        """The rows, read ``limit`` raw rows at a time."""
        rows: Rows = Counter()
        for batch in self.views[view].contents(limit):
            for key, m in updates_of(batch):
                rows[key] += m
        return rows

    def stored_rows(self) -> dict[str, int]:
        """The number of rows of each stored view of each program, deferred ones included: they may cancel others."""
        found = {}
        for name, maintained in self.views.items():
            for part in maintained.blocks:
                part.state.enter_pending()
            for stored, (rows, _) in maintained.sizes().items():
                # Intervals of a trace may outlast the operation that recorded them, see docs/trie-join.md. In a view of
                # several blocks, names begin with the number of the block.
                if "intervals of " not in stored:
                    found[f"{name}.{stored}"] = rows
        return found

    def close(self) -> None:
        for maintained in self.views.values():
            maintained.close()


class Interpreter:
    """The programs of one block under one strategy, run over dicts."""

    def __init__(self, block: Block, program: Program, definitions: Definitions) -> None:
        self._block = block
        self._definitions = definitions
        self.state = State(program, definitions.dictionary)

    def apply(self, batches: Mapping[str, CodeBatch]) -> None:
        for name, batch in batches.items():
            columns = tuple(batch.columns)
            updates = [(dict(zip(columns, key, strict=True)), m) for key, m in updates_of(batch)]
            self.state.apply(name, updates)

    def expected(self, relations: Mapping[str, Relation]) -> dict[Key, tuple[Any, ...]]:
        """The payloads that follow from the oracle's relations, with the components of the program."""
        if not self._block.sets:
            return self._expected(self._block, relations)
        return {
            _key_of_set(self._block, position, key): payload
            for position, one in enumerate(each(self._block))
            for key, payload in self._expected(one, relations).items()
        }

    def _expected(self, block: Block, relations: Mapping[str, Relation]) -> dict[Key, tuple[Any, ...]]:
        dictionary, program = self._definitions.dictionary, self.state.program
        if block.selection is not None:
            return {key: (n,) for key, n in selected_rows(block, relations, dictionary).items()}
        evaluated = evaluated_of(block)
        found: dict[Key, dict[str, Any]] = evaluated(block.query, relations, dictionary)
        if block.limit is not None and evaluated is evaluate_query:
            return {key: (n,) for key, n in first_rows(block, found, dictionary).items()}
        if not (gathered := _gathered(program)):
            if block.results:
                names = [c.name for c in program.result.emitted]
                return {key: tuple(payload[name] for name in names) for key, payload in found.items()}
            counts = {key: payload["count"] for key, payload in found.items()}
            if block.kind == "groups":
                # Enumerated distinct rows occur once each.
                return {key: (1,) for key, count in counts.items() if count > 0}
            return {key: (count,) for key, count in counts.items() if count}
        view = program.view(gathered)
        if _presence(program):
            found = {key: {"count": 1} for key, payload in found.items() if payload["count"] > 0}
        zero = {c.name: named(c.ring).zero for c in view.components}
        for distinct in block.distinct:
            groups = len(block.query.free)
            counted = counts_values(distinct.kind)
            for key, counts in evaluated(distinct.query, relations, dictionary).items():
                payload = found.setdefault(key[:groups], dict(zero))
                number = distinct.name if distinct.kind == "count" else number_of(distinct.name)
                payload[number] = payload.get(number, 0) + (counts["count"] if counted else 1)
        # The ends of MIN and MAX, and sums of distinct values, are compared as results of the engine.
        exact = [c.name for c in view.components if c.name in zero and not _is_derived(block, c.name)]
        seen = self._seen()
        payloads = {
            key: tuple(min(payload.get(n, zero[n]), 1) if n in seen else payload.get(n, zero[n]) for n in exact)
            for key, payload in found.items()
        }
        nothing = tuple(zero[name] for name in exact)
        return {key: payload for key, payload in payloads.items() if payload != nothing}

    def output(self) -> dict[Key, tuple[Any, ...]]:
        """The program's payloads, without the components that ``expected`` leaves out."""
        program = self.state.program
        if not (gathered := _gathered(program)):
            return self.state.output()
        view = program.view(gathered)
        kept = [i for i, c in enumerate(view.components) if not _is_derived(self._block, c.name)]
        zero = tuple(named(view.components[i].ring).zero for i in kept)
        found = {key: tuple(payload[i] for i in kept) for key, payload in self.state.output().items()}
        # Counts may only record that a row is present.
        seen = self._seen() | ({"count"} if _presence(program) else set())
        if seen:
            counts = [view.components[i].name in seen for i in kept]
            found = {
                key: tuple(min(part, 1) if count else part for part, count in zip(payload, counts, strict=True))
                for key, payload in found.items()
            }
        return {key: payload for key, payload in found.items() if payload != zero}

    def _seen(self) -> set[str]:
        """The components that record whether a group has an argument, not how many: those of a grouping set may be
        counted by a finer one."""
        if not self._block.sets:
            return set()
        return {number_of(d.name) for d in self._block.distinct if d.kind in SCANNED}


def _key_of_set(block: Block, position: int, key: Key) -> Key:
    """The key of a group of one grouping set among those of all."""
    values = dict(zip(block.sets[position], key, strict=True))
    return (position, *(values.get(v, NULL) for v in block.query.free))


def _is_derived(block: Block, component: str) -> bool:
    return any(d.name == component and d.kind != "count" for d in block.distinct)


def updates_of(batch: CodeBatch) -> list[tuple[Key, int]]:
    """The rows of a batch as tuples of codes, with multiplicities."""
    columns = [column.tolist() for column in batch.columns.values()]
    keys = zip(*columns, strict=True) if columns else [()] * len(batch)
    return list(zip(keys, batch.multiplicities.tolist(), strict=True))


def change_of(relation: str, before: Rows, after: Rows, definitions: Definitions) -> CodeBatch:
    """The change that leads from one relation to the other."""
    keys = {**before, **after}
    updates = [(key, after[key] - before[key]) for key in keys if after[key] != before[key]]
    return definitions.code_batch(relation, updates)


def _gathered(program: Program) -> str:
    """The view that has the components of the result's payload: the result, or its change. Empty if there is none."""
    match program.result:
        case Held(view) | Listed(delta=view):
            return view
        case _:
            return ""


def _presence(program: Program) -> bool:
    """True if the counts of the result only record that a row is present."""
    return isinstance(program.result, Held) and program.result.presence
