"""Random joins: ON, USING, WHERE or none, chains and cycles, conditions across tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.agreement.choices import Choices
from tests.agreement.scenario import Text
from tests.agreement.sql_expressions import Expressions, Term, made


@dataclass(frozen=True)
class Readable:
    """A relation that FROM can name: its columns are terms whose text is the bare name."""

    text: Text
    columns: tuple[Term, ...]
    depth: int = 0


def from_clause(choose: Choices, relations: Sequence[Readable]) -> tuple[Text, list[Term], list[Term]]:
    """FROM's text, the columns it makes visible, and conjuncts that WHERE has to have."""
    count = len(relations)
    visible: list[Term] = []
    by_name: dict[str, list[Term]] = {}
    conjuncts: list[Term] = []
    spark, duck = "", ""
    chain = count > 2 and choose.chance(50)
    # JOIN binds tighter than the comma, so the two are not mixed.
    listed = choose.chance(25)
    for i, relation in enumerate(relations):
        alias = "pqrs"[i]
        own = [_qualified(alias, c) for c in relation.columns]
        here = Text(f"{relation.text.spark} AS {alias}", f"{relation.text.duck} AS {alias}")
        if i == 0:
            spark, duck = here.spark, here.duck
        else:
            way = "where" if listed else choose.pick(("on", "on", "on", "using", "using", "where", "where", "cross"))
            shared = [c for c in relation.columns if _joins(c, by_name.get(c.text.spark, ()))]
            if way == "using" and shared:
                name = choose.pick(shared).text.spark
                spark += f" JOIN {here.spark} USING ({name})"
                duck += f" JOIN {here.duck} USING ({name})"
                for c in own:
                    if _bare(c) != name:
                        by_name.setdefault(_bare(c), []).append(c)
                visible += own
                continue
            equal = _link(visible, own) if chain else None
            equal = equal or _equality(choose, visible, own)
            if way in ("on", "using") and equal is not None:
                also = _equality(choose, visible, own) if choose.chance(20) else None
                on = equal if also is None else made("bool", "{0} AND {1}", equal, also)
                if choose.chance(15):
                    on = made("bool", "{0} AND {1}", on, Expressions(choose, [*visible, *own]).predicate(depth=0))
                spark += f" JOIN {here.spark} ON {on.text.spark}"
                duck += f" JOIN {here.duck} ON {on.text.duck}"
            else:
                comma = ", " if listed else " CROSS JOIN "
                spark, duck = f"{spark}{comma}{here.spark}", f"{duck}{comma}{here.duck}"
                if equal is not None and way != "cross":
                    conjuncts.append(equal)
        visible += own
        for c in own:
            by_name.setdefault(_bare(c), []).append(c)
    if count > 2 and choose.chance(50):
        last = [c for c in visible if c.text.spark.startswith("pqrs"[count - 1])]
        first = [c for c in visible if c.text.spark.startswith("p.")]
        closing = _link(last, first) if chain else None
        closing = closing or _equality(choose, first, last)
        if closing is not None:
            conjuncts.append(closing)
    if count > 1 and choose.chance(30):
        numbers = Expressions(choose, visible)
        kind = choose.pick(numbers.kinds(("int", "date", "string", "decimal", "double")) or ["int"])
        op = choose.pick(("<>", "<", "<="))
        conjuncts.append(made("bool", f"{{0}} {op} {{1}}", *numbers.two(kind)))
    return Text(spark, duck), visible, conjuncts


def _qualified(alias: str, column: Term) -> Term:
    return replace(column, text=Text.same(f"{alias}.{column.text.spark}"))


def _bare(column: Term) -> str:
    return column.text.spark.split(".")[1]


def _equality(choose: Choices, left: Sequence[Term], right: Sequence[Term]) -> Term | None:
    """An equality of a column of each side, sometimes of an expression."""
    pairs = [(a, b) for a in left for b in right if a.kind == b.kind and a.kind != "bool"]
    integers = [(a, b) for a, b in pairs if a.kind == "int"]
    if not pairs:
        return None
    a, b = choose.pick(integers if integers and choose.chance(80) else pairs)
    if a.kind == "int" and choose.chance(8):
        return made("bool", "{0} + 1 = {1}", a, b)
    return made("bool", "{0} = {1}", a, b)


def _joins(column: Term, before: Sequence[Term]) -> bool:
    """Whether USING can name the column: one column before it has its name, and its kind."""
    return len(before) == 1 and before[0].kind == column.kind


def _link(left: Sequence[Term], right: Sequence[Term]) -> Term | None:
    """The equality that makes a chain, or closes it to a cycle: the second int of the last relation on the left
    is the first of the one on the right."""
    alias = left[-1].text.spark.split(".")[0]
    ends = [c for c in left if c.kind == "int" and c.text.spark.startswith(alias)]
    starts = [c for c in right if c.kind == "int"]
    if len(ends) < 2 or len(starts) < 2:
        return None
    return made("bool", "{0} = {1}", ends[1], starts[0])
