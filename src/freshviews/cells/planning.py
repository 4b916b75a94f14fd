"""Chooses how the rows of each table are divided among cells.

Views are planned one by one, the largest first. If a table was already divided for an earlier view, a later view may
use the same division. It does so if each cell then gets fewer rows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import islice, product

from freshviews.catalog.catalog import Catalog, column_named
from freshviews.catalog.definitions import TableDef, ViewDef
from freshviews.cells.cell_plan import CellPlan, Copy, Dim, HeavyValues, Link, Part, Role, Value, Values
from freshviews.cells.expected import rows_per_cell, rows_taken, sizes_of
from freshviews.cells.foreign_keys import pairs
from freshviews.cells.needed import needed_views, reads_views_alone, tables_read
from freshviews.cells.routing_by_row import cast
from freshviews.cells.shares import Grid, Layout, best_layout, is_local, loads_of, rounded
from freshviews.cells.splitting import (
    Splitting,
    in_one_cell,
    kind_of,
    mergeable,
    plain_columns,
    private_column,
    splitting_columns,
    splitting_of,
    table_named,
)
from freshviews.cells.spreading import Spread, common_kind, spread_block, tables_of
from freshviews.errors import PlanError
from freshviews.query.block import Block
from freshviews.records import dataclass
from freshviews.sql.blocks.building.variables import free_name

Heavy = Mapping[tuple[str, str], Sequence[Value] | Mapping[Value, float]]
"""Per table and column, the values that occur too often, with or without the number of rows of each. Without numbers,
the values are assumed to have equally many rows, and most of the table together. NULL and NaN are not distinguished."""

MOST_HEAVY = 2
"""Limit on the variables of a block that are split into heavy and light; each doubles the patterns."""


def plan_cells(catalog: Catalog, cells: int, sizes: Mapping[str, float], heavy: Heavy | None = None) -> CellPlan:
    """Choose roles and parts for ``cells`` cells.

    ``sizes``: expected rows per table; a table without one has the mean of the others, or 1. Views are planned one by
    one, the largest first. A row costs once for being stored by a role and once for being read by a view. Storing it by
    a role that exists already costs nothing. So the plan of a view is the best given the views before it, not the best
    over all views. A foreign key is checked in existing roles if possible, otherwise in as few added ones as possible.
    Raises PlanError if a name has an @.
    """
    if cells < 1:
        raise ValueError(f"the number of cells must be at least 1, not {cells}")
    known = sizes_of(catalog, sizes)
    made = tuple(_heavy_values(catalog, *place, values, known) for place, values in (heavy or {}).items())
    return extended(CellPlan(cells, heavy=made), catalog, sizes)


def extended(plan: CellPlan, catalog: Catalog, sizes: Mapping[str, float]) -> CellPlan:
    """Return the plan after views or tables were added or dropped.

    Roles that are still needed keep name and routing, and parts of remaining views and links of remaining foreign keys
    do not change. Unused roles are removed, except the first role of a table. Raises PlanError as ``plan_cells``.
    """
    if plan.cells == 1:
        return replace(plan, roles=tuple(Role(table.name, table.name, 1) for table in catalog.tables.values()))
    _refuse(catalog)
    planner = _Planner(plan, catalog, sizes_of(catalog, sizes))
    return planner.run()


def _refuse(catalog: Catalog) -> None:
    for name in (*catalog.tables, *catalog.views):
        if "@" in name:
            raise PlanError(
                f"the name {name} has an @, which is reserved for cells; choose another name, or use 1 cell"
            )


def _heavy_values(
    catalog: Catalog,
    table: str,
    column: str,
    values: Sequence[Value] | Mapping[Value, float],
    sizes: Mapping[str, float],
) -> HeavyValues:
    found = catalog.table(table)
    definition = None if found is None else column_named(found.columns, column)
    if found is None or definition is None:
        raise PlanError(f"heavy values of {table}.{column}: table {table} has no column {column}")
    kind = str(kind_of((definition.type,)))
    counted = values if isinstance(values, Mapping) else dict.fromkeys(values, sizes[found.name] / (len(values) + 1))
    kept = {cast(value, kind): float(rows) for value, rows in counted.items() if value is not None and value == value}
    return HeavyValues(found.name, definition.name, kind, tuple(kept), tuple(kept.values()))


@dataclass(frozen=True)
class _Choice:
    """A way to spread a block that reads views: ``roles`` by table, and the variable that splits it."""

    rank: tuple[float, bool, float]
    atoms: tuple[tuple[str, Spread], ...]
    roles: Mapping[tuple[str, str | None], Role]
    shares: tuple[tuple[str, int], ...]
    offset: int
    merged: bool


@dataclass
class _Planner:
    """A plan under construction."""

    plan: CellPlan
    catalog: Catalog
    sizes: Mapping[str, float]
    roles: list[Role] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    loads: list[float] = field(default_factory=list)

    def run(self) -> CellPlan:
        needed = needed_views(self.catalog)
        names = {view.name.lower() for view in needed}
        self.numbers = dict(self.plan.numbers)
        self.loads = [0.0] * self.plan.cells
        for role in self.plan.roles:
            if self.catalog.table(role.table) is not None:
                self._keep(role)
        self.parts = [part for part in self.plan.parts if part.view.lower() in names]
        fresh = [v for v in needed if not self.plan.parts_of(v.name) and not reads_views_alone(v, self.catalog)]
        for view in sorted(fresh, key=lambda v: -sum(self.sizes[t] for t in tables_read(v, self.catalog))):
            for number, block in enumerate(view.blocks):
                if all(self.catalog.table(atom.relation) is not None for atom in block.query.occurrences):
                    self._plan_block(view, number, block)
                else:
                    self._plan_with_copies(view, number, block)
        here = {role.name for role in self.roles}
        self.links = [link for link in self.plan.links if {link.child, link.parent} <= here]
        read = {name for part in self.parts for name in part.roles}
        read |= {name for link in self.links for name in (link.child, link.parent)}
        everything = CellPlan(self.plan.cells, tuple(self.roles))
        kept = [role for role in self.roles if role.name in read or role.name == role.table]
        whole = {role.table for role in kept if not role.heavy}
        # If every role takes only some values, keep roles that together have each row of the table.
        rest = {role.name for table in self.catalog.tables if table not in whole for role in everything.sources(table)}
        self.roles = [role for role in self.roles if role in kept or role.name in rest]
        for table in self.catalog.tables.values():
            if all(role.table != table.name for role in self.roles):
                self._role_of_unread(table)
        for table in self.catalog.tables.values():
            self._link(table)
        order = list(self.catalog.tables)
        tables = {role.name: role.table for role in self.roles}
        # A role comes after another one of the same table that its rows refer to.
        later = {k.child for k in self.links if k.child != k.parent and tables[k.child] == tables[k.parent]}
        self.roles.sort(key=lambda role: (order.index(role.table), role.name in later))
        views = [view.name for view in needed]
        self.parts.sort(key=lambda part: (views.index(part.view), part.block))
        roles, parts, links = tuple(self.roles), tuple(self.parts), tuple(self.links)
        return CellPlan(self.plan.cells, roles, parts, self.plan.heavy, self.numbers, links)

    # Blocks

    def _plan_block(self, view: ViewDef, number: int, block: Block) -> None:
        _, whole = self._search(block, {}, {})
        heavy = self._heavy_of(block, dict(whole.shares))
        made: list[tuple[Part, bool]] = []
        for flags in product((False, True), repeat=len(heavy)):
            pattern = dict(zip(heavy, flags, strict=True))
            filters = {atom.name: self._filters(block, atom.name, pattern, heavy) for atom in block.query.occurrences}
            splitting, layout = self._search(block, pattern, filters)
            if layout.offset is None:
                layout = replace(layout, offset=self._offset(layout.span, loads_of(splitting, layout)[0] / 2))
            offset = layout.offset
            assert offset is not None
            reads = []
            for atom in splitting.atoms:
                dims = _dims(splitting, atom.columns, layout)
                role = Role(atom.table, atom.table, self.plan.cells, dims, offset, filters[atom.name])
                reads.append((atom.name, self._role(role)))
            part = Part(view.name, number, tuple(reads), layout.shares, offset, tuple(pattern.items()))
            made.append((part, is_local(splitting, layout)))
        apart = in_one_cell(block, heavy)
        local = (apart or not heavy) and all(alone for _, alone in made)
        local = local and block.limit is None and not _is_combined(view, block)
        self.parts += [replace(part, merged=not local) for part, _ in made]

    def _search(
        self, block: Block, pattern: Mapping[str, bool], filters: Mapping[str, tuple[Values, ...]]
    ) -> tuple[Splitting, Layout]:
        """The best layout of a block for a pattern of heavy variables."""
        tables = {atom.name: table_named(self.catalog, atom.relation).name for atom in block.query.occurrences}
        sizes = {
            atom: rows_taken(table, filters.get(atom, ()), self.sizes, self.plan.heavy)
            for atom, table in tables.items()
        }
        used: dict[str, set[str]] = {table: set() for table in tables.values()}
        grids: dict[Grid, None] = {}
        for atom, table in tables.items():
            for role in self.roles:
                if role.table == table and role.heavy == filters.get(atom, ()):
                    used[table].update(dim.column for dim in role.dims if dim.column is not None)
                    grids[Grid(table, tuple((dim.column, dim.share) for dim in role.dims), role.offset)] = None
        light = {variable: not inside for variable, inside in pattern.items()}
        splitting = splitting_of(block, self.catalog, sizes, light, used)
        return splitting, best_layout(splitting, self.plan.cells, tuple(grids))

    def _filters(
        self, block: Block, atom: str, pattern: Mapping[str, bool], heavy: Mapping[str, HeavyValues]
    ) -> tuple[Values, ...]:
        """The conditions on an atom's rows under a pattern."""
        table = table_named(self.catalog, block.query.atom(atom).relation)
        allowed = {column.name for column in splitting_columns(table)}
        found = []
        for variable, inside in pattern.items():
            column = plain_columns(block, variable).get(atom)
            if column in allowed:
                assert column is not None
                one = heavy[variable]
                found.append(Values(column, one.kind, one.values, inside))
        return tuple(found)

    def _heavy_of(self, block: Block, shares: Mapping[str, int]) -> dict[str, HeavyValues]:
        """The variables of a block with heavy values, most rows first, and the heavy values of each.

        A value is harmless if it has no more rows than one coordinate should have.
        """
        found: dict[str, HeavyValues] = {}
        for variable, share in shares.items():
            plain = plain_columns(block, variable)
            tables = {name: table_named(self.catalog, block.query.atom(name).relation) for name in plain}
            allowed = [n for n, c in plain.items() if c in {one.name for one in splitting_columns(tables[n])}]
            types = [column_named(tables[name].columns, column) for name, column in plain.items()]
            kind = kind_of(one.type for one in types if one is not None)
            lists = [
                one
                for one in self.plan.heavy
                if any(one.table == tables[name].name and one.column == plain[name] for name in plain)
            ]
            rows: dict[Value, float] = {}
            for one in lists:
                for value, count in zip(one.values, one.rows, strict=True):
                    if count * share <= self.sizes[one.table]:
                        continue
                    rows[cast(value, str(kind))] = rows.get(cast(value, str(kind)), 0.0) + count
            if kind is None or not allowed or not rows:
                continue
            whole_groups = in_one_cell(block, (variable,))
            read = (table_named(self.catalog, atom.relation) for atom in block.query.occurrences)
            if not whole_groups and not mergeable(block, read):
                continue
            found[variable] = HeavyValues("", variable, kind, tuple(rows), tuple(rows.values()))
        most = sorted(found.values(), key=lambda one: -sum(one.rows))[:MOST_HEAVY]
        return {one.column: one for one in most}

    # Blocks that read views, and tables that no view reads

    def _plan_with_copies(self, view: ViewDef, number: int, block: Block) -> None:
        """Split by the best variable, or put everything in one cell."""
        best = min(self._choices(block), key=lambda choice: choice.rank)
        copies: list[Copy] = []
        names: dict[Spread, str] = {}
        taken = {copy.name for part in self.parts for copy in part.copies}

        def name_of(spread: Spread) -> str:
            if spread not in names and spread.is_view:
                reads = tuple(tuple((atom, name_of(one)) for atom, one in atoms) for atoms in spread.blocks)
                name = free_name(f"{spread.relation}@{view.name}", taken)
                taken.add(name)
                copies.append(Copy(name, spread.relation, reads))
                names[spread] = name
            elif spread not in names:
                names[spread] = self._role(best.roles[spread.relation, spread.column])
            return names[spread]

        reads = tuple((atom, name_of(one)) for atom, one in best.atoms)
        merged = best.merged or _is_combined(view, block)
        part = Part(view.name, number, reads, best.shares, best.offset, (), merged, tuple(copies))
        self.parts.append(part)

    def _choices(self, block: Block) -> Iterator[_Choice]:
        whole = spread_block(block, None, self.catalog)
        assert whole is not None
        tables = tables_of(whole)
        for cell in range(self.plan.cells):
            roles = {(t, c): Role(t, t, self.plan.cells, (), cell) for t, c in tables}
            read, kept = self._rows(roles.values())
            yield _Choice((rounded(read + kept), False, rounded(self.loads[cell])), whole, roles, (), cell, False)
        may_merge = mergeable(block, (table_named(self.catalog, name) for name, _ in tables))
        for variable in block.query.variables:
            atoms = spread_block(block, variable, self.catalog)
            local = in_one_cell(block, (variable,))
            kind = None if atoms is None else common_kind(tables_of(atoms), self.catalog)
            if atoms is None or kind is None or not (local or may_merge):
                continue
            roles = {}
            for table, column in tables_of(atoms):
                dim = Dim(column, "" if column is None else kind, 0, self.plan.cells, 1)
                roles[table, column] = Role(table, table, self.plan.cells, (dim,))
            read, kept = self._rows(roles.values())
            shares = ((variable, self.plan.cells),)
            yield _Choice((rounded(read + kept), not local, 0.0), atoms, roles, shares, 0, not local)

    def _rows(self, roles: Iterable[Role]) -> tuple[float, float]:
        """Expected rows in a cell by these roles, and by those of them that do not exist yet."""
        there = {role.routing for role in self.roles}
        rows = [(rows_per_cell(r, self.sizes, self.plan.heavy), r.routing in there) for r in roles]
        return sum(n for n, _ in rows), sum(n for n, known in rows if not known)

    def _role_of_unread(self, table: TableDef) -> None:
        """A role for all rows of a table."""
        column = private_column(table, ())
        if column is None:
            offset = self._offset(1, self.sizes[table.name])
            self._role(Role(table.name, table.name, self.plan.cells, (), offset))
            return
        dim = Dim(column.name, str(kind_of((column.type,))), 0, self.plan.cells, 1)
        self._role(Role(table.name, table.name, self.plan.cells, (dim,)))

    # Foreign keys

    def _link(self, table: TableDef) -> None:
        """Choose the roles that check the foreign keys of a table, for keys without one."""
        names = {role.name for role in self.roles if role.table == table.name}
        known = {link.key for link in self.links if link.child in names}
        if table.trusted or len(known) == len(table.foreign_keys):
            return
        if all(role.heavy for role in self.roles if role.table == table.name):
            self._role_of_unread(table)
        for number, key in enumerate(table.foreign_keys):
            if number not in known:
                parent = table_named(self.catalog, key.table)
                found = pairs(key, table, parent, self.roles)
                # If a table refers to itself, one role checks all such keys, and it may come after others.
                choices = islice(found, 1) if parent == table else found
                child, other = min(choices, key=lambda pair: rounded(self._rows(pair)[1]))
                self.links.append(Link(self._role(child), number, self._role(other)))

    # Roles

    def _offset(self, span: int, rows: float) -> int:
        """The first cell of a new grid: the one for which the fullest cell has the fewest rows."""
        if span == self.plan.cells:
            return 0

        fullest = fullest_of(self.loads, span)
        return min(range(self.plan.cells), key=lambda offset: (rounded(fullest[offset] + rows), offset))

    def _role(self, wanted: Role) -> str:
        """The name of the role with this routing, which is made if it does not exist."""
        for role in self.roles:
            if role.routing == wanted.routing:
                return role.name
        table = wanted.table
        number = self.numbers.get(table, 0) + 1
        self.numbers[table] = number
        self._keep(replace(wanted, name=table if number == 1 else f"{table}@{number}"))
        return self.roles[-1].name

    def _keep(self, role: Role) -> None:
        self.roles.append(role)
        rows = rows_per_cell(role, self.sizes, self.plan.heavy)
        for cell in role.reached:
            self.loads[cell] += rows


def fullest_of(loads: Sequence[float], span: int) -> list[float]:
    """Per cell, the greatest load of the cell and the ``span`` - 1 cells after it, in a circle."""
    found: list[float] = []
    falling: deque[int] = deque()
    """Cells in a queue, each with a lower load than the one before it."""
    for place in range(len(loads) + span - 1):
        load = loads[place % len(loads)]
        while falling and loads[falling[-1] % len(loads)] <= load:
            falling.pop()
        falling.append(place)
        if place >= span - 1:
            if falling[0] <= place - span:
                falling.popleft()
            found.append(loads[falling[0] % len(loads)])
    return found


def _is_combined(view: ViewDef, block: Block) -> bool:
    """True if the block is an operand of a set operation, whose rows are looked up and so must be in one place."""
    return view.combined is not None and block.kind != "bag"


def _dims(splitting: Splitting, columns: Mapping[str, str], layout: Layout) -> tuple[Dim, ...]:
    """The dims of an atom under a layout; dims are identified by their seed."""
    dims: list[Dim] = []
    stride = 1
    for seed, (label, share) in enumerate(layout.shares):
        column = columns.get(label)
        dims.append(Dim(column, "" if column is None else splitting.kinds[label], seed, share, stride))
        stride *= share
    return tuple(dims)
