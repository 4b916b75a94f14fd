"""The wording of errors of ONLY_VALUE: which two values there are, and in which group."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from freshviews.engine.codes.code_batch import Codes
from freshviews.errors import shown
from freshviews.expr.nodes import Call, Column, Expr
from freshviews.query.block import SET, Block
from freshviews.types.dictionary import Dictionary
from freshviews.types.sqltype import SqlType
from freshviews.types.values import decode_value


def two_values_of(block: Block, dictionary: Dictionary) -> Callable[[Codes], str]:
    """A function that words the error for raw rows of a block, one of which has two values."""
    types = {v: c.type for a in block.query.atoms for v, c in zip(a.variables, a.columns, strict=True)}
    places = {name: i for i, name in enumerate((*block.free, *(r.name for r in block.results)))}
    columns = {o.expr.name: o.name for o in reversed(block.outputs) if isinstance(o.expr, Column)}
    asked = [(output.name, pair) for output in block.outputs for pair in _pairs(output.expr)]
    if block.having is not None:
        asked += [("HAVING", pair) for pair in _pairs(block.having)]

    def text(kind: SqlType, code: int) -> str:
        return shown(decode_value(kind, code, dictionary))

    def worded(raw: Codes) -> str:
        for name, (least, greatest) in asked:
            different = raw[raw[:, places[least.name]] != raw[:, places[greatest.name]]]
            if len(different):
                row = different[0].tolist()
                values = " and ".join(text(one.type, row[places[one.name]]) for one in (least, greatest))
                grouped = block.sets[row[places[SET]]] if block.sets else block.query.free
                group = [f"{columns.get(v, v)} = {text(types[v], row[places[v]])}" for v in grouped]
                where = f"for {', '.join(group)}, " if group else ""
                return f"{where}{name} has two values, {values}; one is allowed"
        raise AssertionError("no row has two values")

    return worded


def _pairs(expr: Expr) -> Iterator[tuple[Column, Column]]:
    """The least and the greatest value of each ONLY_VALUE in an expression."""
    if isinstance(expr, Call):
        if expr.op == "only_value":
            least, greatest = expr.args
            assert isinstance(least, Column) and isinstance(greatest, Column)
            yield least, greatest
        for argument in expr.args:
            yield from _pairs(argument)
