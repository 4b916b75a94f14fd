"""Lists the strategies, in the order in which the planner prefers them."""

from __future__ import annotations

from freshviews.plan.crown import crown
from freshviews.plan.crown.free_connex_query import prepared
from freshviews.plan.delta import change_propagation, first_order, higher_order, recompute, view_tree
from freshviews.plan.eps import ivm_eps
from freshviews.plan.ordered import spans, threshold, top_k
from freshviews.plan.strategy import Necessity, Preference, Strategy
from freshviews.plan.trie import incremental_trie_join, trie_join
from freshviews.query.query import Query

STRATEGIES: dict[str, Strategy] = {
    strategy.name: strategy
    for strategy in (
        recompute.STRATEGY,
        first_order.STRATEGY,
        change_propagation.STRATEGY,
        higher_order.STRATEGY,
        view_tree.STRATEGY,
        crown.STRATEGY,
        ivm_eps.SQUARE,
        ivm_eps.LINEAR,
        trie_join.STRATEGY,
        incremental_trie_join.STRATEGY,
    )
}
"""The strategies that a user may name, by name."""


def _other_bags(query: Query) -> tuple[tuple[str, str], ...]:
    """The other strategies that a user may name for the bags. See ``_other_strategies``."""
    return (("instead", f"'freshviews.bag_strategy' {_BY_TRACE}"),)


def _other_strategies(query: Query) -> tuple[tuple[str, str], ...]:
    """The other strategies that a user may name for a cyclic query. None of them has the better bound, and each is
    faster on some streams (docs/trie-join.md), so the planner does not choose them by itself."""
    found = [f"'freshviews.strategy' {_BY_TRACE}"]
    if len(prepared(query).query.atoms) > 1:
        found.insert(0, "'freshviews.strategy' = 'crown': stores the rows of each bag; an update never joins bags")
    return (("instead", "\n".join(found)),)


_BY_TRACE = "= 'incremental_trie_join': stores the join's trace; an update repeats only the part that changes"

NECESSITIES = (
    Necessity(top_k.is_limited, top_k.STRATEGY),
    Necessity(spans.is_spanned, spans.STRATEGY),
    Necessity(threshold.selects, threshold.STRATEGY),
)
"""Kinds of blocks that one strategy alone can maintain."""

PREFERENCES = (
    Preference(ivm_eps.lists_by_exponent, ivm_eps.SQUARE),
    Preference(crown.enumerates_rows, crown.STRATEGY),
    Preference(crown.enumerates_groups, crown.STRATEGY),
    Preference(view_tree.stays_factorised, view_tree.FACTORISED),
    Preference(first_order.looks_all_up, first_order.STRATEGY),
    Preference(first_order.shares_lookups, first_order.STRATEGY),
    Preference(first_order.holds_rows_once, first_order.STRATEGY),
    Preference(view_tree.serves_acyclic, view_tree.STRATEGY),
    Preference(crown.joins_bags, crown.STRATEGY, _other_bags),
    Preference(ivm_eps.halves_updates, ivm_eps.LINEAR, _other_strategies),
    Preference(first_order.takes_cyclic, first_order.STRATEGY, _other_strategies),
)
"""The first whose condition holds is taken. Only cyclic queries reach those after ``serves_acyclic``."""
