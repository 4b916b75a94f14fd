"""Finds the statements of a program that intersect two slices. A slice has the rows of a view with given values.

For these statements, indexes of the views store digests (hashes of values), which are compared instead of rows.
"""

from __future__ import annotations

from freshviews.program.program import Program
from freshviews.program.statements import Lookup, Loop, Smaller
from freshviews.program.structure import visit


def open_position(loop: Loop) -> int:
    """The key position that a loop binds, if it is exactly one; else -1."""
    left_over = [i for i in range(len(loop.key)) if i not in loop.bound]
    return left_over[0] if loop.bound and not loop.among and len(left_over) == 1 else -1


def is_intersection(statement: Smaller) -> bool:
    """True if the body of each loop is a lookup in the other slice, by the same open variable."""
    left, right = statement.left, statement.right
    if open_position(left) < 0 or open_position(right) < 0:
        return False
    if left.key[open_position(left)] != right.key[open_position(right)]:
        return False
    return _looks_up(left, right) and _looks_up(right, left)


def _looks_up(loop: Loop, other: Loop) -> bool:
    first = loop.body[0]
    return (
        len(loop.body) == 1
        and isinstance(first, Lookup)
        and (first.view, first.key) == (other.view, other.key)
        and not first.otherwise
    )


def digested(program: Program) -> dict[str, frozenset[tuple[int, ...]]]:
    """By view, the indexes whose slices some statement of the program intersects."""
    found: dict[str, set[tuple[int, ...]]] = {}
    for body in program.bodies:
        for statement in visit(body):
            if isinstance(statement, Smaller) and is_intersection(statement):
                for loop in (statement.left, statement.right):
                    found.setdefault(loop.view, set()).add(loop.bound)
    return {view: frozenset(indexes) for view, indexes in found.items()}
