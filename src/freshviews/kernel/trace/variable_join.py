"""Moves the cursors of a leapfrog join of one variable over ordered trees.

Also lays out the array of words that describes a rule: its variables, cursors, atoms, trees and conditions.
"""

from __future__ import annotations

from freshviews.kernel.memory.mem import add_wrapping, inlined, jit, load, store
from freshviews.kernel.output.buffer import append
from freshviews.kernel.scalar.failure import fail
from freshviews.kernel.scalar.payload import SUM_OVERFLOW, times
from freshviews.kernel.trie.iterator import iter_at_end, iter_key, iter_open, iter_room, iter_row, iter_seek_lub

LEAST = -(2**63)
MOST = 2**63 - 1

OLD = 0
NEW = 1

# Words of a rule.
LEVEL_COUNT = 0
CURSOR_COUNT = 1
ATOM_COUNT = 2
TREE_COUNT = 3
LEVEL_LIST = 4
CURSOR_LIST = 5
ATOM_LIST = 6
TREE_LIST = 7
BINDING = 8  # address of a word per level
RANGES = 9  # address of four words per level and level below; see maintain.py
STEP_LIST = 10  # buffers of the steps of two walks, old and new
DERIVED = 12  # buffers of derivations, erased and inserted
KEY_SCRATCH = 14  # room for a record
STACK = 15  # room for a stab
OUT_OF_MEMORY = 16
OPERATIONS = 17
SURGERIES = 18
MATCHED = 19
RECORDED = 20
REMOVED = 21
TRACE = 22  # length of the trace
EDITS = 23  # sum of edit distances
CONTRIBUTIONS = 24
CONDITION_LIST = 25
FAILURE = 26  # the error of the last batch's derivations, see scalar.payload; 0 for none
CONDITION_STATE = 27  # first argument of the functions of conditions; the binding is the second
RULE_WORDS = 28

# Words of a level.
FIRST_CURSOR = 0
CURSORS = 1
ASKED = 2  # buffer of contributions of the change oracle to this variable, see oracle.py
CARRIES = 3  # buffer of the codes at which payloads of rows changed
EMITTED = 4  # buffer of codes emitted under one binding, with 1 for the old walk, 2 for the new one, 3 for both
EMITTED_AT = 5
CODE = 6  # last code that a step emitted
NEGATED = 7  # number of cursors of negated atoms, after the others
FIRST_CONDITION = 8
CONDITIONS = 9
OLD_WALK = 10
WALK_WORDS = 7
LEVEL_WORDS = OLD_WALK + 2 * WALK_WORDS

# Words of a walk: its place, and its state.
CANDIDATE = 0
FIRST = 1
AGREED = 2
AHEAD = 3
SINCE = 4
STATE = 5
STARTING = 0
GOING = 1
FINISHED = 2

# Words of a cursor.
LEVEL_NUMBER = 0
ATOM = 1
TREE = 2
DEPTH = 3  # from 0
TURN = 4  # its number within its level
KEPT = 5
INDEX = 6  # the ordered tree of its records
ABOVE = 7  # number of variables above it in its trie
BESIDE = 8
PLACES = 9  # address of their levels
PENDING = 10  # buffer of records to insert into the index or delete from it
MARK = 11  # first of them that belongs to the current binding
ITERATORS = 12  # of its atom, old and new
FOUND_RECORDS = 14  # buffer of matched records
NEGATES = 15  # whether its atom is negated; then it has no iterators
POINTED = 16  # whether a change itself gives the bindings that it affects; then only runs of negated atoms are recorded
CURSOR_WORDS = 17

# Words of a condition.
SIGN = 0
LEFT = 1  # the level of a variable
RIGHT = 2
FUNCTION = 3  # of an OWN condition: the address of a C function of the state and the binding; see filters.py
CONDITION_WORDS = 4

# Words of an atom.
ATOM_ITERATORS = 0
ATOM_DEPTH = 2
ATOM_TREE = 3
ATOM_WORDS = 4

# Words of a tree.
HANDLE = 0
VERSION = 1
OLD_ROOT = 2
NEW_ROOT = 3
OPERATED = 4  # buffer of tree surgery
DELTA = 5
TREE_WORDS = 6

# Modes of a step.
FORGET = -1
LIST = 0
RECORD = 1

# Words of a listed step.
STEP_CURSOR = 0
STEP_LOW = 1
STEP_HIGH = 2
STEP_TURN = 3
STEP_SINCE = 4
STEP_WORDS = 5

START = 0
"""The turn of the place before iterators are opened."""


@inlined
def turn_of(agreed: int, first: int, ahead: int) -> int:
    """Pack the agreed cursors and the cursors that stand ahead into one word, never START."""
    return agreed + 1 + (first << 8) + (ahead << 16)


@inlined
def agreed_of(turn: int) -> int:
    """The number of agreed cursors of a turn; -1 for START."""
    return (turn & 255) - 1


@inlined
def first_of(turn: int) -> int:
    """The first cursor of a turn."""
    return (turn >> 8) & 255


@inlined
def ahead_of(turn: int) -> int:
    """The bits of the cursors that stand ahead, of a turn."""
    return turn >> 16


@inlined
def level_of(r: int, level: int) -> int:
    return load(r, LEVEL_LIST) + 8 * LEVEL_WORDS * level


@inlined
def cursor_of(r: int, number: int) -> int:
    return load(r, CURSOR_LIST) + 8 * CURSOR_WORDS * number


@inlined
def atom_of(r: int, number: int) -> int:
    return load(r, ATOM_LIST) + 8 * ATOM_WORDS * number


@inlined
def tree_of(r: int, number: int) -> int:
    return load(r, TREE_LIST) + 8 * TREE_WORDS * number


@inlined
def walk_of(r: int, level: int, side: int) -> int:
    return level_of(r, level) + 8 * (OLD_WALK + side * WALK_WORDS)


# Cursors.


@inlined
def open_cursor(c: int, side: int) -> None:
    """Open the iterator of a cursor under its codes at the depths above."""
    iter_open(load(c, ITERATORS + side), load(c, DEPTH))


@inlined
def stands_at(c: int, side: int) -> int:
    """The code where a cursor stands, or MOST at the end; ``is_at_end`` distinguishes the two."""
    it = load(c, ITERATORS + side)
    depth = load(c, DEPTH)
    return MOST if iter_at_end(it, depth) else iter_key(it, depth)


@inlined
def is_at_end(c: int, side: int) -> bool:
    """Whether a cursor is at the end."""
    return iter_at_end(load(c, ITERATORS + side), load(c, DEPTH))


@inlined
def seek_cursor(c: int, side: int, code: int) -> None:
    """Move a cursor to the least code that is not less than ``code``; it must not be past that."""
    it = load(c, ITERATORS + side)
    depth = load(c, DEPTH)
    if not iter_at_end(it, depth):
        iter_seek_lub(it, depth, code)


@jit
def open_level(r: int, level: int, side: int) -> None:
    """Open all cursors of a level under the binding above."""
    at = level_of(r, level)
    first = load(at, FIRST_CURSOR)
    for i in range(first, first + load(at, CURSORS)):
        open_cursor(cursor_of(r, i), side)


@jit
def seek_all(r: int, level: int, side: int, code: int) -> bool:
    """Seek a code with the cursors of a level until one lacks it; returns whether all have it."""
    at = level_of(r, level)
    first = load(at, FIRST_CURSOR)
    for i in range(first, first + load(at, CURSORS)):
        c = cursor_of(r, i)
        seek_cursor(c, side, code)
        if is_at_end(c, side) or stands_at(c, side) != code:
            return False
    return True


# Walks.


@inlined
def begin_walk(w: int) -> None:
    """Put a walk at the start.

    ``program.reference.incremental_trie_join.leapfrog`` defines a step and its ``Position``, here called *place*;
    ``step`` makes the steps. An array of words describes a rule, so no code is compiled for it. A rule has levels, one
    per variable. A level has cursors, one per atom with the variable. All cursors of an atom share two iterators
    (``trie.iterator``), over the old and the new version. There is one ordered tree per relation and order of columns.

    In a place, the least word stands for the start. The greatest word is a code or stands for the end (``is_at_end``).

    Negated atoms and conditions have no iterators: ``filters`` evaluates them.
    """
    store(w, CANDIDATE, LEAST)
    store(w, FIRST, 0)
    store(w, AGREED, 0)
    store(w, AHEAD, 0)
    store(w, SINCE, LEAST)
    store(w, STATE, STARTING)


@inlined
def put_at(w: int, candidate: int, agreed: int, first: int, ahead: int, since: int) -> None:
    """Put a walk at a place."""
    store(w, CANDIDATE, candidate)
    store(w, FIRST, first)
    store(w, AGREED, agreed)
    store(w, AHEAD, ahead)
    store(w, SINCE, since)
    store(w, STATE, GOING)


@inlined
def are_met(a: int, b: int) -> bool:
    """Whether two walks are at the same place."""
    if load(a, STATE) != load(b, STATE):
        return False
    if load(a, STATE) == FINISHED:
        return True
    return (
        load(a, CANDIDATE) == load(b, CANDIDATE)
        and load(a, AGREED) == load(b, AGREED)
        and load(a, FIRST) == load(b, FIRST)
        and load(a, AHEAD) == load(b, AHEAD)
        and load(a, SINCE) == load(b, SINCE)
    )


@inlined
def is_not_after(a: int, b: int) -> bool:
    """Whether the place of one walk does not come after that of another."""
    if load(a, STATE) == FINISHED or load(b, STATE) == FINISHED:
        return load(b, STATE) == FINISHED
    if load(a, CANDIDATE) != load(b, CANDIDATE):
        return load(a, CANDIDATE) < load(b, CANDIDATE)
    return load(a, AGREED) <= load(b, AGREED)


@inlined
def go_behind(w: int, code: int) -> None:
    """Continue a walk after a code."""
    if code == MOST:
        store(w, STATE, FINISHED)
    else:
        put_at(w, code + 1, 0, 0, 0, LEAST)


@jit
def derive(r: int, side: int) -> None:
    """Emit a derivation: the binding, and the product of the payloads of the iterators' rows.

    If the product does not fit a word, FAILURE is set, and the product is modulo 2^64.
    """
    n = load(r, LEVEL_COUNT)
    status = r + 8 * FAILURE
    product = 1
    for i in range(load(r, ATOM_COUNT)):
        atom = atom_of(r, i)
        it = load(atom, ATOM_ITERATORS + side)
        k = load(atom, ATOM_DEPTH)
        product = times(product, load(iter_row(it, k - 1), k * iter_room(it, k - 1)), status)
    if product == LEAST:
        fail(status, SUM_OVERFLOW)
    row = append(load(r, DERIVED + side))
    binding = load(r, BINDING)
    for i in range(n):
        store(row, i, load(binding, i))
    store(row, n, product)


@inlined
def add_to_counter(r: int, word: int, more: int) -> None:
    """Add to a counter of the rule."""
    store(r, word, add_wrapping(load(r, word), more))
