"""Writes loops over a join tree that enumerate the result: all its rows, or only those that contain given rows.

Source: Algorithms 5 and 6 of the CROWN paper (``plan.crown.propagation``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from freshviews.expr.nodes import Call, Column, columns_of
from freshviews.plan.crown.nodes import JOINED, LIVE, TreeNode
from freshviews.plan.delta.nest import Pending
from freshviews.plan.leaves import Carrier, row_carrier
from freshviews.plan.naming import Namer
from freshviews.plan.strategy import TooLarge
from freshviews.program.payload import COUNTED, Monomial
from freshviews.program.statements import Body, Exists, If, Into, Lookup, Loop, Statement, Sum, Tally
from freshviews.query.query import Query
from freshviews.records import dataclass
from freshviews.types import BIGINT, BOOLEAN

Carriers = tuple[Carrier, ...]
Finish = Callable[[Carriers], Body]


MOST_STATEMENTS = 40_000
"""Maximum number of statements of a program. A chain of n tables has about n ** 2.5."""


@dataclass
class Size:
    """The size of a program while it is written: the statements that enumerate or mark rows, at most ``limit``."""

    name: str
    limit: int
    statements: int = 0

    def grow(self) -> None:
        """Counts one more statement. Raises TooLarge if there are too many."""
        self.statements += 1
        if self.statements > self.limit:
            most = f"{self.limit:,} statements"
            raise TooLarge(f"{self.name}: crown would need more than {most}; set view_tree, or no strategy", most)


@dataclass(frozen=True)
class Link:
    """A node of a chain, the alias of its row (None if only the variables matter), and the child that the change came
    from."""

    node: TreeNode
    alias: str | None
    source: TreeNode | None


Chain = tuple[Link, ...]


@dataclass(frozen=True)
class _Step:
    """A node to be bound: by its sums (``sums``), from below (``up``, from the child ``source``) or from above
    (``down``)."""

    how: str
    node: TreeNode
    source: TreeNode | None = None


@dataclass(frozen=True)
class _State:
    bound: frozenset[str]
    carriers: Carriers
    steps: tuple[_Step, ...]
    pending: Pending


@dataclass(frozen=True)
class TreeRows:
    """Writes the enumerations of one query. ``names`` names the rows of nodes; ``finish`` writes the statements for a
    row of the result.

    A change is enumerated from a *chain*: the nodes from the one that changed up to the last one that the change
    reached. From there, loops go up through live rows, which are part of the result. Other loops go down through joined
    rows, which match rows below. So no loop is empty, and the delay is constant, except in two cases: a condition
    across atoms may skip rows, and rows repeat if variables were added to the output.
    """

    query: Query
    root: TreeNode
    names: Namer
    size: Size

    def everything(self, finish: Finish) -> Body:
        """All rows of the result."""
        return self._go(_State(frozenset(), (), (_Step("down", self.root),), Pending.of(self.query)), finish)

    def through(self, chain: Chain, carriers: Carriers, finish: Finish) -> Body:
        """The rows of the result that contain the rows of a chain."""
        steps: list[_Step] = []
        for link in chain:
            steps += self._below(link.node, link.source)
        top = chain[-1].node
        if top.parent is not None:
            steps.append(_Step("up", top.parent, top))
        bound = frozenset(v for link in chain for v in link.node.variables)
        return self._go(_State(bound, carriers, tuple(steps), Pending.of(self.query)), finish)

    def above(self, child: TreeNode, carriers: Carriers, finish: Finish, more: tuple[str, ...] = ()) -> Body:
        """The rows of the result that have the bound key of a child; ``more``: other bound variables, from below it."""
        assert child.parent is not None
        bound, up = frozenset((*child.key, *more)), _Step("up", child.parent, child)
        return self._go(_State(bound, carriers, (up,), Pending.of(self.query)), finish)

    def member(self, finish: Finish) -> Body:
        """The row of the result with the bound free variables, if there is one."""
        nodes = [node for node in self.root.nodes() if node.free and not node.negated]
        sums = [_Step("sums", c) for node in nodes for c in node.reporting if c.closed]

        def ask(left: list[TreeNode], carriers: Carriers) -> Body:
            if not left:
                state = _State(frozenset(self.query.free), carriers, tuple(sums), Pending.of(self.query))
                return self._go(state, finish)
            node, *rest = left
            alias = node.row(self.names)
            body = ask(rest, (*carriers, *self.own(node, alias)))
            if node.optional:
                return (self._found(node, alias, body),)
            return (Lookup(node.view().name, node.variables, alias, self.where_joined(node, alias, body)),)

        return ask(nodes, ())

    def _found(self, node: TreeNode, alias: str, body: Body) -> Statement:
        """The body, run with the row of an optional node whose variables are bound: a stored row, or the default row if
        all opened variables are NULL and no row has the key."""
        count, at = node.row(self.names, "row_total"), node.index(JOINED, node.key)
        one, back = (Into(count, (Monomial((), sign),)) for sign in (1, -1))
        key = tuple(node.variables[i] for i in at)
        default: Body = (one, Exists(node.view().name, key, at, (back,), JOINED))
        for v in reversed([v for v in node.variables if v not in node.key]):
            default = (If(Call("is_null", (Column(v, BIGINT),), BOOLEAN, False), default),)
        asked = Lookup(node.view().name, node.variables, node.row(self.names, "row_met"), (one,), default)
        found = Lookup(node.view().name, node.variables, alias, body, optional=True)
        return Sum(count, COUNTED, (asked,), (found,))

    def own(self, node: TreeNode, alias: str) -> Carriers:
        """A row of a free node as a factor of payloads."""
        if not node.counted or node.is_union:
            return ()
        view = node.view()
        components = tuple(c for c in view.components if c.name != view.tally)
        return (row_carrier(alias, replace(view, components=components)),)

    def where_joined(self, node: TreeNode, alias: str, body: Body) -> Body:
        """The body, run if a row of a node is joined."""
        return body if node.full is None else (Tally(alias, node.full[0], 0, node.full[1], body),)

    def where_live(self, child: TreeNode, body: Body) -> Body:
        """The body, run if some row of the parent with the child's key is in the result."""
        parent = child.parent
        assert parent is not None
        if parent.parent is None and len(child.key) == len(parent.variables):
            alias = parent.row(self.names)
            return (Lookup(parent.view().name, parent.variables, alias, self.where_joined(parent, alias, body)),)
        subset = self._live(parent)
        at = parent.index(subset, child.key)
        return (Exists(parent.view().name, tuple(parent.variables[i] for i in at), at, body, subset),)

    def _live(self, node: TreeNode) -> str:
        """The subset of a node's rows that are in the result. At the root these are all joined rows."""
        if node.parent is not None:
            return LIVE
        return JOINED if node.has_joined else ""

    def _below(self, node: TreeNode, source: TreeNode | None) -> list[_Step]:
        below = [c for c in node.reporting if c is not source]
        return [_Step("sums", c) for c in below if c.closed] + [_Step("down", c) for c in below if c.free]

    def _go(self, state: _State, finish: Finish) -> Body:
        applied = state.pending.applied(state, lambda ready: self._go(ready, finish))
        if applied is not None:
            return applied
        self.size.grow()
        if not state.steps:
            return finish(state.carriers)
        step = self._next(state)
        left = tuple(s for s in state.steps if s is not step)
        node, alias = step.node, step.node.row(self.names)
        if step.how == "sums":
            assert node.sums is not None
            alias = node.row(self.names, "row_sums")
            done = replace(state, carriers=(*state.carriers, row_carrier(alias, node.sums)), steps=left)
            return (Lookup(node.sums.name, node.key, alias, self._go(done, finish), optional=node.optional),)
        further = self._below(node, step.source)
        if step.how == "up" and node.parent is not None:
            further.append(_Step("up", node.parent, node))
        done = _State(
            state.bound | frozenset(node.variables),
            (*state.carriers, *self.own(node, alias)),
            (*left, *further),
            state.pending,
        )
        body = self._go(done, finish)
        shared = step.source.key if step.source is not None else node.key
        if len(shared) == len(node.variables) and (step.how == "down" or node.parent is None):
            if node.parent is None:
                body = self.where_joined(node, alias, body)
            return (Lookup(node.view().name, node.variables, alias, body),)
        subset = self._live(node) if step.how == "up" else (JOINED if node.has_joined else "")
        at = node.index(subset, shared) if subset or shared else ()
        optional = node.optional and step.how == "down"
        return (Loop(node.view().name, node.variables, at, alias, body, subset, optional),)

    def _next(self, state: _State) -> _Step:
        """The next step: sums first, then a step that lets a condition be applied, then up, then down."""

        waiting = [frozenset(columns_of(c)) - state.bound for c in state.pending.conditions]

        def rank(step: _Step) -> tuple[bool, bool, bool]:
            checks = bool(waiting) and any(map(frozenset(step.node.variables).issuperset, waiting))
            return step.how == "sums", checks, step.how == "up"

        return max(state.steps, key=rank)
