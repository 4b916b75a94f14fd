r"""Propagates changes without joins (CROWN): by semi-joins and projections along a free-connex join tree.

Source: Wang, Hu, Dai, Yi: Change Propagation Without Joins (2023), Algorithms 1 to 6. The plan of Q(a, b, c, d) = R(a,
b) S(b, c) T(c, d)::

        V_s[b]               on T(c, d) += m:
        /    \                   T[c, d] += m
    V_p(R)  V_p(S)                   appears: T.joined += t
      |        |                        alone in [c]:      (c is new in V_p(T): P-update)
    R(a, b)  V_s(S)                         for b, s in S[_, c]:
               |                                s.joins += 1; if s.joins = 1: S.joined += s ...
             V_p(T)                      not alone in [c]: (c was in V_p(T) already)
               |                            for b, s in S.live[_, c]: for a, r in R.joined[b]: emit (a, b, c, d)
             T(c, d)

- V_s, the subset ``joined``, has the rows that match all children. ``joins`` counts a row's matching children.
- V_p is an index of V_s. The index finds rows by the variables that a node shares with its parent.
- V_l, the subset ``live``, has the rows that are part of the result.

`docs/crown.md` gives the bounds and the departures from the paper.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from freshviews.expr.nodes import Literal
from freshviews.plan.crown.alike import Kept, kept_of
from freshviews.plan.crown.bags import Reader, attached
from freshviews.plan.crown.bounds import bounds_of
from freshviews.plan.crown.free_connex_query import Prepared, prepared, required
from freshviews.plan.crown.nodes import JOINED, JOINS, LIVE, TreeNode, nodes_of
from freshviews.plan.crown.rows import MOST_STATEMENTS, Carriers, Chain, Finish, Link, Size, TreeRows
from freshviews.plan.crown.tree_choice import tree_of
from freshviews.plan.delta import first_order
from freshviews.plan.leaves import (
    Carrier,
    add_count,
    add_to,
    all_components,
    components_over,
    product,
    result_view,
    row_carrier,
    sum_carrier,
    trigger,
    update_carrier,
)
from freshviews.plan.naming import RESULT, Namer
from freshviews.plan.optional import OptionalView, update_negated, update_optional
from freshviews.plan.strategy import BagPlanner
from freshviews.program.payload import COUNT, COUNTED, Monomial
from freshviews.program.program import Program, Trigger
from freshviews.program.results import Enumerated, Held
from freshviews.program.rewrite import rename
from freshviews.program.statements import (
    Body,
    Changed,
    Emit,
    Event,
    Exists,
    Into,
    Let,
    Lookup,
    Loop,
    Move,
    Statement,
    Sum,
    Tally,
)
from freshviews.program.upkeep import BY_TRIGGERS, Traced
from freshviews.program.views import Subset, View
from freshviews.query.acyclic import JoinTree
from freshviews.query.query import Atom, Query
from freshviews.types import BIGINT

FIRST_ORDER = BagPlanner(first_order.plan, widened=True)


def plan(
    query: Query,
    updates: Mapping[str, float] | None = None,
    tree: str | None = None,
    inner: BagPlanner = FIRST_ORDER,
    limit: int = MOST_STATEMENTS,
    stored: bool = True,
) -> Program:
    """The program whose result is held in a view. ``updates``: expected numbers by atom. ``tree``: the join tree, if
    one is named, see ``freshviews.query.join_trees.parse_tree``. ``inner`` maintains the bags of cyclic queries.
    ``limit``: the most statements that enumerate or mark rows. If the result is not ``stored``, its groups are
    enumerated with their payloads; ``why_groups_are_stored`` is None then. PlanError if the named tree is not valid,
    TooLarge if there would be more statements.

    ``plan`` makes a program that holds the result in a view. ``plan_enumerated`` stores no result: the payload of a
    group is the product of the payloads of its rows in free nodes (``plan.crown.nodes``).
    """
    made = prepared(query)
    chosen = tree_of(made, updates or {}, tree)
    return _Crown(made, chosen, inner, True, stored, tree is not None, limit).program()


def plan_enumerated(
    query: Query,
    distinct: bool = False,
    updates: Mapping[str, float] | None = None,
    tree: str | None = None,
    inner: BagPlanner = FIRST_ORDER,
    limit: int = MOST_STATEMENTS,
) -> Program | None:
    """The program whose result is enumerated. None if the result must be held: DISTINCT over an output that had to be
    extended. ``distinct``: each row is emitted once, and no multiplicity is negative."""
    made = prepared(query)
    if distinct and made.free != frozenset(query.free):
        return None
    chosen = tree_of(made, updates or {}, tree, not distinct)
    return _Crown(made, chosen, inner, not distinct, False, tree is not None, limit).program()


def why_groups_are_stored(query: Query) -> str | None:
    """The reason for which the groups of a query are held; None if they can be enumerated."""
    made = prepared(query)
    if made.free != frozenset(query.free):
        added = ", ".join(v for v in query.variables if v in made.free.difference(query.free))
        return f"free-connex only with {added} in the output; each group is a sum over these"
    if not query.free:
        return "there is one"
    for atom in required(made.query).atoms:
        if set(atom.variables).issuperset(query.free):
            return f"at most as many as rows of {atom.name}"
    return None


def of_tree(query: Query, tree: JoinTree, distinct: bool = False) -> Program:
    """The program of a free-connex query, without conditions, whose result is enumerated over a given tree."""
    made = Prepared(query, {}, frozenset(query.free))
    return _Crown(made, tree, FIRST_ORDER, not distinct, False, True, MOST_STATEMENTS).program()


@dataclass
class _Crown:
    """Writes the triggers. Sign 1 stands for a row or key that appears, -1 for one that vanishes."""

    made: Prepared
    tree: JoinTree
    inner: BagPlanner
    counted: bool
    stored: bool
    named: bool
    limit: int

    def __post_init__(self) -> None:
        self.query = query = self.made.query
        self.free = self.made.free
        # The program of a bag may have more variables in its output than the nodes need.
        kept = kept_of(self.made.bags, self.inner.widened)
        self.kept = tuple((one, self.inner.plan(one.query)) for one in kept)
        self.namer = Namer(query)
        self.root = nodes_of(query, self.free, self.tree, self.counted, self.namer)
        # 64-bit components first: see ``program.results``.
        components = sorted(all_components(query), key=lambda c: c.ring != "integer")
        self.emitted = tuple(components) if self.counted else COUNTED
        self.size = Size(query.name, self.limit)
        self.rows = TreeRows(query, self.root, self.namer, self.size)
        self.lists_root = self._lists_root()

    def _lists_root(self) -> bool:
        """True if the joined rows of the root are a subset: to be enumerated, or to be found from below."""
        root = self.root
        if not root.has_joined:
            return False
        if not self.stored and root.variables:
            root.index(JOINED, ())
        for child in root.reporting:
            if (child.free or child.closed) and len(child.key) < len(root.variables):
                root.index(JOINED, child.key)
        return JOINED in root.wanted

    def program(self) -> Program:
        bags = [attached(inside, kept.guards, self.readers(kept), self.namer) for kept, inside in self.kept]
        triggers = [trigger for bag in bags for trigger in bag.triggers]
        traced = tuple(join for bag in bags for join in bag.joins)
        in_tree = [n.atom for n in self.root.nodes() if n.atom is not None]
        triggers += [self.trigger(a) for a in self.query.occurrences if a.name not in self.made.bags and a in in_tree]
        result: Held | Enumerated = Held(RESULT)
        if not self.stored:
            rows, awake = self.rows.everything(self.emit(1)), self.awake()
            member = self.rows.member(self.emit(1)) if self.free == frozenset(self.query.free) else ()
            result = Enumerated(rows, member, awake, self.emitted)
        return Program(
            self.query.name,
            self.query.free,
            (*(view for bag in bags for view in bag.views), *self.views()),
            tuple(triggers),
            result,
            "crown",
            bounds_of(self.made, self.tree, self.kept, self.stored, self.named),
            upkeep=Traced(traced) if traced else BY_TRIGGERS,
        )

    def views(self) -> tuple[View, ...]:
        found: list[View] = []
        for node in self.root.nodes():
            if node.rows is not None:
                indexes = {name: tuple(sorted(at)) for name, at in node.wanted.items()}
                subsets = tuple(Subset(name, indexes[name]) for name in (JOINED, LIVE) if indexes.get(name))
                found.append(replace(node.rows, indexes=indexes.get("", ()), subsets=subsets))
            if node.sums is not None and all(node.sums.name != v.name for v in found):
                found.append(node.sums)
        if self.stored:
            found.append(result_view(self.query))
        return tuple(found)

    # A row of the result

    def emit(self, sign: int) -> Finish:
        def finish(carriers: Carriers) -> Body:
            if self.stored:
                return (add_to(result_view(self.query), carriers),)
            payload = product(self.emitted, carriers) if self.counted else (Monomial((), sign),)
            return (Emit(self.query.free, payload),)

        return finish

    def change(self, chain: Chain, carriers: Carriers, sign: int) -> Body:
        """Algorithm 6: the rows of the change that contain the rows of a chain."""
        return self.rows.through(chain, carriers, self.emit(sign))

    def wanted(self, body: Body) -> Body:
        """The body, run only while the change is wanted. A held result always needs it."""
        return body if self.stored or not body else (Changed(body),)

    # R-updates (Algorithm 4)

    def trigger(self, atom: Atom) -> Trigger:
        return trigger(self.query, atom, self.arrive(atom, (update_carrier(self.query, atom),)))

    def readers(self, kept: Kept) -> tuple[Reader, ...]:
        """The nodes of the bags that one program maintains. A change of a bag is handled like an update of an atom."""

        def reader(name: str, read: tuple[str, ...]) -> Reader:
            atom = self.query.atom(name)
            places = tuple(kept.query.free.index(v) for v in read)
            return Reader(name, atom.variables, places, lambda carriers: self.arrive(atom, carriers))

        return tuple(reader(name, read) for name, read in kept.read.items())

    def arrive(self, atom: Atom, carriers: Carriers) -> Body:
        """The change of the payload of a row of an atom, whose variables are bound."""
        node = next(n for n in self.root.nodes() if n.atom is atom)
        if node.negated:
            return self.negated_update(node, carriers)
        return self.closed_update(node, carriers) if node.closed else self.update(node, (), carriers)

    def negated_update(self, node: TreeNode, carriers: Carriers) -> Body:
        """An update of the relation of a negated node: where a row appears, the rows above with its key lose a match,
        and where it vanishes, they gain one."""

        def flipped(changed: Carriers) -> Body:
            parent = node.parent
            assert parent is not None
            if not parent.closed:
                return self.project(node, (), changed if self.counted else (), changed[0].sign)
            rest = tuple(c for c in parent.children if c is not node)
            return self.hand_up(parent, frozenset(node.key), changed, rest, True)

        return update_negated(node.view(), carriers, flipped)

    def update(self, node: TreeNode, chain: Chain, carriers: Carriers) -> Body:
        """The change of the payload of a row of a node, whose variables are bound: by an update, or by its filler."""
        alias = node.row(self.namer)
        here = (*chain, Link(node, alias, None))
        stored = replace(node.view(), components=tuple(c for c in node.view().components if c.name != JOINS))
        stay: Body = ()
        if self.counted:
            stay = self.rows.where_joined(node, alias, self.wanted(self.change(here, carriers, 1)))
        appear, vanish = self.appeared(node, alias, here, carriers), self.vanished(node, alias, here, carriers)
        return (replace(add_to(stored, carriers), appear=appear, vanish=vanish, stay=stay, alias=alias),)

    def appeared(self, node: TreeNode, alias: str, chain: Chain, carriers: Carriers) -> Body:
        """A new row: count the children that match it."""
        if not node.others:
            return self.joined(node, alias, chain, carriers, 1)
        count = Tally(alias, JOINS, 1, len(node.others))
        *others, last = node.others
        body = [self.where_projected(child, (count,)) for child in others]
        full = replace(count, body=self.joined(node, alias, chain, carriers, 1))
        return (*body, self.where_projected(last, (full,)))

    def vanished(self, node: TreeNode, alias: str, chain: Chain, carriers: Carriers) -> Body:
        return self.rows.where_joined(node, alias, self.joined(node, alias, chain, carriers, -1))

    def where_projected(self, child: TreeNode, body: Body) -> Statement:
        """The body, run if the projection of a child has the bound key; of a negated child, if it has not."""
        if child.negated:
            return Lookup(child.view().name, child.variables, child.row(self.namer, "row_met"), (), body)
        if child.closed:
            assert child.sums is not None
            return Lookup(child.sums.name, child.key, child.row(self.namer, "row_met"), body)
        if len(child.key) == len(child.variables) and child.full is None:
            return Lookup(child.view().name, child.variables, child.row(self.namer, "row_met"), body)
        at = child.index(JOINED, child.key)
        return Exists(child.view().name, tuple(child.variables[i] for i in at), at, body, JOINED)

    # S-updates (Algorithm 2)

    def joined(self, node: TreeNode, alias: str, chain: Chain, carriers: Carriers, sign: int) -> Body:
        """A row becomes joined, or ceases to be."""
        if node.parent is None:
            change = self.wanted(self.change(chain, carriers, sign))
            alone, marks = self.mark_children(node, chain, sign, JOINED)
            if not self.lists_root:
                return (*change, *self.wanted(alone)) if sign > 0 else (*self.wanted(alone), *change)
            marks = tuple(Event(e.bound, self.wanted(e.alone), self.wanted(e.others)) for e in marks)
            move = Move(alias, JOINED, sign, marks)
            return (move, *self.wanted(alone), *change) if sign > 0 else (*change, *self.wanted(alone), move)
        witness = self.witness(node, alias, chain, carriers, sign)
        if node.optional:
            # This row does not decide whether rows above are joined: it is always a witness.
            move = Move(alias, JOINED, sign, (Event(node.index(JOINED, node.key), self.default(node, -sign)),))
            return (move, *witness) if sign > 0 else (*witness, move)
        event = Event(node.index(JOINED, node.key), self.project(node, chain, carriers, sign), witness)
        return (Move(alias, JOINED, sign, (event,)),)

    def witness(self, node: TreeNode, alias: str, chain: Chain, carriers: Carriers, sign: int) -> Body:
        """Definition 5.6: the projection had the key already, or still has it. The change is enumerated through live
        rows above."""
        if not node.free:
            return ()
        change = self.change(chain, carriers, sign)
        mark: Body = ()
        if node.has_live:
            mark = self.rows.where_live(node, self.mark(node, alias, chain, sign))
        return self.wanted((*mark, *change) if sign > 0 else (*change, *mark))

    def default(self, node: TreeNode, sign: int) -> Body:
        """The default row of an optional node appears (sign 1) or vanishes for the bound key, which no row has."""
        zeros = frozenset(c.name for c in components_over(self.query, node.atoms()) if c.name != COUNT)
        carriers = (Carrier(None, sign=sign, zeros=zeros),) if self.counted else ()
        opened = [v for n in node.nodes() if n.free for v in n.variables if v not in node.key]
        nulls = {v: self.namer.of(("null", v), f"no_{v}") for v in dict.fromkeys(opened)}
        lets = tuple(Let(v, Literal(None, BIGINT)) for v in nulls)
        change = (*lets, *self.rows.above(node, carriers, self.emit(sign), tuple(nulls)))
        return self.wanted(rename(change, nulls, {}))

    # P-updates (Algorithm 3)

    def project(self, node: TreeNode, chain: Chain, carriers: Carriers, sign: int) -> Body:
        """The projection of a node gains or loses the bound key: the parent's rows with the key count it."""
        parent = node.parent
        assert parent is not None
        alias = parent.row(self.namer)
        here = (*chain, Link(parent, alias, node))
        if node in parent.fillers:
            add = replace(add_count(parent.view(), sign), alias=alias)
            if len(parent.fillers) > 1:
                number = len(parent.fillers) - (sign < 0)
                full = Tally(alias, COUNT, 0, number, self.joined(parent, alias, here, carriers, sign))
                return (replace(add, stay=(full,)),)
            if sign > 0:
                return (replace(add, appear=self.appeared(parent, alias, here, carriers)),)
            return (replace(add, vanish=self.vanished(parent, alias, here, carriers)),)
        above = (*carriers, *self.rows.own(parent, alias))
        body: Body = (Tally(alias, JOINS, sign, len(parent.others), self.joined(parent, alias, here, above, sign)),)
        if len(node.key) == len(parent.variables):
            return (Lookup(parent.view().name, parent.variables, alias, body),)
        at = parent.index("", node.key)
        return (Loop(parent.view().name, parent.variables, at, alias, body),)

    # Live rows (Lemma 5.5)

    def mark(self, node: TreeNode, alias: str, chain: Chain, sign: int) -> Body:
        """A row of a node becomes live, or ceases to be live; so do the rows below that are live through it alone."""
        self.size.grow()
        alone, events = self.mark_children(node, chain, sign, LIVE)
        for child in node.reporting:
            if child.free or child.closed:
                node.index(LIVE, child.key)
        move = Move(alias, LIVE, sign, events)
        return (move, *alone) if sign > 0 else (*alone, move)

    def mark_children(self, node: TreeNode, chain: Chain, sign: int, subset: str) -> tuple[Body, tuple[Event, ...]]:
        """The statements below a row whose slices in ``subset`` are the live keys: those for keys that are the whole
        row, and events for the others."""
        always: list[Statement] = []
        events: list[Event] = []
        for child in node.reporting:
            if not child.has_live:
                continue
            body = self.mark_below(child, chain, sign)
            if len(child.key) == len(node.variables):
                always += body
            else:
                events.append(Event(node.index(subset, child.key), body))
        return tuple(always), tuple(events)

    def mark_below(self, child: TreeNode, chain: Chain, sign: int) -> Body:
        """Mark the joined rows of a child that have the bound key. If the chain has a row of the child, only that
        row."""
        link = next((link for link in chain if link.node is child and link.alias is not None), None)
        if link is not None and link.alias is not None:
            return self.mark(child, link.alias, chain, sign)
        alias = child.row(self.namer)
        body = self.mark(child, alias, chain, sign)
        if len(child.key) == len(child.variables):
            return (Lookup(child.view().name, child.variables, alias, body),)
        at = child.index(JOINED, child.key)
        return (Loop(child.view().name, child.variables, at, alias, body, JOINED),)

    def awake(self) -> Body:
        """Recompute the live rows: remove all, then from the top down add those that match a live row above."""
        nodes = [n for n in self.root.nodes() if n.has_live]
        body: list[Statement] = []
        for node in nodes:
            alias = node.row(self.namer)
            enter = self.rows.where_live(node, (Move(alias, LIVE, 1),))
            mark: Body = (Move(alias, LIVE, -1), *self.rows.where_joined(node, alias, enter))
            body.append(Loop(node.view().name, node.variables, (), alias, mark))
        return tuple(body)

    # Sums of closed nodes

    def closed_update(self, node: TreeNode, carriers: Carriers) -> Body:
        """An update of the relation of a closed node: its row, times the sums below, is passed up."""
        body: Body = ()
        if node.rows is not None:
            body = (add_to(node.rows, carriers),)
        return (*body, *self.hand_up(node, frozenset(node.variables), carriers, node.children, False))

    def hand_up(
        self, node: TreeNode, bound: frozenset[str], carriers: Carriers, children: tuple[TreeNode, ...], loop: bool
    ) -> Body:
        """Join the bound variables with the sums of children, and with the node's rows if ``loop``; add the projection
        to the node's sums."""
        assert node.sums is not None
        inner = carriers
        if loop:
            assert node.rows is not None
            inner = (*carriers, row_carrier(node.row(self.namer), node.rows))
        for child in children:
            if not child.negated:
                assert child.sums is not None
                inner = (*inner, row_carrier(child.row(self.namer, "row_sums"), child.sums))
        total = node.row(self.namer, "row_total")
        components = node.sums.components
        summed = loop and bound.issuperset(node.key) and not bound.issuperset(node.variables)
        body: Body = (Into(total, product(components, inner)),) if summed else self.summed(node, inner)
        for child in reversed(children):
            if child.negated:
                body = (self.where_projected(child, body),)
            else:
                assert child.sums is not None
                alias = child.row(self.namer, "row_sums")
                body = (Lookup(child.sums.name, child.key, alias, body, optional=child.optional),)
        if loop and node.rows is not None:
            if bound.issuperset(node.variables):
                body = (Lookup(node.rows.name, node.variables, node.row(self.namer), body),)
            else:
                at = node.index("", tuple(v for v in node.variables if v in bound))
                body = (Loop(node.rows.name, node.variables, at, node.row(self.namer), body),)
        if not summed:
            return body
        carrier = sum_carrier(total, components)
        return (Sum(total, components, body, self.summed(node, (carrier,))),)

    def summed(self, node: TreeNode, carriers: Carriers) -> Body:
        """The change of the sums of a node at its key, which is bound."""
        parent = node.parent
        assert parent is not None and node.sums is not None
        if parent.free and parent.is_projection and node in parent.fillers:
            return self.update(parent, (), carriers)
        rest = tuple(c for c in parent.children if c is not node)

        def hand_up(changed: Carriers) -> Body:
            return self.hand_up(parent, frozenset(node.key), changed, rest, parent.atom is not None)

        if node.optional:
            # The parent's rows stay: the change, with a default row that goes or comes back, is a witness.
            one = OptionalView(node.sums, node.key, None)
            above = hand_up if not parent.free else lambda changed: self.wanted(self.sums_changed(node, changed))
            return update_optional(one, carriers, above, self.namer)
        add = add_to(node.sums, carriers, key=node.key)
        if parent.free:
            appear, vanish = (self.project(node, (), carriers, sign) for sign in (1, -1))
            return (replace(add, appear=appear, vanish=vanish, stay=self.wanted(self.sums_changed(node, carriers))),)
        return (add, *hand_up(carriers))

    def sums_changed(self, node: TreeNode, carriers: Carriers) -> Body:
        """The sums that a free node reads changed, but exist before and after: a witness."""
        return self.rows.above(node, carriers, self.emit(1))
