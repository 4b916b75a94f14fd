"""Several grouping sets in one program: one join, one ordered store of argument values, results by set.

Source: Veldhuizen, Incremental Maintenance for Leapfrog Triejoin (2013), section 2.3.3: "we can reuse the intermediate
predicate", of the values of an aggregate by group, in order, "to provide aggregations at multiple levels of detail".

The strategy makes the program of the finest grouping, by all free variables. What it adds to that result is added once
for each set instead, to a result that is keyed by SET and the free variables, of which those that a set lacks are NULL.
The finest one is not held. ROLLUP (a), of which ``Q`` is the result::

    Q(set, a) -> count

    on R(a, b) += m:
        let set = 0
        Q[set, a] += m
        let set = 1
        let null = NULL
        Q[set, null] += m

Values of an argument are kept by the finest group (``plan.assemble``). Sets whose variables the group begins with, as
those of ROLLUP, read them there: what all rows below a shorter prefix come to is a fold of subtrees. For other sets
there is a store ``D_k[set, value]``, which counts the rows of a finer one, and all of a chain of sets, each within the
one before, read the same one. Where an aggregate needs each value of its set once (COUNT and SUM of distinct ones), or
pairs, every set has its own.

Where multiplicities may be negative, those of a value in several groups may cancel in a set: then every set has a store
of its own, to which each is added what is added to the finest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from freshviews.expr.nodes import Literal
from freshviews.program.program import Program
from freshviews.program.results import Held
from freshviews.program.rewrite import transform
from freshviews.program.statements import Add, Let, Statement
from freshviews.program.structure import uses, views_in, visit
from freshviews.program.upkeep import Evaluated
from freshviews.query.block import SET, Block
from freshviews.types import BIGINT

NULL = "@null"
"""The variable that is NULL in the place of those that a set lacks. No column has its name."""


@dataclass(frozen=True)
class Level:
    """A grouping set: its position, or None for a block that has none, and which free variables it groups by."""

    position: int | None
    grouped: tuple[int, ...]

    def key(self, group: tuple[str, ...]) -> tuple[str, ...]:
        """The key of its row, for names of the free variables."""
        if self.position is None:
            return group
        return (SET, *(name if i in self.grouped else NULL for i, name in enumerate(group)))


def for_each(
    levels: tuple[Level, ...], group: tuple[str, ...], body: Callable[[Level, tuple[str, ...]], Iterable[Statement]]
) -> Iterator[Statement]:
    """What is done for each level, with the key of its row; names of the free variables are given. SET is bound before,
    and NULL before the first level that lacks a variable."""
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
    """The sets of a block, or the one that it groups by."""
    free = block.query.free
    if not block.sets:
        return (Level(None, tuple(range(len(free)))),)
    return tuple(Level(i, tuple(map(free.index, one))) for i, one in enumerate(block.sets))


def by_sets(program: Program, block: Block) -> Program:
    """The program of the finest grouping, which only adds to its result, as that of all sets."""
    assert isinstance(program.result, Held)
    finest = program.view(program.result.view)
    levels = levels_of(block)

    def change(statement: Statement) -> tuple[Statement, ...]:
        if not isinstance(statement, Add) or statement.view != finest.name:
            return (statement,)
        assert not (statement.appear or statement.vanish or statement.stay or statement.alias)
        return tuple(for_each(levels, statement.key, lambda _, key: (replace(statement, key=key),)))

    triggers = tuple(replace(trigger, body=transform(trigger.body, change)) for trigger in program.triggers)
    upkeep = program.upkeep
    if isinstance(upkeep, Evaluated):
        upkeep = replace(upkeep, statements=transform(upkeep.statements, change))
    made = replace(program, triggers=triggers, upkeep=upkeep)
    assert finest.name not in _used(made), f"{program.strategy} does more than add to its result"
    result = replace(finest, key=(SET, *finest.key))
    shown = ", ".join(f"({', '.join(one)})" for one in block.sets)
    return replace(
        made,
        free=block.free,
        views=tuple(result if view.name == finest.name else view for view in program.views),
        bounds=(*program.bounds, ("sets", f"{shown}; a derivation is in each of them")),
    )


def _used(program: Program) -> Iterator[str]:
    """Views that are read, or whose rows are moved between parts; one that is added to alone is not."""
    yield from (trie.view for trie in program.upkeep.tries)
    for statement in visit((*(s for t in program.triggers for s in t.body), *program.upkeep.statements)):
        yield from uses(statement).views
    if program.balancing is not None:
        parts, rest = program.balancing.partitions, program.balancing.procedures
        moves = [s for one in parts for s in (*one.rise, *one.sink)] + [s for one in rest for s in one.body]
        yield from (view for s in visit((*moves, *program.balancing.recompute)) for view in views_in(s))


@dataclass(frozen=True)
class Store:
    """Argument values by group, in order: of which free variables the group is, in the order of the key; the levels
    that group by all of these, and by the first of them; stores that count its rows."""

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
    """A store in the making: its sets, the finest first, each within the one before; the chain that it counts."""

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
    """The store of the finest group, of so many free variables, with those below it; ``apart``: each set has its own.

    A set goes to the store of the finest group where that group begins with it, else to the first chain that ends in a
    finer one. A new chain counts the rows of the smallest group that has all its variables."""
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
