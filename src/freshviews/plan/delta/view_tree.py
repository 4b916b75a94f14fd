r"""Maintains a tree of views along an order of the variables (F-IVM; Nikolic and Olteanu, SIGMOD 2018).

At each variable X of the order, W_X joins the views below X, and V_X sums X out of W_X. The plan of Q(a, b, c) = R(a,
b) S(a, c, e) T(a, c, d), order a -> {b, c -> {d, e}}::

              W_a(a)                    on S(a, c, e) += m:
             /      \                       V_e[a, c] += m
         V_b(a)    V_c(a)                   if v_d := V_d[a, c]:
           |         |                          W_c[a, c] += m * v_d
        R(a, b)   W_c(a, c)                     V_c[a] += m * v_d
                  /      \                      if v_b := V_b[a]:
             V_d(a, c)  V_e(a, c)                   W_a[a] += m * v_d * v_b
                 |          |
            T(a, c, d)  S(a, c, e)
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, lru_cache, partial

from freshviews.errors import PlanError
from freshviews.plan.assemble import assemble
from freshviews.plan.delta.nest import Indexes, Join, Pending, Step, nest
from freshviews.plan.leaves import (
    Carrier,
    add_to,
    components_over,
    leaf_view,
    product,
    result_view,
    row_carrier,
    spanning_lifts,
    trigger,
    update_carrier,
    with_indexes,
)
from freshviews.plan.naming import RESULT, Namer
from freshviews.plan.optional import OptionalView, given_of, optional_view, update_negated, update_optional
from freshviews.plan.strategy import EVERY_KIND, BagPlanner, Request, Strategy
from freshviews.program.payload import COUNTED, Component, Monomial
from freshviews.program.program import Program, Trigger
from freshviews.program.results import Enumerated, Held
from freshviews.program.statements import Body, Changed, Emit, Into, Statement, Sum
from freshviews.program.views import View
from freshviews.query.dependencies import FD
from freshviews.query.query import Atom, Query
from freshviews.query.variable_order import OrderNode, VariableOrder, best_order, is_enumerable, update_exponents
from freshviews.records import dataclass

RESULT_FORM = "freshviews.result"
"""The option that selects whether the result is held or stays factorised."""
HELD, FACTORISED_FORM = "held", "factorised"


@dataclass(frozen=True)
class Branch:
    """A child of a join: the leaf of an atom, or the tree below a variable. The join reads ``view``.

    ``open``: the enumeration has to bind free variables below ``view``. ``optional``: all atoms below are optional, and
    the view is their optional view. ``negated``: the leaf of a negated atom.
    """

    view: View
    atom: Atom | None
    tree: Tree | None
    open: bool
    optional: OptionalView | None = None
    negated: bool = False

    @property
    def given(self) -> tuple[str, ...] | None:
        return None if self.optional is None else self.optional.given

    @cached_property
    def atoms(self) -> tuple[Atom, ...]:
        """The atoms of the leaves."""
        if self.atom is not None:
            return (self.atom,)
        assert self.tree is not None
        return tuple(atom for branch in self.tree.branches for atom in branch.atoms)


@dataclass(frozen=True)
class Tree:
    """The join at a variable (None: above all roots).

    ``key`` are the variables that remain after the variable is summed out. ``joined`` is W_X if it is stored, or the
    view of the only child if W_X equals that.
    """

    variable: str | None
    key: tuple[str, ...]
    branches: tuple[Branch, ...]
    pending: Pending
    joined: View | None


def plan(query: Query, dependencies: tuple[FD, ...] = ()) -> Program:
    """The view tree whose result is held by its free variables, over an order of least dynamic width.

    Departures:

    - Subtrees of optional atoms have optional views (``plan.optional``).
    - A negated atom is looked up at the first node that has its variables. Conditions and lifts across atoms are
      computed there, too.
    - A view is stored only if the update of a sibling or the enumeration reads it.
    - An update climbs row by row. A node X that does not store W_X may be an exception. If the loop over the siblings
      binds only variables that are summed out at X, the rows of the loop climb as one row: their sum.
    """
    order = best_order(query, False, dependencies)
    return _program(query, order, dependencies, factorised=False)


def plan_factorised(query: Query, dependencies: tuple[FD, ...] = ()) -> Program | None:
    """The view tree whose result stays factorised; None if no order allows it.

    There are two forms. ``plan`` holds the result in a view: free variables are not summed out. ``plan_factorised``
    needs an order with the free variables on top. The result stays factorised over the tree and is enumerated top-down.
    """
    order = _factorised_order(query, dependencies)
    return None if order is None else _program(query, order, dependencies, factorised=True)


@lru_cache(maxsize=16)
def _factorised_order(query: Query, dependencies: tuple[FD, ...]) -> VariableOrder | None:
    """The order of a view tree whose result can stay factorised; None without such an order."""
    order = best_order(query, True, dependencies)
    if not query.free or not is_enumerable(order, query, dependencies):
        return None
    return None if any(_joins_blindly(query, node) for node in order.nodes()) else order


def stays_factorised(request: Request) -> str | None:
    """An acyclic join with updates in at most linear time whose rows can be enumerated from the view tree."""
    if not request.kind.acyclic or request.kind.dynamic_width > 1 or _why_held(request) is not None:
        return None
    return "the result stays factorised over the view tree"


def _why_held(request: Request) -> str | None:
    """The reason for which the result of a block cannot stay factorised; None if it can."""
    if request.block.kind != "bag":
        return "groups are stored; only a SELECT of rows, without aggregates and DISTINCT, is factorised"
    if request.negative:
        return f"multiplicities of {', '.join(request.negative)} may be negative, as in any trusted table"
    if request.kinds:
        return f"a view tree with {' and '.join(sorted(request.kinds))} has its result stored"
    if _factorised_order(request.query, request.dependencies) is None:
        return "select all columns of conditions between tables, and a column of every table"
    return None


def serves_acyclic(request: Request) -> str | None:
    """An acyclic join, or one relation."""
    if not request.kind.acyclic and len(request.query.atoms) > 1:
        return None
    if request.kinds and not _places_all(request):
        return None
    reason = "acyclic: one view tree serves all updates"
    if request.block.kind == "bag" and request.negative:
        reason += f"; the result is held, as multiplicities of {', '.join(request.negative)} may be negative"
    return reason


def _places_all(request: Request) -> bool:
    """True if the view tree can join the optional and negated atoms of the query and of its aggregates' queries."""
    try:
        _plan(request)
    except PlanError:
        return False
    return True


def _joins_blindly(query: Query, node: OrderNode) -> bool:
    """True if a condition at a node needs variables from below the node while an enumeration goes on below: it would
    have to search for the rows that satisfy the condition."""
    on_the_way = {*node.keys, *node.here}
    going_on = any(set(child.variables).intersection(query.free) for child in node.children)
    return going_on and any(not on_the_way.issuperset(query.factors[place]) for place in node.factors)


def _program(query: Query, order: VariableOrder, dependencies: tuple[FD, ...], factorised: bool) -> Program:
    names = Namer(query)
    top = _Builder(query, factorised, names).top(order)
    indexes: Indexes = {}
    atoms = query.occurrences
    triggers = tuple(_trigger(query, top, atom, indexes, factorised, names) for atom in atoms)
    result: Held | Enumerated = Held(RESULT)
    if factorised:
        start = Join(frozenset(), (), tuple(_open_steps(top, names)), Pending())
        result = Enumerated(nest(start, lambda done: (_emit(query, done),), indexes, smaller=False))
    views = [v for v in _stored(top) if v is not None]
    if not factorised:
        views.append(result_view(query))
    worst = max(update_exponents(order, query, dependencies).values(), default=0)
    update = "O(1)" if worst == 0 else f"O(N^{worst})" if worst != 1 else "O(N)"
    space = "O(N)" if worst == 0 else "O(N + what the views below hold)"
    if not factorised:
        space = "O(N + |result|)" if worst == 0 else space
    bounds = (("update", update), ("delay", "O(1)"), ("space", space), ("order", _order_text(order)))
    return Program(query.name, query.free, with_indexes(views, indexes), triggers, result, "view_tree", bounds)


def _order_text(order: VariableOrder) -> str:
    """The order as EXPLAIN shows it."""
    lines = [f"greedy, over {order.greedy} variables"] if order.greedy else []
    return "\n".join([*lines, str(order).strip()])


class _Builder:
    """Builds the tree of joins bottom-up."""

    def __init__(self, query: Query, factorised: bool, names: Namer) -> None:
        self.query = query
        self.factorised = factorised
        self.names = names
        self.factors = query.factors
        self.lifts = spanning_lifts(query)

    def pending(self, places: tuple[int, ...]) -> Pending:
        conditions = self.query.conditions
        lifts = range(len(conditions), len(conditions) + len(self.lifts))
        return Pending(
            tuple(conditions[p] for p in places if p < len(conditions)),
            tuple(self.lifts[p - len(conditions)] for p in places if p in lifts),
        )

    def leaf(self, atom: Atom) -> Branch:
        view = leaf_view(self.query, atom, self.names.view(atom.name))
        optional = None if atom.given is None else optional_view(view, atom.given, self.names)
        return Branch(view, atom, None, False, optional, atom in self.query.negated)

    def negated(self, places: tuple[int, ...]) -> list[Branch]:
        """The leaves of the negated atoms among factors."""
        first = len(self.query.conditions) + len(self.lifts)
        return [self.leaf(self.query.negated[p - first]) for p in places if p >= first]

    def top(self, order: VariableOrder) -> Tree:
        branches = [self.node(root) for root in order.roots]
        branches += [self.leaf(self.query.atom(name)) for name in order.ground]
        branches += self.negated(order.constants)
        return Tree(None, (), tuple(branches), self.pending(order.constants), None)

    def node(self, node: OrderNode) -> Branch:
        branches = [self.node(child) for child in node.children]
        branches += [self.leaf(self.query.atom(name)) for name in node.atoms]
        branches += self.negated(node.factors)
        free_below = {v for v in node.variables if v in self.query.free}
        extra = set(node.carried) | (set() if self.factorised else free_below)
        key = (*node.keys, *(v for v in node.variables if v in extra and v not in node.keys))
        atoms = frozenset(a.name for branch in branches for a in branch.atoms)
        spanning = frozenset(self._spanning_below(node))
        components = components_over(self.query, atoms, spanning)
        is_open = self.factorised and bool(free_below)
        joined = None
        if is_open:
            joined = self._joined(node, tuple(branches), components)
        tree = Tree(node.variable, key, tuple(branches), self.pending(node.factors), joined)
        only = branches[0].tree
        if is_open and len(branches) == 1 and branches[0].open and only is not None and not node.factors:
            # In a chain, the rows below bind this variable, too. No view is needed between.
            tree = replace(only, key=key)
        view = View(self.names.view(f"V_{node.variable}"), key, components, definition=f"{node.variable} summed out")
        return Branch(view, None, tree, is_open, self._optional(view, branches, node.factors))

    def _optional(self, view: View, branches: list[Branch], factors: tuple[int, ...]) -> OptionalView | None:
        """The optional view of a node whose atoms are all optional; None for other nodes."""
        atoms = [atom for branch in branches if not branch.negated for atom in branch.atoms]
        given = given_of(atoms)
        if given is None:
            return None
        # A view has one default row; two branches that are looked up by the same values need one each.
        several = sum(b.given is not None and set(b.given) <= set(given) for b in branches) > 1
        if factors or several or not set(view.key).issuperset(given):
            raise PlanError(
                f"{self.query.name}: view_tree cannot build {view.name}, which has outer joins; set first_order"
            )
        return optional_view(view, given, self.names)

    def _spanning_below(self, node: OrderNode) -> list[str]:
        first = len(self.query.conditions)
        names = [self.lifts[p - first][0] for p in node.factors if first <= p < first + len(self.lifts)]
        return names + [name for child in node.children for name in self._spanning_below(child)]

    def _joined(self, node: OrderNode, branches: tuple[Branch, ...], components: tuple[Component, ...]) -> View:
        if len(branches) == 1 and not node.factors:
            return branches[0].view
        key = (*node.keys, *node.here, *(v for v in node.carried if v not in node.here))
        below = ", ".join(branch.view.name for branch in branches)
        return View(self.names.view(f"W_{node.here[-1]}"), key, components, definition=f"join of {below}")


def _stored(tree: Tree) -> list[View]:
    """The views that the update of a sibling or the enumeration reads, leaves first."""
    found: list[View] = []
    for branch in tree.branches:
        if branch.tree is not None:
            found += _stored(branch.tree)
        if len(tree.branches) > 1 or (tree.joined is not None and tree.joined is branch.view):
            found.append(branch.view)
            if branch.optional is not None and branch.optional.indicator is not None:
                found.append(branch.optional.indicator)
    if tree.joined is not None and all(tree.joined is not b.view for b in tree.branches):
        found.append(tree.joined)
    return found


def _path(tree: Tree, atom: Atom) -> list[tuple[Tree, Branch]]:
    """The path from the join of the atom up to the top: each join, with the branch that the update comes from."""
    for branch in tree.branches:
        if branch.atom is atom:
            return [(tree, branch)]
        if branch.tree is not None and atom in branch.atoms:
            return [*_path(branch.tree, atom), (tree, branch)]
    raise AssertionError(f"no atom {atom.name}")


def _trigger(query: Query, top: Tree, atom: Atom, indexes: Indexes, factorised: bool, names: Namer) -> Trigger:
    climb = _Climb(query, _path(top, atom), indexes, factorised, names)
    body = climb.arrive(0, frozenset(atom.variables), (update_carrier(query, atom),))
    return trigger(query, atom, body)


@dataclass(frozen=True)
class _Climb:
    """Writes the statements of an update along its path."""

    query: Query
    path: list[tuple[Tree, Branch]]
    indexes: Indexes
    factorised: bool
    names: Namer

    def arrive(self, level: int, bound: frozenset[str], carriers: tuple[Carrier, ...]) -> Body:
        """Store the bound delta of the branch at ``level`` of the path, emit the change, and go up."""
        tree, branch = self.path[level]
        body: list[Statement] = []
        if branch.negated:
            return update_negated(branch.view, carriers, partial(self._join, level, bound))
        if branch.optional is not None and not self._shares_default_row(level):
            return update_optional(branch.optional, carriers, partial(self._join, level, bound), self.names)
        if len(tree.branches) > 1 or tree.joined is branch.view:
            body.append(add_to(branch.view, carriers))
        if self.factorised and not branch.open and (tree.joined is not None or tree.variable is None):
            body.append(Changed(self._change(level, bound, carriers)))
        return (*body, *self._join(level, bound, carriers))

    def _shares_default_row(self, level: int) -> bool:
        """True if the optional view of a branch is part of the one above it, which has the default rows for both."""
        if level + 1 == len(self.path):
            return False
        own, above = self.path[level][1].given, self.path[level + 1][1].given
        return own is not None and above is not None and set(own) <= set(above)

    def _join(self, level: int, bound: frozenset[str], carriers: tuple[Carrier, ...]) -> Body:
        """Join the delta with the siblings, sum the variable out, arrive one level up."""
        tree, branch = self.path[level]
        last = level + 1 == len(self.path)
        if last and self.factorised:
            return ()
        siblings = tuple(_step(b, self.names) for b in tree.branches if b is not branch)
        stored = None if any(tree.joined is b.view for b in tree.branches) else tree.joined
        to = result_view(self.query) if last else self.path[level + 1][1].view
        loops = any(not bound.issuperset(s.key) for s in siblings)
        alias = self.names.of(("sum", level), f"u{level + 1}")
        summed = loops and stored is None and bound.issuperset(to.key)

        def finish(done: Join) -> Body:
            if summed:
                return (Into(alias, product(to.components, done.carriers)),)
            body = () if stored is None else (add_to(stored, done.carriers),)
            return (*body, *self._up(level, done.bound, done.carriers))

        join = Join(bound, carriers, siblings, tree.pending)
        statements = nest(join, finish, self.indexes)
        if not summed:
            return statements
        carrier = row_carrier(alias, to)
        return (Sum(alias, to.components, statements, self._up(level, bound, (carrier,))),)

    def _up(self, level: int, bound: frozenset[str], carriers: tuple[Carrier, ...]) -> Body:
        if level + 1 == len(self.path):
            return (add_to(result_view(self.query), carriers),)
        return self.arrive(level + 1, bound.intersection(self.path[level + 1][1].view.key), carriers)

    def _change(self, level: int, bound: frozenset[str], carriers: tuple[Carrier, ...]) -> Body:
        """Emit the rows of the result that the delta changes: join the siblings up the path, then bind the open
        variables below."""
        siblings: list[Step] = []
        opened: list[Step] = []
        for tree, branch in self.path[level:]:
            for other in tree.branches:
                if other is not branch:
                    step = _step(other, self.names)
                    siblings.append(replace(step, carrier=None) if other.open else step)
                    if other.open and other.tree is not None:
                        opened += _open_steps(other.tree, self.names)
        pending = Pending(tuple(c for tree, _ in self.path[level:] for c in tree.pending.conditions))
        start = Join(bound, carriers, (*siblings, *opened), pending)
        return nest(start, lambda done: (_emit(self.query, done),), self.indexes, smaller=False)


def _step(branch: Branch, names: Namer) -> Step:
    alias = names.row(branch.view.name)
    carrier = None if branch.negated else row_carrier(alias, branch.view)
    return Step(branch.view.name, branch.view.key, alias, carrier, given=branch.given, negated=branch.negated)


def _open_steps(tree: Tree, names: Namer) -> list[Step]:
    """Steps that bind the free variables of a tree top-down, and multiply the payloads below them."""
    if tree.variable is None:
        steps: list[Step] = []
        closed = [_step(b, names) for b in tree.branches if not b.open and len(tree.branches) > 1]
        for branch in tree.branches:
            if branch.tree is not None and branch.open:
                steps += _open_steps(branch.tree, names)
        return steps + closed
    assert tree.joined is not None
    view = tree.joined.name
    alias = names.of(("row", view, tree.variable), f"{view.lower()}_row_{tree.variable}")
    still_open = any(branch.open for branch in tree.branches)
    carrier = None if still_open else row_carrier(alias, tree.joined)
    steps = [Step(tree.joined.name, tree.joined.key, alias, carrier)]
    for branch in tree.branches:
        if branch.open and branch.tree is not None:
            steps += _open_steps(branch.tree, names)
        elif still_open:
            steps.append(_step(branch, names))
    return steps


def _emit(query: Query, done: Join) -> Emit:
    (monomial,) = product(COUNTED, done.carriers)
    return Emit(query.free, (monomial if monomial.factors else Monomial(()),))


def _plan(request: Request) -> Program:
    form = request.options.get(RESULT_FORM, HELD)
    if form not in (HELD, FACTORISED_FORM):
        raise PlanError(
            f"view {request.view.name}: '{RESULT_FORM}' takes '{HELD}' or '{FACTORISED_FORM}', not '{form}'"
        )
    if form == FACTORISED_FORM:
        why = _why_held(request)
        if why is not None:
            raise PlanError(f"view {request.view.name}: '{RESULT_FORM}' = '{FACTORISED_FORM}': {why}")
        return _plan_factorised(request)
    made = request.made.get(STRATEGY.name)
    if made is None:
        made = assemble(request.block, lambda query: plan(query, request.keys_of(query)), bool(request.negative))
        request.made[STRATEGY.name] = made
    return made


def _plan_factorised(request: Request) -> Program:
    program = plan_factorised(request.query, request.dependencies)
    assert program is not None, "_why_held is None"
    return program


STRATEGY = Strategy(
    "view_tree",
    _plan,
    plan,
    bags=lambda request: BagPlanner(plan),
    properties=frozenset({RESULT_FORM}),
    owns=frozenset({RESULT_FORM}),
    kinds=EVERY_KIND,
)
FACTORISED = replace(STRATEGY, plan=_plan_factorised, kinds=frozenset())
"""The same strategy with a factorised result, which the planner chooses where ``stays_factorised`` holds."""
