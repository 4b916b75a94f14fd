"""Computes closures and reducts under functional dependencies, by which some variables of a query determine others.

The closure of some variables has all variables that they determine. The reduct of a query replaces the variables of
each atom by their closure. Keys of tables imply dependencies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from freshviews.expr.nodes import Call, Column, Expr, Literal
from freshviews.query.hypergraph import Edge, Hypergraph
from freshviews.query.query import Atom, Query
from freshviews.records import dataclass


@dataclass(frozen=True)
class FD:
    """``determinant -> dependents``. It holds in joins with ``atom``, whose rows obey it, or in every join if ``atom``
    is None."""

    determinant: tuple[str, ...]
    dependents: tuple[str, ...]
    atom: str | None = None

    def __str__(self) -> str:
        return f"{', '.join(self.determinant) or '()'} -> {', '.join(self.dependents)}"


def closure(variables: Iterable[str], dependencies: Iterable[FD]) -> frozenset[str]:
    """The variables and all variables that they determine."""
    known, rules, left = set(variables), list[FD](), list(dependencies)
    while len(left) != len(rules):
        rules, left = left, []
        for fd in rules:
            if known.issuperset(fd.determinant):
                known.update(fd.dependents)
            else:
                left.append(fd)
    return frozenset(known)


def reduct(graph: Hypergraph, dependencies: Iterable[FD]) -> Hypergraph:
    """The graph with every edge, and the free variables, replaced by their closures.

    A bound variable that the free ones determine becomes free: enumerating it adds no result.

    The reduct extends every atom by the variables that its variables determine. Under x -> y and y -> z, the reduct of
    ``R(w, x), S(x, y), T(y, z)`` is ``R(w, x, y, z), S(x, y, z), T(y, z)``. If the reduct is q-hierarchical, the query
    has constant update time and delay (Olteanu, Huang, Koch 2009; F-IVM 2023).
    """
    rules = tuple(dependencies)
    return replace(
        graph,
        free=closure(graph.free, rules) & frozenset(graph.variables),
        edges=tuple(
            Edge(edge.name, closure(edge.variables, rules) & frozenset(graph.variables))
            for edge in graph.edges
        ),
    )


def from_keys(query: Query, keys: Mapping[str, tuple[tuple[str, ...], ...]]) -> tuple[FD, ...]:
    """The dependencies that keys imply for a query. ``keys``: per relation, its unique column sets.

    A key counts for an atom if each of its columns is a variable of the atom or is compared with a constant by a
    filter, and cannot be NULL in the atom's rows (UNIQUE allows repeated NULLs). It then determines all variables of
    the atom. Keys that determine nothing new are left out. If an optional atom has a key among its given variables, all
    given variables together determine the others: a row that agrees on the key alone may fail to match.
    """
    found: list[FD] = []
    for atom in query.atoms:
        for key in keys.get(atom.relation, ()):
            variables = _key_variables(atom, key)
            if variables is not None and atom.given is not None:
                variables = atom.given if set(variables) <= set(atom.given) else None
            rest = tuple(v for v in atom.variables if v not in variables) if variables is not None else ()
            if variables is not None and rest:
                found.append(FD(variables, rest, atom.name))
    return tuple(found)


def row_keys(
    query: Query, keys: Mapping[str, Iterable[tuple[str, ...]]], shown: frozenset[str]
) -> list[tuple[str, ...]]:
    """Sets of the variables ``shown`` that are unique in the rows of the join.

    ``keys``: per relation, sets of columns whose values, NULL included, no two rows share.
    """
    own: list[tuple[str, ...]] = []
    rules: list[FD] = []
    for atom in query.atoms:
        of_atom = (_key_variables(atom, key, nulls=True) for key in keys.get(atom.relation, ()))
        found = [variables for variables in of_atom if variables is not None]
        if not found:
            return []
        own += found
        # A row of an optional atom may be the default row: its given variables, and otherwise NULL.
        rules += [FD((*(atom.given or ()), *variables), atom.variables, atom.name) for variables in found]

    def is_key(variables: Iterable[str]) -> bool:
        return closure(variables, rules).issuperset(query.variables)

    alone = [one for one in dict.fromkeys(own) if shown.issuperset(one) and is_key(one)]
    together = tuple(v for v in query.variables if v in shown)
    if alone or not is_key(together):
        return alone
    for variable in reversed(together):
        fewer = tuple(v for v in together if v != variable)
        together = fewer if is_key(fewer) else together
    return [together]


def _key_variables(atom: Atom, key: tuple[str, ...], nulls: bool = False) -> tuple[str, ...] | None:
    """The variables of the key's columns; None if a column is missing, or may be NULL unless ``nulls`` are allowed."""
    held = {
        expr.name: variable
        for expr, variable in zip(atom.columns, atom.variables, strict=True)
        if isinstance(expr, Column)
    }
    nullable = {expr.name for expr in atom.columns if isinstance(expr, Column) and expr.nullable}
    filters = [part for condition in atom.filters for part in conjuncts(condition)]
    constant = {name for part in filters if (name := _fixed_column(part)) is not None}
    not_null = {
        part.args[0].name
        for part in filters
        if isinstance(part, Call) and part.op == "is_not_null" and isinstance(part.args[0], Column)
    }
    variables: list[str] = []
    for column in key:
        if column in constant:
            continue
        if column not in held or (column in nullable and column not in not_null and not nulls):
            return None
        variables.append(held[column])
    return tuple(dict.fromkeys(variables))


def conjuncts(expr: Expr) -> tuple[Expr, ...]:
    """The terms that AND joins."""
    if isinstance(expr, Call) and expr.op == "and":
        return tuple(part for arg in expr.args for part in conjuncts(arg))
    return (expr,)


def _fixed_column(expr: Expr) -> str | None:
    """The column that a filter compares with a constant; such a filter also excludes NULL."""
    if isinstance(expr, Call) and expr.op == "eq":
        left, right = expr.args
        if isinstance(left, Literal):
            left, right = right, left
        if isinstance(left, Column) and isinstance(right, Literal) and right.value is not None:
            return left.name
    return None
