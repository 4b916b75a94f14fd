"""IVM^eps for hierarchical queries: light values are joined in views, heavy values only when the result is read.

Source: Kara, Nikolic, Olteanu, Zhang: Trade-offs in Static and Dynamic Evaluation of Hierarchical Queries (PODS 2020).

- A light value of a bound variable X has few rows. A view L_X stores the join below X.
- A heavy value has many rows. A view W_X has the values of X whose join is not empty. Reading the result loops over the
  heavy values of W_X.

The plan of Q(a) = R(a, b) S(b), order b -> a. P_a counts the rows of R by b. D gathers the changes of Q::

    on R(a, b) += m:                              on S(b) += m:
        if no R_heavy[b]:                             if no R_heavy[b]:
            if s := S[b]: L_b[a] += m * s                 if P_a[b]: for a, r in R[_, b]: L_b[a] += m * r
        if changes are wanted:                        if changes are wanted:
            if s := S[b]: D[a] += m * s                   if P_a[b]: for a, r in R[_, b]: D[a] += m * r
        R[a, b] += m                                  S[b] += m
            appears: P_a[b] += 1                          appears: if P_a[b]: W_b[b] += 1
                appears: if S[b]: W_b[b] += 1                 appears: if R_heavy[b]: the row enters W_b.heavy
        balance R by b                                balance
    result(a): the union of L_b and of all R[_, b] where b is in W_b.heavy

`docs/ivm-eps.md` has the general construction and its bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace

from freshviews.errors import PlanError
from freshviews.plan.delta.nest import Indexes, Join, Step, nest
from freshviews.plan.eps.cycle import exponent, forgotten
from freshviews.plan.eps.tree import CanonicalNode, Item, most_covering, settled, tree_of
from freshviews.plan.leaves import (
    Carrier,
    add_count,
    add_to,
    all_components,
    components_over,
    leaf_view,
    product,
    row_carrier,
    sum_carrier,
    trigger,
    update_carrier,
    with_indexes,
)
from freshviews.plan.naming import Namer, joined_name
from freshviews.program.heavy_light import Balancing, Partition
from freshviews.program.payload import COUNT, COUNTED, Monomial
from freshviews.program.program import Program, Trigger
from freshviews.program.results import Listed, SliceSource, Source, UnionSource
from freshviews.program.statements import Add, Balance, Body, Changed, Emit, Into, Lookup, Loop, Move, Statement, Sum
from freshviews.program.views import Subset, View
from freshviews.query.hierarchical import delta_rank, is_hierarchical, is_q_hierarchical
from freshviews.query.hypergraph import hypergraph
from freshviews.query.query import Atom, Query
from freshviews.records import dataclass

Carriers = tuple[Carrier, ...]
Finish = Callable[[Carriers], Body]
Path = tuple[CanonicalNode, ...]

DEFAULT = 0.5
HEAVY = "heavy"
"""The subset of W_X: the rows with a heavy value of X."""


def is_kept(query: Query) -> bool:
    """True for a hierarchical query that is not q-hierarchical, without factors after ``settled``."""
    graph = hypergraph(query)
    return is_hierarchical(graph) and not is_q_hierarchical(graph) and not settled(query).factors


def plan(query: Query, epsilon: float | Mapping[str, float] = DEFAULT) -> Program:
    """The program of a query for which ``is_kept`` holds. PlanError for other queries.

    ``epsilon`` is from 0 to 1, for all atoms or by the name of the atom.

    In the canonical variable order of the query (``tree``), a bound variable X may be above free variables F. Each
    value of X is heavy or light, separately for each binding of the variables above X. A heavy value has many rows in a
    relation that is below X and has a free variable.

    - Light: a view L_X stores the join of everything below X, by F and the variables above X. An update joins only
      light rows: O(N^(i eps)) steps for a delta_i-hierarchical query.
    - Heavy: there are O(N^(1 - eps)) heavy values, and their join is not stored. A view W_X has the values of X for
      which everything below X joins. Reading the result loops over the heavy values in W_X, with O(N^(1 - eps)) delay.

    P_X counts the rows of W_X by the variables above X. V_X is the sum of a subtree without free variables. If values
    of X can be heavy in several relations, H_X counts, for each heavy value, in how many of them it is heavy. The view
    D gathers changes, only while a subscriber or another view wants them.

    For eps = 0 nothing is joined before the result is read. For eps = 1 everything is joined in advance. In both cases
    there are no heavy and light parts.
    """
    if not is_kept(query):
        raise PlanError(
            f"{query.name}: ivm_eps cannot list the rows of the result; set 'view_tree'"
        )
    return _Planner(forgotten(settled(query)), epsilon).program()


@dataclass(frozen=True)
class Partitioning:
    """How the values of a node's variables are partitioned.

    ``whole``: "heavy" or "light" if all of them are. Otherwise it is empty, and ``heavy`` is the view of the heavy
    values: the only one of ``values`` (by atom), or the count of these.
    """

    whole: str
    atoms: tuple[Atom, ...] = ()
    values: dict[str, View] = field(default_factory=dict)
    heavy: View | None = None


class _Planner:
    """Names all views of the program, then writes its triggers, its rebalancing and how the result is read."""

    def __init__(self, query: Query, epsilon: float | Mapping[str, float]) -> None:
        self.query = query
        self.root = tree_of(query)
        self.indexes: Indexes = {}
        self.parts: Indexes = {}
        self.namer = namer = Namer(query)
        self.given = {a.name: exponent(epsilon, a, DEFAULT) for a in query.atoms}
        self.stores = {a.name: leaf_view(query, a, namer.view(a.name)) for a in query.atoms}
        self.sums: dict[CanonicalNode, View] = {}
        self.joins: dict[CanonicalNode, View] = {}
        self.counts: dict[CanonicalNode, View] = {}
        self.lights: dict[CanonicalNode, View] = {}
        self.partitionings: dict[CanonicalNode, Partitioning] = {}
        for node in self.root.nodes():
            self._name(node)
        self.delta = View(namer.view("D"), query.free, all_components(query), definition="the change, until taken")

    def _name(self, node: CanonicalNode) -> None:
        name = joined_name(node.variables)
        components = components_over(self.query, frozenset(a.name for a in node.atoms_below()))
        if not node.is_open:
            what = f"{name} summed out"
            self.sums[node] = View(self.namer.view(f"V_{name}"), node.above, components, definition=what)
            return
        if len(node.items) > 1:
            what = f"{', '.join(node.key) or 'whether all'} with all below"
            self.joins[node] = View(self.namer.view(f"W_{name}"), node.key, COUNTED, definition=what)
        if node is not self.root:
            self.counts[node] = View(self.namer.view(f"P_{name}"), node.above, COUNTED, definition=f"number of {name}")
        # Nodes below values that are all light are only listed as a part of their join.
        whole = any(one.whole == "light" and node in above.nodes() for above, one in self.partitionings.items())
        if node.is_violating and not whole:
            self.partitionings[node] = partitioning = self._partitioning(node, name)
            if partitioning.whole != HEAVY:
                of = "" if partitioning.heavy is None else "light "
                key = (*node.above, *node.listed)
                what = f"join below {of}{name}"
                self.lights[node] = View(self.namer.view(f"L_{name}"), key, components, definition=what)

    def _partitioning(self, node: CanonicalNode, name: str) -> Partitioning:
        atoms = tuple(a for a in node.atoms_below() if set(a.variables).intersection(node.listed))
        if any(self.given[a.name] == 0 for a in atoms):
            return Partitioning(HEAVY)
        parted = tuple(a for a in atoms if self.given[a.name] < 1)
        if not parted:
            return Partitioning("light")
        values = {}
        for atom in parted:
            store = self.stores[atom.name].name
            once = sum(one.is_violating for one in self.root.path(atom)) == 1
            key = tuple(v for v in atom.variables if v in node.key)
            wanted = f"{store}_heavy" if once else f"{store}_heavy_{name}"
            what = f"{', '.join(key)} that are heavy in {store}"
            values[atom.name] = View(self.namer.view(wanted), key, COUNTED, definition=what)
        heavy = values[parted[0].name]
        if len(parted) > 1:
            what = f"heavy {', '.join(node.key)}, and in how many relations"
            heavy = View(self.namer.view(f"H_{name}"), node.key, COUNTED, definition=what)
        return Partitioning("", parted, values, heavy)

    def program(self) -> Program:
        query = self.query
        balancing = self.balancing()
        triggers = tuple(self.trigger(atom, balancing is not None) for atom in query.atoms)
        listing = self.listing(self.root)
        total = self.namer.of("u", "u")
        components = all_components(query)
        found = self.found(self.root, (), lambda carriers: (Into(total, product(components, carriers)),))
        emit = Emit(query.free, product(components, (sum_carrier(total, components),)))
        return Program(
            query.name,
            query.free,
            self.views(),
            triggers,
            Listed(listing, Sum(total, components, found, (emit,)), self.delta.name, components),
            strategy="ivm_eps",
            bounds=self.bounds(),
            balancing=balancing,
        )

    def views(self) -> tuple[View, ...]:
        marks = [v for one in self.partitionings.values() if one.heavy for v in (*one.values.values(), one.heavy)]
        named = (self.stores, self.sums, self.joins, self.counts)
        views = [v for group in named for v in group.values()]
        views += [*dict.fromkeys(marks), *self.lights.values(), self.delta]
        subsets = {name: (Subset(HEAVY, tuple(sorted(indexes))),) for name, indexes in self.parts.items()}
        return with_indexes((replace(view, subsets=subsets.get(view.name, ())) for view in views), self.indexes)

    def bounds(self) -> tuple[tuple[str, str], ...]:
        parted = [self.given[a.name] for one in self.partitionings.values() if one.heavy for a in one.atoms]
        light = max([*parted, *(1.0 for one in self.partitionings.values() if one.whole == "light")], default=0.0)
        heavy = min([*parted, *(0.0 for one in self.partitionings.values() if one.whole == HEAVY)], default=1.0)
        rank = delta_rank(hypergraph(self.query)) or 0
        covering = max(map(most_covering, self.lights), default=1)
        update = _power(rank * light) + (" amortised" if parted else "")
        return (
            ("update", f"{update}; while its change is wanted, one more step for each derivation of the change"),
            ("delay", _power(1 - heavy)),
            ("space", _power(1 + (covering - 1) * light)),
        )

    # Views as steps of a join

    def view(self, item: Item) -> View:
        """The view of an item that the node above it joins."""
        if isinstance(item, Atom):
            return self.stores[item.name]
        return self.counts[item] if item.is_open else self.sums[item]

    def step(self, item: Item) -> Step:
        view = self.view(item)
        alias = self.namer.alias(view.name)
        counted = isinstance(item, CanonicalNode) and item.is_open
        return Step(view.name, view.key, alias, None if counted else row_carrier(alias, view))

    def joined(self, node: CanonicalNode) -> Step:
        """The rows of an open node: its own view, or that of its only item."""
        if node not in self.joins:
            return self.step(node.items[0])
        view = self.joins[node]
        return Step(view.name, view.key, self.namer.alias(view.name), None)

    def opened(self, node: CanonicalNode) -> tuple[Step, ...]:
        """All views that are joined at an open node and below."""
        steps = [self.joined(node)]
        for item in node.items:
            if isinstance(item, CanonicalNode) and item.is_open:
                steps += self.opened(item)
            elif node in self.joins:
                steps.append(self.step(item))
        return tuple(steps)

    def beside(self, path: Path, item: Item) -> tuple[Step, ...]:
        """The views that an update of an item joins, along a path of nodes that begins above the item."""
        steps: list[Step] = []
        for node in path:
            for other in node.items:
                if other is not item:
                    steps.append(self.step(other))
                    if isinstance(other, CanonicalNode) and other.is_open:
                        steps += self.opened(other)
            item = node
        return tuple(steps)

    def join(
        self, bound: tuple[str, ...], carriers: Carriers, steps: tuple[Step, ...], to: View, sign: int = 1
    ) -> Body:
        """Join the bound variables with views, and add the joined rows to the view ``to``."""
        start = Join(frozenset(bound), carriers, steps)
        return nest(start, lambda done: (add_to(to, done.carriers, sign),), self.indexes, smaller=False)

    # Triggers

    def trigger(self, atom: Atom, balanced: bool) -> Trigger:
        path = self.root.path(atom)
        carriers = (update_carrier(self.query, atom),)
        body: Body = ()
        for i, node in enumerate(path):
            if node in self.lights:
                steps = self.beside(path[: i + 1], atom)
                body += self.where_light(node, self.join(atom.variables, carriers, steps, self.lights[node]))
        change = self.join(atom.variables, carriers, self.beside(path, atom), self.delta)
        body += (Changed(change), *self.arrive(atom, path, carriers))
        if balanced:
            body += (Balance(self.stores[atom.name].name, atom.variables),)
        return trigger(self.query, atom, body)

    def where_light(self, node: CanonicalNode, body: Body) -> Body:
        heavy = self.partitionings[node].heavy
        if heavy is None:
            return body
        return (Lookup(heavy.name, heavy.key, self.namer.alias(heavy.name), (), body),)

    def arrive(self, item: Item, path: Path, carriers: Carriers) -> Body:
        """Add a payload to the view of an item, and to the views above it. The path begins above the item."""
        node, rest = path[0], path[1:]
        add = add_to(self.view(item), carriers)
        if node.is_open:
            return (self.met(add, item, path),)
        others = tuple(self.step(other) for other in node.items if other is not item)
        start = Join(frozenset(node.key), carriers, others)
        return (add, *nest(start, lambda done: self.arrive(node, rest, done.carriers), self.indexes))

    def met(self, add: Add, item: Item, path: Path, signs: tuple[int, ...] = (1, -1)) -> Add:
        """An Add to the view of an item below an open node. If it makes a row appear or vanish, the node's view may
        change, too. ``signs``: 1 if the Add can make rows appear, -1 if it can make them vanish."""
        appear, vanish = (self.present(item, path, sign) if sign in signs else () for sign in (1, -1))
        return replace(add, appear=appear, vanish=vanish)

    def present(self, item: Item, path: Path, sign: int) -> Body:
        """The first row of an item has appeared (1), or its last has vanished (-1), for values of the node above it."""
        node = path[0]
        if node not in self.joins:
            return self.counted(path, sign)
        view = self.joins[node]
        then = self.counted(path, sign)
        alias = ""
        heavy = self.partitionings[node].heavy if node in self.partitionings else None
        if heavy is not None and sign > 0:
            alias = self.namer.alias(f"{view.name}_new")
            then = (Lookup(heavy.name, heavy.key, self.namer.alias(heavy.name), (Move(alias, HEAVY, 1),)), *then)
        appear, vanish = (then, ()) if sign > 0 else ((), then)
        body: Body = (Add(view.name, view.key, (COUNT,), (Monomial((), sign),), appear, vanish, alias=alias),)
        for other in reversed(node.items):
            if other is not item:
                step = self.step(other)
                body = (Lookup(step.view, step.key, step.alias, body),)
        return body

    def counted(self, path: Path, sign: int) -> Body:
        """A row of the first node of a path, an open one, has appeared or vanished."""
        node, rest = path[0], path[1:]
        if not rest:
            return ()
        view = self.counts[node]
        return (self.met(add_count(view, sign), node, rest, (sign,)),)

    # Parts

    def balancing(self) -> Balancing | None:
        parted = {node: one.heavy for node, one in self.partitionings.items() if one.heavy is not None}
        if not parted:
            return None
        partitions: list[Partition] = []
        auxiliary: list[str] = []
        recompute: list[Statement] = []
        for node, heavy in parted.items():
            one, rows = self.partitionings[node], self.joined(node)
            partitions += [self.partition(node, atom, heavy) for atom in one.atoms]
            auxiliary.append(self.lights[node].name)
            if len(one.atoms) > 1:
                auxiliary.append(heavy.name)
                for view in one.values.values():
                    recompute.append(Loop(view.name, view.key, (), self.namer.alias(view.name), (add_count(heavy, 1),)))
            enter: Body = (Move(rows.alias, HEAVY, 1),)
            side = Lookup(heavy.name, heavy.key, self.namer.alias(heavy.name), enter, self.made_light(node, 1))
            recompute.append(Loop(rows.view, rows.key, (), rows.alias, (Move(rows.alias, HEAVY, -1), side)))
        names = tuple(view.name for view in self.stores.values())
        return Balancing(names, tuple(partitions), tuple(auxiliary), tuple(recompute), reads_heavy=True)

    def made_light(self, node: CanonicalNode, sign: int) -> Body:
        """Add the join below a value of a node to the view of the light values, or remove it. The value has a row."""
        return self.join(node.key, (), self.opened(node)[1:], self.lights[node], sign)

    def partition(self, node: CanonicalNode, atom: Atom, heavy: View) -> Partition:
        """The partition of a store by the variables of a node."""
        values, store, rows = self.partitionings[node].values[atom.name], self.stores[atom.name], self.joined(node)
        up = (*self.made_light(node, -1), Move(rows.alias, HEAVY, 1))
        down = (Move(rows.alias, HEAVY, -1), *self.made_light(node, 1))
        up, down = ((Lookup(rows.view, rows.key, rows.alias, body),) for body in (up, down))
        rise: Body = (add_count(values, 1), *up)
        sink: Body = (add_count(values, -1), *down)
        if heavy != values:
            rise = (add_count(values, 1), replace(add_count(heavy, 1), appear=up))
            sink = (add_count(values, -1), replace(add_count(heavy, -1), vanish=down))
        by = tuple(i for i, v in enumerate(atom.variables) if v in node.key)
        self.indexes.setdefault(store.name, set()).add(by)
        return Partition(store.name, by, values.name, "", self.given[atom.name], values.key, rise, sink)

    # The result

    def listing(self, node: CanonicalNode) -> tuple[Source, ...]:
        """The sources of the free variables at a node and below. The variables above the node are bound."""
        inner = tuple(source for child in node.children if child.is_open for source in self.listing(child))
        if node.free:
            return (self.rows(self.joined(node), node), *inner)
        light = self.lights.get(node)
        stored = None if light is None else self.rows(Step(light.name, light.key, "", None), node)
        if stored is not None and self.partitionings[node].heavy is None:
            return (stored,)
        heavy = self.rows(self.joined(node), node, "" if stored is None else HEAVY)
        has = self.below(node, (), lambda _: (Emit((), (Monomial(()),)),), presence=True)
        return (UnionSource(node.listed, stored, heavy, inner, has),)

    def rows(self, step: Step, node: CanonicalNode, among: str = "") -> SliceSource:
        bound = tuple(i for i, v in enumerate(step.key) if v in node.above)
        if among:
            self.parts.setdefault(step.view, set()).add(bound)
        elif bound:
            self.indexes.setdefault(step.view, set()).add(bound)
        return SliceSource(step.view, step.key, bound, among)

    def found(self, node: CanonicalNode, carriers: Carriers, finish: Finish, presence: bool = False) -> Body:
        """Look up the payload of given values of the free variables at a node and below, and pass it to ``finish``.

        ``presence``: only find out whether the values are in the result.
        """
        if node.free:
            body = self.below(node, carriers, finish, presence)
            step = self.joined(node)
            return (Lookup(step.view, step.key, step.alias, body),) if presence else body
        atoms = frozenset(a.name for a in node.atoms_below())
        components = COUNTED if presence else components_over(self.query, atoms)
        alias = self.namer.alias(f"{'has' if presence else 'u'}_{joined_name(node.variables)}")

        def into(inner: Carriers) -> Body:
            return (Into(alias, product(components, () if presence else inner)),)

        body = ()
        light = self.lights.get(node)
        if light is not None:
            row = self.namer.alias(light.name)
            if self.partitionings[node].heavy is None:
                more = () if presence else (row_carrier(row, light),)
                return (Lookup(light.name, light.key, row, finish((*carriers, *more))),)
            body += (Lookup(light.name, light.key, row, into((row_carrier(row, light),))),)
        step = self.joined(node)
        rows = self.rows(step, node, "" if light is None else HEAVY)
        inside = self.below(node, (), into, presence)
        body += (Loop(rows.view, rows.key, rows.bound, step.alias, inside, rows.among),)
        carrier = sum_carrier(alias, components)
        return (Sum(alias, components, body, finish((*carriers, carrier))),)

    def below(self, node: CanonicalNode, carriers: Carriers, finish: Finish, presence: bool = False) -> Body:
        """As ``found``, for the items of an open node whose variables are bound."""
        items = tuple(i for i in node.items if not presence or (isinstance(i, CanonicalNode) and i.is_open))

        def rest(i: int, carriers: Carriers) -> Body:
            if i == len(items):
                return finish(carriers)
            item = items[i]
            if isinstance(item, CanonicalNode) and item.is_open:
                return self.found(item, carriers, lambda more: rest(i + 1, more), presence)
            step = self.step(item)
            assert step.carrier is not None
            return (Lookup(step.view, step.key, step.alias, rest(i + 1, (*carriers, step.carrier))),)

        return rest(0, carriers)


def _power(exponent: float) -> str:
    if exponent in (0, 1):
        return "O(N)" if exponent else "O(1)"
    return f"O(N^{exponent:g})"
