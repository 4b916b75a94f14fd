"""Writes the error for a group with two values where ONLY_VALUE or a subquery allows one."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from freshviews.engine.codes.code_batch import Codes
from freshviews.errors import shown
from freshviews.expr.nodes import Call, Column, Expr, Literal
from freshviews.query.block import SET, Block
from freshviews.types.dictionary import Dictionary
from freshviews.types.sqltype import SqlType
from freshviews.types.values import decode_value


def two_values_of(block: Block, dictionary: Dictionary) -> Callable[[Codes], str]:
    """A function that words the error for raw rows of a block; one of them must have two values."""
    types = {v: c.type for a in block.query.atoms for v, c in zip(a.variables, a.columns, strict=True)}
    places = {name: i for i, name in enumerate((*block.free, *(r.name for r in block.results)))}
    columns = {o.expr.name: o.name for o in reversed(block.outputs) if isinstance(o.expr, Column)}
    asked = [(output.name, pair) for output in block.outputs for pair in _pairs(output.expr)]
    if block.having is not None:
        asked += [("HAVING", pair) for pair in _pairs(block.having)]

    def text(kind: SqlType, code: int) -> str:
        return shown(decode_value(kind, code, dictionary))

    def group_of(row: list[int]) -> str:
        grouped = block.sets[row[places[SET]]] if block.sets else block.query.free
        group = [f"{columns.get(v, v)} = {text(types[v], row[places[v]])}" for v in grouped]
        return f"for {', '.join(group)}, " if group else ""

    def worded(raw: Codes) -> str:
        for name, (least, greatest) in asked:
            if isinstance(greatest, Column):
                different = raw[raw[:, places[least.name]] != raw[:, places[greatest.name]]]
                if len(different):
                    row = different[0].tolist()
                    values = " and ".join(text(one.type, row[places[one.name]]) for one in (least, greatest))
                    return f"{group_of(row)}{name} has two values, {values}; one is allowed"
        for name, (number, one) in asked:
            if isinstance(one, Literal):
                several = raw[raw[:, places[number.name]] > 1]
                if len(several):
                    row = several[0].tolist()
                    return f"{group_of(row)}{name} has {row[places[number.name]]} rows; one is allowed"
        raise AssertionError("no row has two values")

    return worded


def _pairs(expr: Expr) -> Iterator[tuple[Column, Column | Literal]]:
    """The least and the greatest value of each ONLY_VALUE in an expression; a number of rows, and 1."""
    if isinstance(expr, Call):
        if expr.op == "only_value":
            least, greatest = expr.args
            assert isinstance(least, Column) and not isinstance(greatest, Call)
            yield least, greatest
        for argument in expr.args:
            yield from _pairs(argument)
