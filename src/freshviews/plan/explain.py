"""Writes EXPLAIN: the strategy and its reason, the cost of an update, bounds, the program, and stored views."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from freshviews.catalog.definitions import ReadOrder, SetOperation, SetTerm, SortPlace, ViewDef
from freshviews.expr.nodes import Column, Expr, substitute
from freshviews.plan.costs.comparison import Comparison, DegreesOf
from freshviews.plan.costs.cost import Cost, costs_of
from freshviews.plan.costs.degrees import Assumed, Degrees
from freshviews.plan.strategy import Plan
from freshviews.program.printer import print_program
from freshviews.program.program import Program
from freshviews.program.results import Held
from freshviews.program.views import Order
from freshviews.query.block import SET, Block, Fold, Gathering, Selection
from freshviews.query.query import Atom
from freshviews.query.span import as_span
from freshviews.ring import NARROW, REAL
from freshviews.types import BIGINT

_SUMS = {"narrow": NARROW, "real": REAL}


def nothing_measured(program: Program) -> Degrees | None:
    """Returns None: without data, no degrees are measured."""
    return None


def explain(
    view: ViewDef,
    plans: Iterable[Plan],
    sizes: Mapping[str, tuple[int, int]],
    parts: Iterable[str] = (),
    degrees_of: DegreesOf = nothing_measured,
    comparisons: Iterable[Comparison] = (),
    sums: Iterable[str] = (),
) -> str:
    """The text of EXPLAIN. ``sizes`` are rows and bytes by stored view, empty before anything is stored. ``parts`` are
    texts about what is stored beside the views. ``degrees_of`` gives the measured degrees of a program.
    ``comparisons``, one per block, show the strategies that a user may name. ``sums``: how sums of doubles are
    stored."""
    lines = [f"view {view.name}({', '.join(f'{c.name} {c.type}' for c in view.columns)})"]
    lines.append(f"reads {', '.join(view.inputs)}" if view.blocks else f"rows  constants: {len(view.constants):,}")
    if view.order is not None and view.order.places is not None:
        lines.append(f"sorted when read, by {', '.join(_sorted_by(view, view.order, view.order.places))}")
    chosen, compared = list(plans), list(comparisons)
    for i, (plan, block) in enumerate(zip(chosen, view.blocks, strict=True)):
        if len(chosen) > 1:
            lines += ["", f"block {i + 1} of {len(chosen)}{' (UNION ALL)' if view.combined is None else ''}"]
        lines += ["", *_block(plan, block, [*_costs(plan, degrees_of), *map(_steps_line, compared[i : i + 1])])]
    if view.combined is not None:
        lines += ["", *_set_operation_lines(view.combined, chosen)]
    if sizes:
        lines += ["", "stored:"]
        width = max(len(name) for name in sizes)
        lines += [f"    {name:<{width}}  {rows:>12,} rows  {size:>14,} bytes" for name, (rows, size) in sizes.items()]
    if kinds := [f"{kind}, of {_SUMS[kind].words} words each" for kind in sums]:
        lines += ["", f"sums of doubles: {'; '.join(kinds)}"]
    for part in parts:
        lines += ["", part]
    return "\n".join(lines) + "\n"


def parts(
    view: ViewDef, plans: Iterable[Plan], sizes: Mapping[str, tuple[int, int]], degrees_of: DegreesOf = nothing_measured
) -> dict[str, Any]:
    """The parts of EXPLAIN, as JSON has them. Arguments as of ``explain``."""
    blocks = []
    for plan, block in zip(plans, view.blocks, strict=True):
        costs, is_measured = _costs_of(plan, degrees_of)
        named = {
            name: {"lookups": one.lookups, "rows_walked": one.walked, "writes": one.writes, "measured": is_measured}
            for name, one in costs.items()
        }
        blocks.append(
            {
                "query": _query(block),
                "class": str(plan.kind),
                "strategy": plan.strategy,
                "reason": plan.reason,
                "bounds": dict(plan.program.bounds),
                "costs": named,
            }
        )
    return {
        "view": view.name,
        "columns": [{"name": c.name, "type": str(c.type), "nullable": c.nullable} for c in view.columns],
        "reads": list(view.inputs),
        "blocks": blocks,
        "stored": {name: {"rows": rows, "bytes": size} for name, (rows, size) in sizes.items()},
    }


def update_bound(view: ViewDef, plans: Iterable[Plan]) -> str:
    """The bound of an update of the view itself, for one row of a relation that it reads."""
    found = []
    for plan, block in zip(plans, view.blocks, strict=True):
        bound = dict(plan.program.bounds).get("update", "").partition("\n")[0]
        found.append(bound + ("" if block.gathering is None else _more_for(block.gathering)))
    return "; ".join(dict.fromkeys(found)) or "O(1)"


def _more_for(gathering: Gathering) -> str:
    """The cost that texts or values of groups add to the bound of an update."""
    if isinstance(gathering, Fold) and gathering.removes:
        return ", plus O(log n) for each changed row, with one call of add or remove"
    more = ", with n calls of add" if isinstance(gathering, Fold) else ""
    return f", plus O(n log n) for each changed group of n rows{more}"


def _sorted_by(view: ViewDef, order: ReadOrder, places: Iterable[SortPlace]) -> Iterator[str]:
    for place in places:
        shown = place.column < len(view.columns)
        name = view.columns[place.column].name if shown else f"column {place.column + 1} of {order.relation}"
        # NULL is first where the order rises, and last where it falls, unless the view says otherwise.
        nulls = f" NULLS {'LAST' if place.nulls_last else 'FIRST'}" if place.nulls_last != place.descending else ""
        yield f"{name}{' DESC' if place.descending else ''}{nulls}"


def _set_operation_lines(term: SetOperation, plans: list[Plan]) -> list[str]:
    """How a set operation combines the rows of blocks, and the bounds of that."""
    held = [str(i + 1) for i, plan in enumerate(plans) if isinstance(plan.program.result, Held)]
    what = "no row of the result is stored"
    if held:
        what += f", except those of block{'s' if len(held) > 1 else ''} {', '.join(held)}"
    skipping = {kind.replace("_", " ") for kind in _kinds(term) if kind.startswith(("except", "intersect"))}
    delay = "the delay of the blocks plus O(1)"
    if skipping:
        delay += f"; no bound where {' or '.join(sorted(skipping)).upper()} skips rows"
    how = f"{term}, of blocks: rows of one are looked up in the others; {what}"
    return [f"rows      {how}", f"delay     {delay}"]


def _kinds(term: SetTerm) -> frozenset[str]:
    return frozenset() if isinstance(term, int) else frozenset((term.kind,)) | _kinds(term.left) | _kinds(term.right)


def _costs(plan: Plan, degrees_of: DegreesOf) -> Iterator[str]:
    """The cost of an update, a line per relation."""
    costs, is_measured = _costs_of(plan, degrees_of)
    basis = "measured" if is_measured else "assumed"
    for name, cost in costs.items():
        yield (
            f"cost      {_number(cost.lookups)} lookups, {_number(cost.walked)} rows walked, "
            f"{_number(cost.writes)} writes per row of {name} ({basis})"
        )


def _costs_of(plan: Plan, degrees_of: DegreesOf) -> tuple[Mapping[str, Cost], bool]:
    """The cost of an update by relation, and whether it is measured."""
    degrees = degrees_of(plan.program)
    costs = costs_of(plan.program, degrees or Assumed(plan.program, plan.expected))
    return costs or {}, degrees is not None


def _number(mean: float) -> str:
    return f"{mean:,.1f}" if mean < 100 else f"{mean:,.0f}"


def _steps_line(comparison: Comparison) -> str:
    """The steps of an update under each strategy."""
    steps = ", ".join(f"{name} {_number(number)}" for name, number in comparison.steps.items())
    return f"steps     {steps} per update ({'measured' if comparison.measured else 'assumed'})"


def _block(plan: Plan, block: Block, costs: list[str]) -> list[str]:
    lines = [f"query     {_query(block)}", f"class     {plan.kind}", f"strategy  {plan.strategy}: {plan.reason}"]
    lines += costs
    for name, bound in plan.program.bounds:
        first, *rest = bound.splitlines() or [""]
        lines.append(f"{name:<9} {first}")
        lines += [f"          {line}" for line in rest]
    lines += ["", "program:"]
    lines += ["    " + line if line else "" for line in print_program(plan.program).splitlines()]
    if block.having is not None:
        lines.append(f"    having {_print_output(block.having)}")
    lines += ["", "output:"]
    lines += [f"    {output.name} = {_print_output(output.expr)}" for output in block.outputs]
    if block.gathering is not None:
        lines += ["", *_texts(block, block.gathering)]
    return lines


def _texts(block: Block, gathering: Gathering) -> list[str]:
    """The lines about the texts that are made of the rows of a block."""
    names = [output.name for output in block.outputs]
    group, columns = names[: gathering.groups], names[gathering.groups :]
    order = ", ".join(
        f"{name}{' DESC' if one.descending else ''}" for name, one in zip(columns, gathering.columns, strict=True)
    )
    what = f"JSON of {', '.join(name for name, _ in gathering.relations)}"
    if gathering.listed:
        each = (f"({', '.join(columns[i] for i in one)}) where {columns[0]} = {n}" for n, one in gathering.listed)
        what = f"JSON of {', '.join(each)}"
    elif gathering.separator is not None:
        what = f"{'distinct ' if gathering.distinct else ''}{columns[-1]}, joined by {gathering.separator!r}"
    if isinstance(gathering, Fold):
        return _fold(gathering, group, columns, order)
    return [
        f"text      {what}, of the rows of each ({', '.join(group)}), in the order of ({order})",
        "          kept: a copy of the rows by group, after the first read of a change",
        f"          update: the cost for the rows{_more_for(gathering)}",
    ]


def _fold(fold: Fold, group: list[str], columns: list[str], order: str) -> list[str]:
    """The lines about the values of a user's aggregate."""
    arguments = ", ".join(columns[fold.marked :])
    name = f"{fold.operation.partition('@')[0]}({'DISTINCT ' if fold.distinct else ''}{arguments})"
    of = f"of the rows of each ({', '.join(group)})"
    how, kept = f", in the order of ({order})", "a copy of the rows by group, after the first read of a change"
    if fold.removes:
        how, kept = "", "a state for each group, after the first read of a change; made again after a refused batch"
    return [
        f"value     {name} in Python, {of}{how}",
        f"          kept: {kept}",
        f"          update: the cost for the rows{_more_for(fold)}",
    ]


def _print_output(expr: Expr) -> Expr:
    """An expression as EXPLAIN prints it."""
    return substitute(expr, {SET: Column(SET.removeprefix("@"), BIGINT, False)})


def _variables(atom: Atom) -> str:
    """The variables of an atom; ``?(k | y)`` of an optional one that is looked up by k."""
    if atom.given is None:
        return f"({', '.join(atom.variables)})"
    return f"?({', '.join(atom.given)} | {', '.join(atom.opened)})"


def _atom(atom: Atom) -> str:
    return f"{atom.name if atom.name == atom.relation else f'{atom.relation} {atom.name}'}{_variables(atom)}"


def _print_selection(block: Block, selection: Selection) -> str:
    """The rows of a selection, and its predicate."""
    query, order = block.query, Order(selection.type, selection.descending)
    value = selection.point
    if selection.weights:
        value = f"sum of {_atom(query.atom(selection.weights))} {selection.value} {value}{order}"
    sign = f"{'>' if selection.negated else '<'}{'' if selection.strict else '='}"
    limit = f"{'-' if selection.negated else ''}{selection.limit} of {_atom(query.atom(selection.limits))}"
    return f"{query.name}({', '.join(query.free)}) = {_atom(query.atom(selection.rows))} * [{value} {sign} {limit}]"


def _query(block: Block) -> str:
    if block.selection is not None:
        return _print_selection(block, block.selection)
    query = block.query
    atoms = " * ".join(map(_atom, query.atoms))
    conditions = "".join(f" * !{a.relation}({', '.join(a.variables)})" for a in query.negated)
    conditions += "".join(f" * [{as_span(c) or c}]" for c in query.conditions)
    results = "".join(f"; {r.name} = {r.function}" for r in block.results)
    bound = f"SUM[{', '.join(query.bound)}] " if query.bound else ""
    return f"{query.name}({', '.join(query.free)}) = {bound}{atoms}{conditions}{results}"
