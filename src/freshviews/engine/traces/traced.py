"""Maintains one traced join: takes edits of the relations, and returns the rows that the join lost and gained.

The kernels of ``kernel.trace`` store the trace and update it.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence

import numpy as np

from freshviews.codegen.conditions import compile_conditions
from freshviews.codegen.layout import CONSTANTS, FIRST_TABLE, STATUS, STATUS_WORDS
from freshviews.engine.codes.code_batch import Codes
from freshviews.engine.codes.words import address, words_at
from freshviews.engine.traces.ordered_tree import Fold, OrderedTree
from freshviews.errors import OutOfMemory
from freshviews.kernel.btree.difference import new_delta
from freshviews.kernel.btree.folds import GREATEST
from freshviews.kernel.memory.mem import load, release
from freshviews.kernel.output import buffer as buffers
from freshviews.kernel.trace import filters
from freshviews.kernel.trace import variable_join as words
from freshviews.kernel.trace.intervals import STACK_WORDS
from freshviews.kernel.trace.maintain import maintain
from freshviews.kernel.trace.oracle import OPERATION_PATH, keep_version
from freshviews.kernel.trace.sensitivity import PAYLOAD
from freshviews.kernel.trie.iterator import new_iterator
from freshviews.program.comparison import Comparison, comparison_of
from freshviews.program.rule import Cursor, Rule
from freshviews.records import dataclass
from freshviews.types.dictionary import Dictionary

_SIGNS = {"=": filters.EQUAL, "<>": filters.DIFFERENT, "<": filters.LESS, "<=": filters.LESS_OR_EQUAL}
_OF_FLOATS = {"<": filters.LESS_FLOAT, "<=": filters.LESS_OR_EQUAL_FLOAT}
_NULL_SAFE = {"=": filters.SAME, "<>": filters.DISTINCT}

Edits = Mapping[str, tuple[Sequence[Codes], Codes]]
"""By relation, columns of rows, and changes of their multiplicities."""


@dataclass(frozen=True)
class TraceCounters:
    """Counters of work, as ``program.reference.incremental_trie_join.maintenance.Counters``; ``contributions`` are
    those of the oracle."""

    operations: int
    surgeries: int
    matched: int
    recorded: int
    removed: int
    trace: int
    edits: int
    contributions: int


class TracedRule:
    """A rule over relations, empty at first, and its sensitivity indices. Conditions that are not comparisons of two
    variables (``program.comparison``) are compiled; codes of strings in them are those of ``dictionary``.

    After OutOfMemory it must not be used any more.
    """

    def __init__(self, rule: Rule, dictionary: Dictionary | None = None) -> None:
        self.rule = rule
        self._dictionary = dictionary
        n = len(rule.order)
        self._arrays: list[Codes] = []
        self._buffers: list[int] = []
        self._blocks: list[int] = []
        self._orders = [rule.permutation(atom) for atom in rule.atoms]
        places = list(dict.fromkeys(zip((a.relation for a in rule.atoms), self._orders, strict=True)))
        self.trees = {(name, order): OrderedTree(len(order), 1, summed=True) for name, order in places}
        self.indices: dict[tuple[int, int], OrderedTree] = {}

        self._rule = self._words(words.RULE_WORDS)
        described_trees = self._words(words.TREE_WORDS * len(places))
        for i, tree in enumerate(self.trees.values()):
            at = i * words.TREE_WORDS
            described_trees[at + words.HANDLE] = tree.handle
            described_trees[at + words.OPERATED] = self._buffer(OPERATION_PATH + tree.key)
            described_trees[at + words.DELTA] = self._block(new_delta(tree.key, 1))
        tree_of = [places.index((a.relation, order)) for a, order in zip(rule.atoms, self._orders, strict=True)]
        positive = [i for i, atom in enumerate(rule.atoms) if not atom.negated]
        atoms = self._words(words.ATOM_WORDS * len(positive))
        iterators = {}
        for at, i in zip(range(0, len(atoms), words.ATOM_WORDS), positive, strict=True):
            depth = len(self._orders[i])
            iterators[i] = [self._block(new_iterator(depth)) for _ in range(2)]
            atoms[at : at + words.ATOM_WORDS] = [*iterators[i], depth, tree_of[i]]
        cursors = [
            (number, turn, cursor)
            for number, level in enumerate(rule.levels)
            for turn, cursor in (*enumerate(level.cursors), *((0, cursor) for cursor in level.negated))
        ]
        described = self._words(words.CURSOR_WORDS * len(cursors))
        for i, (number, turn, cursor) in enumerate(cursors):
            at = i * words.CURSOR_WORDS
            self._describe(described[at : at + words.CURSOR_WORDS], number, turn, cursor, tree_of[cursor.atom])
            if cursor.atom in iterators:
                described[at + words.ITERATORS : at + words.ITERATORS + 2] = iterators[cursor.atom]
            else:
                described[at + words.NEGATES] = 1
        conditions = self._conditions(rule)
        levels = self._words(words.LEVEL_WORDS * n)
        first = first_condition = 0
        for number, level in enumerate(rule.levels):
            at = number * words.LEVEL_WORDS
            levels[at + words.FIRST_CURSOR] = first
            levels[at + words.CURSORS] = len(level.cursors)
            levels[at + words.NEGATED] = len(level.negated)
            levels[at + words.FIRST_CONDITION] = first_condition
            levels[at + words.CONDITIONS] = len(level.conditions)
            levels[at + words.ASKED] = self._buffer(number + 6)
            levels[at + words.CARRIES] = self._buffer(number + 1)
            levels[at + words.EMITTED] = self._buffer(2)
            first += len(level.cursors) + len(level.negated)
            first_condition += len(level.conditions)
        counts = {
            words.LEVEL_COUNT: n,
            words.CURSOR_COUNT: len(cursors),
            words.ATOM_COUNT: len(positive),
            words.TREE_COUNT: len(places),
            words.LEVEL_LIST: address(levels),
            words.CURSOR_LIST: address(described),
            words.ATOM_LIST: address(atoms),
            words.TREE_LIST: address(described_trees),
            words.CONDITION_LIST: address(conditions),
            words.BINDING: address(self._words(n)),
            words.RANGES: address(self._words(4 * n * n)),
            words.KEY_SCRATCH: address(self._words(n + 1)),
            words.STACK: address(self._words(STACK_WORDS)),
        }
        for word, value in counts.items():
            self._rule[word] = value
        for side in (words.OLD, words.NEW):
            self._rule[words.STEP_LIST + side] = self._buffer(words.STEP_WORDS)
            self._rule[words.DERIVED + side] = self._buffer(n + 1)
        trees = [*self.trees.values(), *self.indices.values()]
        self._free = weakref.finalize(self, _free, trees, self._buffers, self._blocks)
        self._begin_empty()

    def _conditions(self, rule: Rule) -> Codes:
        """The words of all conditions, level by level."""
        found = [condition for level in rule.levels for condition in level.conditions]
        compiled = compile_conditions([c for c in found if comparison_of(c) is None], rule.order)
        addresses = iter(compiled.addresses)
        described = self._words(words.CONDITION_WORDS * len(found))
        for i, condition in enumerate(found):
            one = comparison_of(condition)
            at = i * words.CONDITION_WORDS
            if one is None:
                described[at + words.SIGN] = filters.OWN
                described[at + words.FUNCTION] = next(addresses)
                continue
            described[at + words.SIGN] = _sign(one)
            described[at + words.LEFT] = rule.order.index(one.left)
            described[at + words.RIGHT] = rule.order.index(one.right)
        constants = self._words(len(compiled.constants))
        for i, text in enumerate(compiled.constants):
            assert self._dictionary is not None, "strings need a dictionary"
            constants[i] = self._dictionary.pin(text)
        state = self._words(FIRST_TABLE)
        state[STATUS] = address(self._words(STATUS_WORDS))
        state[CONSTANTS] = address(constants)
        self._rule[words.CONDITION_STATE] = address(state)
        return described

    def _describe(self, cursor: Codes, number: int, turn: int, of: Cursor, tree: int) -> None:
        """Write the words of a cursor, and allocate its buffers."""
        places = self._words(max(number, 1))
        places[:number] = (*of.above, *of.beside)
        cursor[words.LEVEL_NUMBER] = number
        cursor[words.ATOM] = of.atom
        cursor[words.TREE] = tree
        cursor[words.DEPTH] = of.depth - 1
        cursor[words.TURN] = turn
        cursor[words.KEPT] = int(of.kept)
        cursor[words.POINTED] = int(of.pointed)
        cursor[words.ABOVE] = len(of.above)
        cursor[words.BESIDE] = len(of.beside)
        cursor[words.PLACES] = address(places)
        if of.kept:
            key = number + 1
            index = OrderedTree(key, PAYLOAD, folds=(Fold(GREATEST, key),))
            self.indices[number, of.atom] = index
            cursor[words.INDEX] = index.handle
            cursor[words.PENDING] = self._buffer(key + PAYLOAD + 1)
            cursor[words.FOUND_RECORDS] = self._buffer(key + PAYLOAD + 1)

    def _begin_empty(self) -> None:
        """Record the trace over empty relations: it opens the iterators of the first variable, at their ends."""
        n = len(self.rule.levels[0].cursors)
        self._rule[words.TRACE] = self._rule[words.EDITS] = n
        self._rule[words.OPERATIONS] = n
        for cursor in self.rule.levels[0].cursors:
            if cursor.kept:
                row = [np.array([word], np.int64) for word in (words.LEAST, words.MOST, words.START, words.LEAST)]
                self.indices[0, cursor.atom].apply(row)
                self._rule[words.RECORDED] += 1

    def apply(self, edits: Edits) -> tuple[Codes, Codes]:
        """Apply edits of the relations, and maintain the trace. Returns the erased and the inserted derivations, shape
        (n, variables + 1), with the product of multiplicities last; valid until the next batch. See ``failure``."""
        handle = address(self._rule)
        if keep_version(handle) == 0:
            raise OutOfMemory("memory ran out while a join stored its state before the batch")
        for (relation, order), tree in self.trees.items():
            if relation in edits:
                columns, more = edits[relation]
                if len(more):
                    tree.apply([*(columns[i] for i in order), more])
        self._rule[words.FAILURE] = 0
        maintain(handle)
        if self._rule[words.OUT_OF_MEMORY]:
            raise OutOfMemory("memory ran out while a join was maintained; the view must be backfilled")
        return self._derived(words.OLD), self._derived(words.NEW)

    def _derived(self, side: int) -> Codes:
        buffer = int(self._rule[words.DERIVED + side])
        count = load(buffer, buffers.COUNT)
        width = len(self.rule.order) + 1
        if count == 0:
            return np.empty((0, width), np.int64)
        return words_at(load(buffer, buffers.ROWS), count, width)

    @property
    def failure(self) -> int:
        """The error of the last batch, a key of ``payload.PAYLOAD_ERRORS`` if a product does not fit 64 bits, else 0.
        Undoing the batch restores the state."""
        return int(self._rule[words.FAILURE])

    @property
    def held(self) -> int:
        """The number of stored intervals."""
        return sum(len(index) for index in self.indices.values())

    @property
    def bytes(self) -> int:
        """Bytes of tries and sensitivity indices."""
        return sum(tree.bytes for tree in (*self.trees.values(), *self.indices.values()))

    def sizes(self) -> dict[str, tuple[int, int]]:
        """Rows and bytes of tries and of sensitivity indices, by a name of each."""
        found = {}
        for (name, order), tree in self.trees.items():
            atom, _ = next(
                (a, o) for a, o in zip(self.rule.atoms, self._orders, strict=True) if (a.relation, o) == (name, order)
            )
            found[f"trie of {name} by {', '.join(atom.variables[i] for i in order)}"] = (len(tree), tree.bytes)
        for (number, atom_number), index in self.indices.items():
            name = f"intervals of {self.rule.atoms[atom_number]} at {self.rule.order[number]}"
            found[name] = (len(index), index.bytes)
        return found

    @property
    def operations(self) -> int:
        """The number of operations of iterators so far."""
        return int(self._rule[words.OPERATIONS])

    @property
    def counters(self) -> TraceCounters:
        names = TraceCounters.__dataclass_fields__
        return TraceCounters(**{name: int(self._rule[getattr(words, name.upper())]) for name in names})

    def close(self) -> None:
        """Free all memory; the rule must not be used any more."""
        self._free()

    def _words(self, count: int) -> Codes:
        array = np.zeros(max(count, 1), np.int64)
        self._arrays.append(array)
        return array

    def _buffer(self, width: int) -> int:
        buffer = self._made(buffers.new_buffer(width))
        self._buffers.append(buffer)
        return buffer

    def _block(self, made: int) -> int:
        self._blocks.append(self._made(made))
        return made

    def _made(self, handle: int) -> int:
        if handle == 0:
            raise OutOfMemory("memory ran out while a join was prepared")
        return handle


def _sign(one: Comparison) -> int:
    if one.null_safe:
        return _NULL_SAFE[one.sign]
    return _OF_FLOATS[one.sign] if one.floats else _SIGNS[one.sign]


def _free(trees: list[OrderedTree], made: list[int], blocks: list[int]) -> None:
    for tree in trees:
        tree.close()
    for buffer in made:
        buffers.free_buffer(buffer)
    for block in blocks:
        release(block)
