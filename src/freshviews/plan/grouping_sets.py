"""Makes one program for all grouping sets of a query, such as those of ROLLUP. One join serves the results of all sets.

ROLLUP (a), with the result ``Q``::

    Q(set, a) -> count

    on R(a, b) += m:
        let set = 0
        Q[set, a] += m
        let set = 1
        let null = NULL
        Q[set, null] += m

The section "Levels of detail" of `docs/trie-join.md` names the source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from freshviews.expr.nodes import Literal
from freshviews.program.program import Program
from freshviews.program.results import Held
from freshviews.program.rewrite import with_statements
from freshviews.program.statements import Add, Body, Let, Statement
from freshviews.program.structure import uses, views_in, visit
from freshviews.query.block import SET, Block
from freshviews.records import dataclass
from freshviews.types import BIGINT

NULL = "@null"
"""The variable that is NULL and stands for those that a set does not group by. No column has its name."""


@dataclass(frozen=True)
class Level:
    """A grouping set: its position (None for a block without sets), and the positions of the free variables that it
    groups by."""

    position: int | None
    grouped: tuple[int, ...]

    def key(self, group: tuple[str, ...]) -> tuple[str, ...]:
        """The key of its row; ``group`` names the free variables."""
        if self.position is None:
            return group
        return (SET, *(name if i in self.grouped else NULL for i, name in enumerate(group)))


def for_each(
    levels: tuple[Level, ...], group: tuple[str, ...], body: Callable[[Level, tuple[str, ...]], Iterable[Statement]]
) -> Iterator[Statement]:
    """The statements of ``body`` for each level, with the key of its row. ``group`` names the free variables. SET is
    bound before each, and NULL before the first level that lacks a variable."""
    null: tuple[Let, ...] = (Let(NULL, Literal(None, BIGINT)),)
    for level in levels:
        if level.position is not None:
            yield Let(SET, Literal(level.position, BIGINT))
        key = level.key(group)
        if NULL in key:
            yield from null
            null = ()
        yield from body(level, key)


def levels_of(block: Block) -> tuple[Level, ...]:
    """The sets of a block, or its one grouping."""
    free = block.query.free
    if not block.sets:
        return (Level(None, tuple(range(len(free)))),)
    return tuple(Level(i, tuple(map(free.index, one))) for i, one in enumerate(block.sets))


def by_sets(program: Program, block: Block) -> Program:
    """The program of all sets, from that of the finest grouping, which only adds to its result.

    The strategy makes the program of the finest grouping, by all free variables. Each addition to its result becomes
    one addition per set. Variables that a set does not group by are NULL in its rows.
    """
    assert isinstance(program.result, Held)
    finest = program.view(program.result.view)
    levels = levels_of(block)

    def change(statement: Statement) -> Body:
        if not isinstance(statement, Add) or statement.view != finest.name:
            return (statement,)
        assert not (statement.appear or statement.vanish or statement.stay or statement.alias)
        return tuple(for_each(levels, statement.key, lambda _, key: (replace(statement, key=key),)))

    made = with_statements(program, change)
    assert finest.name not in _read_views(made), f"{program.strategy} does more than add to its result"
    result = replace(finest, key=(SET, *finest.key))
    shown = ", ".join(f"({', '.join(one)})" for one in block.sets)
    return replace(
        made,
        free=block.free,
        views=tuple(result if view.name == finest.name else view for view in program.views),
        bounds=(*program.bounds, ("sets", f"{shown}; a derivation is in each of them")),
    )


def _read_views(program: Program) -> Iterator[str]:
    """The views that are read, or whose rows move between parts; without views that are only added to."""
    yield from (trie.view for trie in program.upkeep.tries)
    for statement in visit((*(s for t in program.triggers for s in t.body), *program.upkeep.statements)):
        yield from uses(statement).views
    if program.balancing is not None:
        yield from (view for body in program.balancing.bodies for s in visit(body) for view in views_in(s))


@dataclass(frozen=True)
class Store:
    """An ordered store of argument values by group. ``group``: positions of the free variables, in the order of the
    key. ``whole``: levels that group by all of them; ``shorter``: levels that group by a prefix. ``coarser``: stores
    that count its rows."""

    group: tuple[int, ...]
    whole: tuple[Level, ...]
    shorter: tuple[Level, ...]
    coarser: tuple[Store, ...]


def below_of(store: Store) -> Iterator[Store]:
    """The stores below one, finer ones first."""
    for one in store.coarser:
        yield one
        yield from below_of(one)


@dataclass
class _Chain:
    """A store under construction: its sets, the finest first, each a subset of the one before; and the chain whose rows
    it counts."""

    sets: list[tuple[int, ...]]
    levels: list[Level]
    of: _Chain | None = None

    def store(self, chains: list[_Chain]) -> Store:
        group = list[int]()
        for one in reversed(self.sets):
            group += [i for i in one if i not in group]
        whole = tuple(one for one in self.levels if set(one.grouped) == set(group))
        shorter = tuple(one for one in self.levels if one not in whole)
        coarser = tuple(chain.store(chains) for chain in chains if chain.of is self)
        return Store(tuple(group), whole, shorter, coarser)


def stores_of(levels: tuple[Level, ...], free: int, apart: bool) -> Store:
    """The store of the finest group, of ``free`` variables, with the stores below it. ``apart``: each set has its own.

    A set reads the store of the finest group if its variables are a prefix of that group; otherwise it joins the first
    chain that ends in a finer set. A new chain counts the rows of the smallest group that has all its variables.

    The finest grouping stores the argument values of aggregates (``plan.assemble``). A set whose variables are a prefix
    of the group, as in ROLLUP, reads that store by a fold over all rows with the prefix. Other sets read a store
    ``D_k[set, value]`` that counts the rows of a finer store. Sets that form a chain (each is a subset of the one
    before) share a store.

    In two cases every grouping set has its own store. COUNT(DISTINCT x), SUM(DISTINCT x) and aggregates of pairs
    (MIN_BY) must see each value once per group of the grouping set. If multiplicities may be negative, the counts of a
    value in several groups may cancel in a coarser set.
    """
    finest = tuple(range(free))
    chains = [_Chain([finest], [])]
    for level in sorted(levels, key=lambda one: -len(one.grouped)):
        mine = frozenset(level.grouped)

        def serves(chain: _Chain, level: Level = level, mine: frozenset[int] = mine) -> bool:
            if chain is chains[0]:
                begins = level.grouped == finest[: len(level.grouped)]
                return begins and (not apart or len(mine) == free)
            return mine == set(chain.sets[0]) if apart else mine <= set(chain.sets[-1])

        found = next((chain for chain in chains if serves(chain)), None)
        if found is None:
            finer = [chain for chain in chains if mine <= set(chain.sets[0])]
            found = _Chain([], [], min(finer, key=lambda chain: len(chain.sets[0])))
            chains.append(found)
        if found is not chains[0] and level.grouped not in found.sets:
            found.sets.append(level.grouped)
        found.levels.append(level)
    return chains[0].store(chains)
