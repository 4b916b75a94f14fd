"""Writes the lines of EXPLAIN about a CROWN plan: its bounds, its join tree and its bags."""

from __future__ import annotations

from freshviews.plan.crown.alike import Kept
from freshviews.plan.crown.free_connex_query import Prepared, graph_of
from freshviews.program.program import Program
from freshviews.query.acyclic import JoinTree, with_children
from freshviews.query.join_trees import MOST_CHOICES, compares_all
from freshviews.query.query import Atom


def bounds_of(
    made: Prepared, tree: JoinTree, kept: tuple[tuple[Kept, Program], ...], stored: bool, named: bool
) -> tuple[tuple[str, str], ...]:
    """Pairs of a title and a text. ``kept``: queries of bags, each with its program. ``stored``: the result is held;
    ``named``: the user has named the tree."""
    query = made.query
    height = max(part.height for part in _propagating(tree, made.free))
    update = "O(1)" if height <= 1 else "O(lambda)"
    if height == 2:
        update += ", O(1) if rows leave in the order in which they came"
    if made.bags:
        update = f"{update} per change of {', '.join(made.bags)}"
    extended = [v for v in query.variables if v in made.free - frozenset(query.free)]
    delay = f"O(1) between rows that also have {', '.join(extended)}" if extended else "O(1)"
    space = "O(N + |result|)" if stored else "O(N)"
    greedy = not named and not compares_all(graph_of(query, made.free))
    bags = "\n".join(_bag(made, name, one, program) for one, program in kept for name in one.read)
    return (
        ("update", update + (" + |change|" if stored else "")),
        ("delay", delay + (", before conditions" if query.conditions else "")),
        ("space", space + (", N with the rows of bags" if made.bags else "")),
        ("tree", str(tree)),
        *((("trees", f"greedy: the best of a few; more than {MOST_CHOICES:,} exist"),) if greedy else ()),
        *((("bags", bags),) if bags else ()),
        *((("bags", "greedy: their width may not be the least"),) if made.greedy else ()),
    )


def _propagating(tree: JoinTree, free: frozenset[str]) -> list[JoinTree]:
    """The parts of a tree within which updates propagate. An update of an optional node below one in the output changes
    the result, and nothing above."""
    own, others = list[JoinTree](), list[JoinTree]()
    for child in tree.children:
        first, *below = _propagating(child, free)
        others += below
        (others if child.mark == "?" and tree.variables <= free else own).append(first)
    return [with_children(tree, own), *others]


def _bag(made: Prepared, name: str, kept: Kept, program: Program) -> str:
    """A line for a bag: its atoms, and the strategy that maintains it or the bag that it shares a program with."""
    bag = made.bags[name]
    home = " * ".join(_drawn(atom.name, atom) for atom in bag.query.atoms if atom.name not in bag.guards)
    guards = ", ".join(_drawn(bag.guards[a.name].name, a) for a in bag.query.atoms if a.name in bag.guards)
    members = " where ".join(part for part in (home, guards) if part)
    first = next(iter(kept.read))
    by = f"as {first}"
    if name == first:
        orders = (", ".join(one.rule.order) for one in program.upkeep.joins)
        by = " in order of ".join((f"by {program.strategy}", *orders))
    return f"{name}({', '.join(bag.query.free)}) = {members}, {by}"


def _drawn(name: str, atom: Atom) -> str:
    return f"{name}({', '.join(atom.variables)})"
