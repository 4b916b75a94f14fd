"""Finds the class of a query for the planner and EXPLAIN, and says why the query is in no better class."""

from __future__ import annotations

from fractions import Fraction

from freshviews.query.acyclic import gyo
from freshviews.query.dependencies import FD, reduct
from freshviews.query.free_connex import is_free_connex
from freshviews.query.hierarchical import (
    buried_free,
    crossing_pair,
    delta_rank,
    is_hierarchical,
    is_q_hierarchical,
)
from freshviews.query.hypergraph import Edge, Hypergraph, hypergraph, signature
from freshviews.query.order_search import Space, least_static_width
from freshviews.query.query import Query
from freshviews.query.variable_order import best_order, dynamic_width
from freshviews.records import dataclass


@dataclass(frozen=True)
class QueryClass:
    """``delta``: the i of delta_i-hierarchical, None if the query is not hierarchical. The widths are the least of any
    free-top variable order, under the dependencies; upper bounds if ``exact`` is False. ``reason``: why the query is
    not in the next better class, or why it is in the best one."""

    acyclic: bool
    free_connex: bool
    hierarchical: bool
    q_hierarchical: bool
    q_hierarchical_under_keys: bool
    delta: int | None
    static_width: Fraction
    dynamic_width: Fraction
    reason: str
    exact: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """The most specific classes; those that a named class implies are left out."""
        if self.q_hierarchical:
            return ("q-hierarchical",)
        found = ["q-hierarchical under its keys"] if self.q_hierarchical_under_keys else []
        if self.delta is not None:
            found.append(f"delta_{self.delta}-hierarchical")
        if self.free_connex:
            found.append("free-connex")
        elif self.acyclic:
            found.append("acyclic")
        return tuple(found) or ("cyclic",)

    def __str__(self) -> str:
        most = "" if self.exact else "at most "
        return (
            f"{', '.join(self.names)} (static width {most}{self.static_width}, "
            f"dynamic width {most}{self.dynamic_width}): {self.reason}"
        )


def classify(query: Query, dependencies: tuple[FD, ...] = ()) -> QueryClass:
    """Classify a query; ``dependencies`` affect ``q_hierarchical_under_keys`` and the widths.

    The theory assumes dependencies that every relation obeys. A key is obeyed by one relation, so a q-hierarchical
    reduct is not enough: in Q(b, c, e) = R(e, c), S(b, e), T(c, e, b) with e a key of S, a row of R joins all rows of T
    with its e and c. The dynamic width, which counts a dependency only below its atom, must be 0 as well.
    """
    graph = hypergraph(query)
    reduced = reduct(graph, dependencies)
    order = best_order(query, True, dependencies)
    dynamic = dynamic_width(order, query, dependencies)
    spanning = tuple(Edge(f"factor {i}", factor) for i, factor in enumerate(graph.spanning))
    return QueryClass(
        acyclic=gyo((*graph.edges, *spanning)).acyclic,
        free_connex=is_free_connex(graph),
        hierarchical=is_hierarchical(graph),
        q_hierarchical=is_q_hierarchical(graph),
        q_hierarchical_under_keys=is_q_hierarchical(reduced) and dynamic == 0,
        delta=delta_rank(graph),
        static_width=least_static_width(Space(graph, dependencies, True)),
        dynamic_width=dynamic,
        reason=_reason(graph, reduced if dynamic == 0 else graph, dependencies),
        exact=order.exact,
    )


def _reason(graph: Hypergraph, reduced: Hypergraph, dependencies: tuple[FD, ...]) -> str:
    if is_q_hierarchical(graph):
        return "the atoms of any two variables nest or are disjoint, and free variables dominate bound ones"
    if is_q_hierarchical(reduced):
        rules = "; ".join(dict.fromkeys(map(str, dependencies)))
        atoms = ", ".join(signature(edge, graph) for edge in reduced.edges)
        return f"under {rules} it is maintained as {atoms}"
    buried, crossing = buried_free(graph), crossing_pair(graph)
    if is_hierarchical(graph) and buried is not None:
        free, bound = buried
        return f"bound {bound} dominates free {free}"
    left = gyo(graph.edges).left
    if len(left) > 1:
        return "no join tree: " + ", ".join(signature(edge, graph) for edge in left) + " form a cycle"
    if graph.spanning:
        return f"a condition or lift over {', '.join(graph.ordered(graph.spanning[0]))} spans atoms"
    if not is_free_connex(graph):
        return f"the free variables {', '.join(graph.ordered(graph.free))} are not connected in a join tree"
    assert crossing is not None  # else hierarchical, without a buried free variable: q-hierarchical
    one, other = crossing
    return f"the atoms of {one} and {other} overlap but do not nest"
