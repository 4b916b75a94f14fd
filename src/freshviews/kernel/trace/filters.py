"""Tests a code that all iterators of a variable have found, the *candidate*: by conditions, then by negated atoms.

A negated atom is a NOT EXISTS. The join drops a candidate that fails a test.
"""

from __future__ import annotations

from freshviews.kernel.btree.tree import find_row
from freshviews.kernel.memory.mem import inlined, jit, load, store
from freshviews.kernel.memory.triggers import call_condition
from freshviews.kernel.trace.variable_join import (
    ABOVE,
    BINDING,
    CONDITION_LIST,
    CONDITION_STATE,
    CONDITION_WORDS,
    CONDITIONS,
    FIRST_CONDITION,
    FUNCTION,
    KEY_SCRATCH,
    LEAST,
    LEFT,
    MOST,
    OLD_ROOT,
    PLACES,
    RIGHT,
    SIGN,
    TREE,
    level_of,
    tree_of,
)
from freshviews.kernel.trie.complement import run_length

# Signs of a condition. NULL satisfies SAME and DISTINCT only.
EQUAL = 0
DIFFERENT = 1
LESS = 2
LESS_OR_EQUAL = 3
LESS_FLOAT = 4
LESS_OR_EQUAL_FLOAT = 5
SAME = 6
DISTINCT = 7
OWN = 8
"""The sign of a condition that is a C function."""


@inlined
def write_row(r: int, c: int, code: int) -> int:
    """Write the row of a negated atom under the current binding, with ``code`` last; returns its address."""
    key = load(r, KEY_SCRATCH)
    binding = load(r, BINDING)
    places = load(c, PLACES)
    above = load(c, ABOVE)
    for i in range(above):
        store(key, i, load(binding, load(places, i)))
    store(key, above, code)
    return key


@jit
def is_there(r: int, c: int, side: int, code: int) -> bool:
    """Whether a version has the row of a negated atom under the current binding, with ``code`` last."""
    key = write_row(r, c, code)
    return find_row(load(tree_of(r, load(c, TREE)), OLD_ROOT + side), load(c, ABOVE) + 1, key) != 0


@jit
def run_from(r: int, c: int, side: int, code: int) -> int:
    """Number of consecutive codes from ``code`` on that a negated atom has under the current binding in a version."""
    key = write_row(r, c, code)
    return run_length(load(tree_of(r, load(c, TREE)), OLD_ROOT + side), load(c, ABOVE) + 1, key)


@jit
def all_hold(r: int, number: int, code: int) -> bool:
    """Whether all conditions that a code of a level completes are true."""
    level = level_of(r, number)
    binding = load(r, BINDING)
    first = load(level, FIRST_CONDITION)
    for i in range(first, first + load(level, CONDITIONS)):
        condition = load(r, CONDITION_LIST) + 8 * CONDITION_WORDS * i
        if load(condition, SIGN) == OWN:
            store(binding, number, code)
            if call_condition(load(condition, FUNCTION), load(r, CONDITION_STATE), binding) == 0:
                return False
            continue
        left = load(condition, LEFT)
        right = load(condition, RIGHT)
        a = code if left == number else load(binding, left)
        b = code if right == number else load(binding, right)
        if not holds(load(condition, SIGN), a, b):
            return False
    return True


@inlined
def holds(sign: int, a: int, b: int) -> bool:
    """Whether two codes satisfy a comparison.

    A condition compares the codes of two variables, or is a function of the codes bound so far. Its result for given
    codes cannot change, so the trace does not record it. A negated atom is read through its complement: the codes that
    its last column lacks. A seek of the complement returns the first such code from the candidate on. If this code is
    the candidate, the atom does not exclude it. The result of the seek depends on all codes from the candidate to the
    returned code.
    """
    if sign == SAME:
        return a == b
    if sign == DISTINCT:
        return a != b
    if a == LEAST or b == LEAST:
        return False
    if sign == EQUAL:
        return a == b
    if sign == DIFFERENT:
        return a != b
    if sign == LESS:
        return a < b
    if sign == LESS_OR_EQUAL:
        return a <= b
    if sign == LESS_FLOAT:
        return place_of(a) < place_of(b)
    return place_of(a) <= place_of(b)


@inlined
def place_of(code: int) -> int:
    """A word that orders doubles as integers, from their bits: negative ones are reversed."""
    return code if code >= 0 else code ^ MOST
