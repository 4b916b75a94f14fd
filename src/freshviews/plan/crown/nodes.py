"""Makes the nodes of a join tree for change propagation without joins, and the views that each node stores.

- A node has the rows of a relation, or projections of its child nodes' rows.
- The subset ``joined`` has the rows of a node that match every child. The CROWN paper calls it V_s.
- An index of ``joined`` finds rows by the variables that a node shares with its parent. The paper calls it V_p.
"""

from __future__ import annotations

from dataclasses import field, replace

from freshviews.plan.leaves import components_over, leaf_view
from freshviews.plan.naming import Namer
from freshviews.program.payload import COUNT, COUNTED, Component
from freshviews.program.views import View
from freshviews.query.acyclic import JoinTree
from freshviews.query.query import Atom, Query
from freshviews.records import dataclass

JOINED = "joined"
LIVE = "live"
JOINS = "joins"


@dataclass(eq=False)
class TreeNode:
    """A node. ``variables`` and ``key`` (those shared with the parent) are in the order of the view's key.

    ``rows`` stores the node's own rows, None if no statement reads them. ``sums`` stores the payloads of a closed node,
    by key. ``wanted`` collects the indexes that statements need, by subset (empty name: of all rows).

    A node is *free* if all its variables and all variables of the nodes above it are in the output. In a program whose
    rows have payloads (``counted``), every other node is *closed*. The projection of a closed node is a separate view,
    which stores sums of payloads.

    An *optional* node has the rows of an optional atom or of a projection of an optional atom. An optional node does
    not filter the rows of its parent. A *negated* node does: a row of its parent is joined only while the negated node
    has no matching row.
    """

    name: str
    variables: tuple[str, ...]
    atom: Atom | None
    free: bool
    fillers: tuple[TreeNode, ...] = ()
    others: tuple[TreeNode, ...] = ()
    optionals: tuple[TreeNode, ...] = ()
    mark: str = ""
    parent: TreeNode | None = None
    key: tuple[str, ...] = ()
    rows: View | None = None
    sums: View | None = None
    counted: bool = False
    wanted: dict[str, set[tuple[int, ...]]] = field(default_factory=dict)

    @property
    def children(self) -> tuple[TreeNode, ...]:
        return (*self.fillers, *self.others, *self.optionals)

    @property
    def optional(self) -> bool:
        """True if the node does not filter its parent: if no row has a key, a default row is read."""
        return self.mark == "?"

    @property
    def negated(self) -> bool:
        """True if its rows exclude those of the parent."""
        return self.mark == "!"

    @property
    def closed(self) -> bool:
        """True if the parent reads the payloads of its rows, not only their presence."""
        return self.counted and not self.free and not self.negated

    @property
    def is_union(self) -> bool:
        """True if its rows are keys of its fillers, counted by how many fillers have them."""
        return self.atom is None and not self.is_projection

    @property
    def is_projection(self) -> bool:
        """True if its rows are the sums of its one filler."""
        return self.atom is None and len(self.fillers) == 1 and self.fillers[0].closed

    @property
    def full(self) -> tuple[str, int] | None:
        """The component that counts matching children, and its value for a joined row; None if all rows are joined."""
        if self.others:
            return JOINS, len(self.others)
        if self.is_union and len(self.fillers) > 1:
            return COUNT, len(self.fillers)
        return None

    @property
    def has_joined(self) -> bool:
        """True if its joined rows are a subset. At the root this is so only if not all rows are joined, or if rows of
        an optional child are live through them."""
        marks = any(child.has_live and len(child.key) < len(self.variables) for child in self.optionals)
        return self.parent is not None or self.full is not None or marks

    @property
    def has_live(self) -> bool:
        """True if a statement asks which of the node's rows are in the result: the change of a child is enumerated
        upwards from them."""
        return self.free and self.parent is not None and any(c.free or c.closed for c in self.reporting)

    @property
    def reporting(self) -> tuple[TreeNode, ...]:
        """The children whose changes may change the result while the node's rows stay. Excluded are the child whose
        sums are these rows, and negated children, which decide whether rows are joined."""
        children = (*self.others, *self.optionals) if self.is_projection else self.children
        return tuple(child for child in children if not child.negated)

    def view(self) -> View:
        assert self.rows is not None
        return self.rows

    def row(self, names: Namer, what: str = "row") -> str:
        """The name of a row of the node. ``row_sums``: of its sums, read for the payload. ``row_met``: of the node or
        its sums, of which only the presence is read. ``row_total``: of the sum that is added to its sums."""
        view = self.rows or self.sums
        assert view is not None
        return names.of((self, what), f"{view.name.lower()}_{what}")

    def places(self, variables: tuple[str, ...]) -> tuple[int, ...]:
        """Positions of some of its variables in the node's key."""
        return tuple(i for i, v in enumerate(self.variables) if v in variables)

    def index(self, subset: str, variables: tuple[str, ...]) -> tuple[int, ...]:
        """The index of a subset by some of the variables. It is added to ``wanted``."""
        at = self.places(variables)
        self.wanted.setdefault(subset, set()).add(at)
        return at

    def nodes(self) -> tuple[TreeNode, ...]:
        """The node and those below it, parents before children."""
        return (self, *(n for child in self.children for n in child.nodes()))

    def atoms(self) -> frozenset[str]:
        return frozenset(n.atom.name for n in self.nodes() if n.atom is not None)


def nodes_of(query: Query, free: frozenset[str], tree: JoinTree, counted: bool, names: Namer) -> TreeNode:
    """The root of the nodes of a tree, with views. ``free`` are the output variables, for which the tree was made."""
    builder = _Builder(query, free, counted, names)
    root = builder.node(tree)
    if not root.free:
        root = builder.above(root, ())
    builder.link(root, None)
    for node in root.nodes():
        builder.store(node)
    return root


@dataclass(frozen=True)
class _Builder:
    query: Query
    free: frozenset[str]
    counted: bool
    names: Namer

    def node(self, tree: JoinTree) -> TreeNode:
        children = tuple(self._child(child, tree.variables) for child in tree.children)
        optionals = tuple(c for c in children if c.optional)
        variables = self._ordered(tree.variables)
        is_free = tree.variables <= self.free
        if tree.name is not None:
            atom, others = self.query.atom(tree.name), tuple(c for c in children if not c.optional)
            return TreeNode(
                tree.name, atom.variables, atom, is_free, (), others, optionals, tree.mark, counted=self.counted
            )
        fillers = tuple(c for c in children if not c.mark and tree.variables <= set(c.variables))
        others = tuple(c for c in children if c not in fillers and not c.optional)
        if len(fillers) > 1 and others:
            fillers = (TreeNode(_label(variables), variables, None, is_free, fillers, counted=self.counted),)
        return TreeNode(
            _label(variables), variables, None, is_free, fillers, others, optionals, tree.mark, counted=self.counted
        )

    def _child(self, tree: JoinTree, above: frozenset[str]) -> TreeNode:
        """A child. Between a free node and one that is not, a projection on the new free variables is inserted."""
        child = self.node(tree)
        if above <= self.free and not child.free and tree.variables & self.free - above:
            return self.above(child, self._ordered(tree.variables & self.free))
        return child

    def above(self, child: TreeNode, variables: tuple[str, ...]) -> TreeNode:
        """A generalised relation over one child."""
        kept = variables or tuple(v for v in child.variables if v in self.free)
        return TreeNode(_label(kept), kept, None, True, (child,), counted=self.counted)

    def _ordered(self, variables: frozenset[str]) -> tuple[str, ...]:
        return tuple(v for v in self.query.variables if v in variables)

    def link(self, node: TreeNode, parent: TreeNode | None) -> None:
        node.parent = parent
        if parent is not None:
            node.key = tuple(v for v in parent.variables if v in node.variables)
            # An optional node that binds no variable of the output is read for its payload alone.
            node.free = node.free and parent.free and not (node.optional and len(node.key) == len(node.variables))
        for child in node.children:
            self.link(child, node)

    def store(self, node: TreeNode) -> None:
        """Give a node its views. A closed leaf needs its sums only. The sums of the filler of a projection are the rows
        of the projection."""
        if node.negated:
            assert node.atom is not None
            view = View(self.names.view(node.atom.name), node.variables, COUNTED)
            node.rows = replace(view, definition=f"{node.atom.relation}, whose rows exclude others")
            return
        if node.closed:
            if node.atom is not None and node.children:
                node.rows = leaf_view(self.query, node.atom, self.names.view(node.atom.name))
            assert node.parent is not None
            if node.parent.free and node.parent.is_projection and node in node.parent.fillers:
                node.sums = node.parent.rows
            else:
                what = node.atom.name if node.atom is not None and not node.children else f"P_{_word(node.name)}"
                node.sums = View(
                    self.names.view(what),
                    node.key,
                    components_over(self.query, node.atoms()),
                    definition=f"projection of {node.name}",
                )
            return
        if node.atom is not None:
            view = leaf_view(self.query, node.atom, self.names.view(node.atom.name))
            if not self.counted:
                view = View(view.name, view.key, COUNTED, definition=view.definition)
        elif node.is_projection:
            components = components_over(self.query, node.fillers[0].atoms())
            what = f"projection of {node.fillers[0].name}"
            view = View(self.names.view(f"P_{_word(node.name)}"), node.variables, components, definition=what)
        else:
            what = "meeting of " + ", ".join(c.name for c in node.fillers)
            view = View(self.names.view(f"G_{_word(node.name)}"), node.variables, COUNTED, definition=what)
        if node.others:
            components = (*view.components, Component(JOINS, "integer"))
            view = View(view.name, view.key, components, definition=view.definition, tally=JOINS)
        node.rows = view


def _label(variables: tuple[str, ...]) -> str:
    return f"[{', '.join(variables)}]"


def _word(label: str) -> str:
    return "_".join(label.strip("[]").split(", ")) or "all"
