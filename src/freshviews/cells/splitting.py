"""Finds columns by which the rows of tables may be divided among cells, for a block (one SELECT).

An example is a column of an equality join: rows that join have equal values in it, so they meet in one cell.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from freshviews.catalog.catalog import Catalog, column_named
from freshviews.catalog.definitions import ColumnDef, TableDef
from freshviews.expr.nodes import Column
from freshviews.query.block import Block, Frame
from freshviews.query.grouping_sets import in_each
from freshviews.records import dataclass
from freshviews.types import SqlType


@dataclass(frozen=True)
class SplitAtom:
    """An atom. ``size``: expected rows. ``columns``: the labels that may split it, with the column of each."""

    name: str
    table: str
    size: float
    columns: Mapping[str, str]


@dataclass(frozen=True)
class Splitting:
    """The input of the search for shares.

    ``labels``: variables that split some atom, and private columns as ``atom.column``. ``free``: labels under which
    every group of every grouping set is in one cell. ``local``: a group must not span cells.
    """

    atoms: tuple[SplitAtom, ...]
    labels: tuple[str, ...]
    kinds: Mapping[str, str]
    free: frozenset[str]
    grouped: bool
    local: bool


def kind_of(types: Iterable[SqlType]) -> str | None:
    """The kind as which values of all these types are hashed; None if equal codes are not equal values."""
    kinds = {_kind(one) for one in types}
    if kinds <= {"bigint", "decimal(38,0)"} and len(kinds) == 2:
        return "decimal(38,0)"
    return kinds.pop() if len(kinds) == 1 else None


def _kind(of: SqlType) -> str:
    if of.is_integer:
        return "bigint"
    if of.is_decimal:
        return f"decimal(38,{of.scale})"
    return "double" if of.is_float else of.name.lower()


def splitting_columns(table: TableDef) -> tuple[ColumnDef, ...]:
    """The columns by which the rows of a table may be split; () if its keys share none, and for the clock.

    A variable splits an atom if a column of the atom, not a computed expression, binds the variable. All other atoms
    are copied along the variable's dim. So each row of a split atom finds all of its partners in its own cell. A table
    with keys is split only by a column in all of its keys. So rows with equal keys meet in one cell.

    An optional or negated atom is split only by variables that also split an ordinary atom. Along all other dims it is
    copied. So a lookup in the atom finds all matching rows in its own cell.
    """
    if table.internal:
        return ()
    keys = [{name.lower() for name in key} for key in table.keys]
    return tuple(c for c in table.columns if all(c.name.lower() in key for key in keys))


def private_column(table: TableDef, taken: Iterable[str]) -> ColumnDef | None:
    """The best column to split a table by if its join suggests none; columns with few values are avoided."""
    used = {name.lower() for name in taken}
    columns = [c for c in splitting_columns(table) if c.name.lower() not in used]
    columns.sort(key=lambda c: (c.type.name == "BOOLEAN", c.nullable))
    return columns[0] if columns else None


def plain_columns(block: Block, variable: str) -> dict[str, str]:
    """The atoms that bind a variable by a plain column and may be split by it, with that column."""
    found = {}
    query = block.query
    chosen = block.selection
    for atom in query.occurrences:
        if variable in atom.opened:
            continue
        if chosen is not None and variable not in chosen.group and atom.name != chosen.rows:
            # The value of a row is a sum over rows at other points.
            continue
        for name, expr in zip(atom.variables, atom.columns, strict=True):
            if name == variable and isinstance(expr, Column):
                found[atom.name] = expr.name
    return found if any(query.is_ordinary(query.atom(name)) for name in found) else {}


def group_variables(block: Block) -> tuple[str, ...]:
    """The free variables with one value per row of the view, in every grouping set; none for frames, whose rows may
    differ in all of them."""
    if _has_frames(block):
        return ()
    if block.gathering is None:
        return in_each(block)
    exprs = (output.expr for output in block.outputs[: block.gathering.groups])
    return tuple(expr.name for expr in exprs if isinstance(expr, Column))


def _has_frames(block: Block) -> bool:
    """True if the results of a row are over the rows of its frame."""
    return block.limit is not None and isinstance(block.limit.beside, Frame)


def in_one_cell(block: Block, variables: Iterable[str]) -> bool:
    """True if each cell can compute its own rows when the rows of the relations are split by these variables."""
    if block.kind == "bag" and block.gathering is None:
        return True
    return block.kind != "global" and set(variables) <= set(group_variables(block))


def mergeable(block: Block, tables: Iterable[TableDef]) -> bool:
    """True if partial results of its groups, from these tables, add up exactly."""
    return unmergeable(block, tables) is None


def unmergeable(block: Block, tables: Iterable[TableDef]) -> str | None:
    """Why partial results of its groups, from these tables, do not add up exactly; None if they do.

    Texts and frames of rows do not. Groups over trusted tables do not, because a cell hides a group while its count is
    below one.
    """
    if block.gathering is not None:
        return "a text of a group, or an aggregate of plain Python, needs all rows of the group"
    if _has_frames(block):
        return "the frame of a row needs the rows around it"
    if block.kind == "bag":
        return None
    trusted = next((table.name for table in tables if table.trusted), None)
    return None if trusted is None else f"partial groups over the trusted table {trusted} cannot be added up"


def splitting_of(
    block: Block,
    catalog: Catalog,
    sizes: Mapping[str, float],
    light: Mapping[str, bool],
    used: Mapping[str, Collection[str]],
) -> Splitting:
    """The possible splits of a block over base tables whose atoms have the given sizes.

    ``light``: variables with heavy values, and whether these values are excluded. If they are not, the variable splits
    nothing. ``used``: columns that already split roles of a table, which can be reused.
    """
    query = block.query
    tables = {atom.name: table_named(catalog, atom.relation) for atom in query.occurrences}
    allowed = {name: {c.name for c in splitting_columns(table)} for name, table in tables.items()}
    columns: dict[str, dict[str, str]] = {atom.name: {} for atom in query.occurrences}
    ordinary = [atom for atom in query.atoms if query.is_ordinary(atom)]
    kinds: dict[str, str] = {}
    for variable in query.variables:
        plain = plain_columns(block, variable)
        kind = kind_of(_type(tables[name], column) for name, column in plain.items())
        if kind is None or not light.get(variable, True):
            continue
        if not any(plain.get(atom.name) in allowed[atom.name] for atom in ordinary):
            continue
        for name, plain_column in plain.items():
            if plain_column in allowed[name]:
                columns[name][variable] = plain_column
                kinds[variable] = kind
    for atom in ordinary:
        table = tables[atom.name]
        bound = [e.name for v, e in zip(atom.variables, atom.columns, strict=True) if isinstance(e, Column)]
        own = [c for c in splitting_columns(table) if c.name in used.get(table.name, ()) and c.name not in bound]
        best = private_column(table, bound)
        if best is not None and best not in own and (table.keys or not columns[atom.name]):
            own.append(best)
        for column in own:
            label = f"{atom.name}.{column.name}"
            columns[atom.name][label] = column.name
            kinds[label] = str(kind_of((column.type,)))
    atoms = tuple(SplitAtom(a.name, tables[a.name].name, sizes[a.name], columns[a.name]) for a in query.occurrences)
    free = group_variables(block)
    whole = all(variable in free for variable in light)
    grouped = block.kind != "bag" or block.gathering is not None
    return Splitting(
        atoms,
        tuple(kinds),
        kinds,
        frozenset(kinds).intersection(free) if grouped and block.kind != "global" and whole else frozenset(),
        grouped,
        not mergeable(block, tables.values()),
    )


def table_named(catalog: Catalog, name: str) -> TableDef:
    table = catalog.table(name)
    assert table is not None, name
    return table


def _type(table: TableDef, column: str) -> SqlType:
    found = column_named(table.columns, column)
    assert found is not None
    return found.type


def joined_columns(catalog: Catalog, table: str) -> list[str]:
    """Columns of a table that some view joins on."""
    found: dict[str, None] = {}
    for view in catalog.views.values():
        for block in view.blocks:
            for atom in block.query.atoms:
                if atom.relation.lower() != table.lower():
                    continue
                for variable, column in zip(atom.variables, atom.columns, strict=True):
                    shared = sum(variable in other.variables for other in block.query.atoms) > 1
                    if shared and isinstance(column, Column):
                        found[column.name] = None
    return list(found)

