"""Splits a block with grouping sets into ordinary blocks, one per set."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from freshviews.expr.nodes import Call, Column, Expr, Literal
from freshviews.expr.ops import OPS
from freshviews.query.block import SET, Block, DistinctAggregate
from freshviews.query.query import Atom, Query
from freshviews.types import BIGINT

_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


def each(block: Block) -> tuple[Block, ...]:
    """The block of each grouping set, in order; their rows together are the rows of the block. Without sets: the block
    itself.

    The queries of such a block have as free variables those of the set and the arguments of distinct aggregates. In
    expressions, SET is the set's position, and variables outside the set are NULL.
    """
    return tuple(_of_set(block, i) for i in range(len(block.sets))) if block.sets else (block,)


def in_each(block: Block) -> tuple[str, ...]:
    """The free variables that every grouping set has."""
    return tuple(v for v in block.query.free if all(v in one for one in block.sets))


def _of_set(block: Block, position: int) -> Block:
    chosen, every = block.sets[position], block.query.free

    def distinct(one: DistinctAggregate) -> DistinctAggregate:
        return replace(one, query=_restricted(one.query, (*chosen, *one.query.free[len(every) :])))

    def at_set(expr: Expr) -> Expr:
        return _at_set(expr, position, frozenset(every).difference(chosen))

    return replace(
        block,
        query=_restricted(block.query, chosen),
        distinct=tuple(map(distinct, block.distinct)),
        outputs=tuple(replace(one, expr=at_set(one.expr)) for one in block.outputs),
        having=None if block.having is None else at_set(block.having),
        sets=(),
    )


def _restricted(query: Query, free: Sequence[str]) -> Query:
    """The query with these free variables. A variable that an atom had only because it was free is removed."""
    kept = {*free, *(v for factor in query.factors for v in factor), *(v for a in query.negated for v in a.variables)}
    homes = [v for atom in query.atoms for v in set(atom.variables)]

    def bare(atom: Atom) -> Atom:
        places = [i for i, v in enumerate(atom.variables) if v in kept or homes.count(v) > 1]
        return replace(
            atom,
            variables=tuple(atom.variables[i] for i in places),
            columns=tuple(atom.columns[i] for i in places),
        )

    return replace(query, free=tuple(free), atoms=tuple(map(bare, query.atoms)))


def _at_set(expr: Expr, position: int, absent: frozenset[str]) -> Expr:
    """The expression in a row of a set; constant parts become literals."""
    if isinstance(expr, Column):
        if expr.name == SET:
            return Literal(position, BIGINT)
        return Literal(None, expr.type) if expr.name in absent else expr
    if isinstance(expr, Literal):
        return expr
    if expr.op == "case":
        return _case(expr, position, absent)
    args = tuple(_at_set(arg, position, absent) for arg in expr.args)
    return expr if args == expr.args else _folded(replace(expr, args=args))


def _case(expr: Call, position: int, absent: frozenset[str]) -> Expr:
    """A CASE without branches that cannot be taken; it ends at a branch that must be."""
    *branches, last = (_at_set(arg, position, absent) for arg in expr.args)
    args: list[Expr] = []
    for test, value in zip(branches[::2], branches[1::2], strict=True):
        if not isinstance(test, Literal):
            args += [test, value]
        elif test.value:
            last = value
            break
    if not args:
        return replace(last, type=expr.type)
    return replace(expr, args=(*args, last), nullable=any(one.nullable for one in (*args[1::2], last)))


def _folded(call: Call) -> Expr:
    """The call, or its literal value if it compares positions of sets or tests NULL."""
    op, args = call.op, call.args
    constants = [arg.value for arg in args if isinstance(arg, Literal)]
    if OPS[op].null == "strict" and None in constants:
        return Literal(None, call.type)
    if op in ("is_null", "is_not_null") and constants:
        return Literal((constants[0] is None) == (op == "is_null"), call.type)
    if op in ("and", "or") and constants:
        return _joined(call, constants, op == "or")
    if len(constants) == len(args) and op in _COMPARED and all(arg.type.is_integer for arg in args):
        return Literal(_COMPARED[op](*constants), call.type)
    return call


def _joined(call: Call, constants: Iterable[object], decisive: bool) -> Expr:
    """AND or OR of two terms of which at least one is constant."""
    if decisive in constants:
        return Literal(decisive, call.type)
    left = [arg for arg in call.args if not (isinstance(arg, Literal) and arg.value is (not decisive))]
    return call if len(left) > 1 else left[0] if left else Literal(not decisive, call.type)
