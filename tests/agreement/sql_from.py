"""Random joins: inner and outer, by ON, USING, NATURAL, WHERE or nothing, chains and cycles, joins in parentheses,
conditions across tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tests.agreement.choices import Choices
from tests.agreement.scenario import Text
from tests.agreement.sql_expressions import Expressions, Term, made


@dataclass(frozen=True)
class Readable:
    """A relation that FROM can name: its columns are terms whose text is the bare name. Columns of kind ``matrix`` are
    never read."""

    text: Text
    columns: tuple[Term, ...]
    depth: int = 0


@dataclass(frozen=True)
class _Side:
    """A side of a join: its text, its columns by alias, and the meaning of each bare name."""

    text: Text
    columns: tuple[Term, ...]
    names: Mapping[str, tuple[Term, ...]]
    merged: tuple[Term, ...] = field(default=())
    """Columns of FULL JOIN USING, which have a bare name only."""


_OUTER = ("LEFT", "LEFT", "LEFT", "LEFT", "RIGHT", "RIGHT", "FULL", "FULL", "SEMI", "ANTI")


def from_clause(choose: Choices, relations: Sequence[Readable]) -> tuple[Text, list[Term], list[Term]]:
    """FROM's text, the columns that it makes visible, and conjuncts that WHERE must have."""
    count = len(relations)
    conjuncts: list[Term] = []
    chain = count > 2 and choose.chance(50)
    # JOIN binds tighter than the comma, so the two are not mixed.
    listed = choose.chance(25)
    sides = [_alone("pqrs"[i], relation) for i, relation in enumerate(relations)]
    if count > 2 and not listed and choose.chance(20):
        # WHERE cannot name the columns of a nest below a SEMI JOIN, so its joins have no predicates there.
        inner = _joined(choose, sides[-2], sides[-1], chain, [])
        nest = replace(inner, text=Text(f"({inner.text.spark})", f"({inner.text.duck})"))
        sides = [*sides[:-2], nest]
    made_so_far = sides[0]
    for side in sides[1:]:
        join = _listed if listed else _joined
        made_so_far = join(choose, made_so_far, side, chain, conjuncts)
    visible = [*made_so_far.columns]
    visible += [c for c in made_so_far.merged if made_so_far.names[c.text.spark] == (c,)]
    if count > 2 and choose.chance(50):
        last = [c for c in visible if c.text.spark.startswith("pqrs"[count - 1])]
        first = [c for c in visible if c.text.spark.startswith("p.")]
        closing = _link(last, first) if chain and last else None
        closing = closing or _equality(choose, first, last)
        if closing is not None:
            conjuncts.append(closing)
    if count > 1 and choose.chance(30):
        numbers = Expressions(choose, visible)
        kind = choose.pick(numbers.kinds(("int", "date", "string", "decimal", "double")) or ["int"])
        op = choose.pick(("<>", "<", "<="))
        conjuncts.append(made("bool", f"{{0}} {op} {{1}}", *numbers.two(kind)))
    return made_so_far.text, visible, conjuncts


def _alone(alias: str, relation: Readable) -> _Side:
    columns = tuple(replace(c, text=Text.same(f"{alias}.{c.text.spark}")) for c in relation.columns)
    names = {bare.text.spark: (own,) for bare, own in zip(relation.columns, columns, strict=True)}
    read = tuple(column for column in columns if column.kind != "matrix")
    return _Side(Text(f"{relation.text.spark} AS {alias}", f"{relation.text.duck} AS {alias}"), read, names)


def _listed(choose: Choices, left: _Side, right: _Side, chain: bool, conjuncts: list[Term]) -> _Side:
    """A comma join, with an equality in WHERE."""
    equal = _link(left.columns, right.columns) if chain else None
    equal = equal or _equality(choose, left.columns, right.columns)
    if equal is not None:
        conjuncts.append(equal)
    return _both_sides(left, right, ", ", "")


def _joined(choose: Choices, left: _Side, right: _Side, chain: bool, conjuncts: list[Term]) -> _Side:
    if choose.chance(30):
        return _outer(choose, left, right, chain)
    if choose.chance(10):
        return _lateral(choose, left, right)
    way = choose.pick(("on", "on", "on", "using", "using", "where", "where", "cross"))
    shared = _shared(left, right)
    if way == "using" and shared:
        return _using(left, right, " JOIN ", (choose.pick(shared),), "JOIN")
    equal = _link(left.columns, right.columns) if chain else None
    equal = equal or _equality(choose, left.columns, right.columns)
    if way in ("on", "using") and equal is not None:
        also = _equality(choose, left.columns, right.columns) if choose.chance(20) else None
        on = equal if also is None else made("bool", "{0} AND {1}", equal, also)
        if choose.chance(15):
            on = made("bool", "{0} AND {1}", on, _predicate(choose, (left, right)))
        return _both_sides(left, right, " JOIN ", "", on)
    if equal is not None and way != "cross":
        conjuncts.append(equal)
    return _both_sides(left, right, " CROSS JOIN ", "")


def _lateral(choose: Choices, left: _Side, right: _Side) -> _Side:
    """A subquery that compares its rows with those of the left side."""
    alias = right.columns[0].text.spark.split(".")[0]
    tie = _equality(choose, right.columns, left.columns)
    if tie is None or right.text.spark.startswith("(") or not right.text.spark.endswith(f" AS {alias}"):
        return _both_sides(left, right, " CROSS JOIN ", "")
    if choose.chance(40):
        tie = made("bool", choose.pick(("{0} OR {1}", "{0} AND {1}")), tie, _predicate(choose, (left, right)))
    rows = Text(
        f"LATERAL (SELECT * FROM {right.text.spark} WHERE {tie.text.spark}) AS {alias}",
        f"LATERAL (SELECT * FROM {right.text.duck} WHERE {tie.text.duck}) AS {alias}",
    )
    on = choose.pick((None, Term(Text.same("TRUE"), "bool")))
    return _both_sides(left, replace(right, text=rows), " CROSS JOIN " if on is None else " LEFT JOIN ", "", on)


def _outer(choose: Choices, left: _Side, right: _Side, chain: bool) -> _Side:
    """An outer, semi or anti join."""
    kind = choose.pick(_OUTER)
    word = f" {kind} JOIN "
    shared = _shared(left, right)
    common = left.names.keys() & right.names.keys()
    way = choose.pick(("on", "on", "on", "on", "on", "using", "natural", "predicate"))
    if way == "using" and shared:
        return _using(left, right, word, (choose.pick(shared),), kind)
    if way == "natural" and shared and len(shared) == len(common):
        return _using(left, right, f" NATURAL{word}", tuple(shared), kind)
    equal = _link(left.columns, right.columns) if chain else None
    equal = equal or _equality(choose, left.columns, right.columns)
    if equal is None or way == "predicate":
        return _both_sides(left, right, word, kind, _predicate(choose, (left, right)))
    on = equal
    if choose.chance(20):
        on = made("bool", "{0} AND {1}", on, _equality(choose, left.columns, right.columns) or equal)
    if choose.chance(30):
        sides = choose.pick(((left,), (right,), (left, right)))
        on = made("bool", "{0} AND {1}", on, _predicate(choose, sides))
    return _both_sides(left, right, word, kind, on)


def _both_sides(left: _Side, right: _Side, word: str, kind: str, on: Term | None = None) -> _Side:
    """Both sides with their columns; for a SEMI or ANTI join, with those of the left side."""
    condition = Text.same("") if on is None else Text(f" ON {on.text.spark}", f" ON {on.text.duck}")
    text = Text(
        left.text.spark + (f" LEFT{word}" if kind in ("SEMI", "ANTI") else word) + right.text.spark + condition.spark,
        left.text.duck + word + right.text.duck + condition.duck,
    )
    if kind in ("SEMI", "ANTI"):
        return replace(left, text=text)
    names = {name: (*left.names.get(name, ()), *right.names.get(name, ())) for name in (*left.names, *right.names)}
    return _Side(text, (*left.columns, *right.columns), names, (*left.merged, *right.merged))


def _using(left: _Side, right: _Side, word: str, names: tuple[str, ...], kind: str) -> _Side:
    """A join USING names, or a NATURAL join that has these names in common."""
    natural = word.startswith(" NATURAL")
    spark = word.replace("SEMI", "LEFT SEMI").replace("ANTI", "LEFT ANTI")
    tail = "" if natural else f" USING ({', '.join(names)})"
    text = Text(left.text.spark + spark + right.text.spark + tail, left.text.duck + word + right.text.duck + tail)
    if kind in ("SEMI", "ANTI"):
        return replace(left, text=text)
    both = _both_sides(left, right, word, "")
    merged = list(both.merged)
    chosen = dict(both.names)
    for name in names:
        (one,) = (right if kind == "RIGHT" else left).names[name]
        if kind == "FULL":
            one = replace(one, text=Text.same(name), column=False)
            merged.append(one)
        chosen[name] = (one,)
    return replace(both, text=text, names=chosen, merged=tuple(merged))


def _predicate(choose: Choices, sides: Sequence[_Side]) -> Term:
    return Expressions(choose, [c for side in sides for c in side.columns]).predicate(depth=0)


def _shared(left: _Side, right: _Side) -> list[str]:
    """The names that USING can name: each side has one column of the name, of the same kind."""
    return [
        name
        for name, (own, *more) in right.names.items()
        if not more and len(found := left.names.get(name, ())) == 1 and found[0].kind == own.kind != "matrix"
    ]


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


def _link(left: Sequence[Term], right: Sequence[Term]) -> Term | None:
    """The equality that continues a chain, or closes it to a cycle: the second int of the last relation on the left
    equals the first int of the relation on the right."""
    alias = left[-1].text.spark.split(".")[0]
    ends = [c for c in left if c.kind == "int" and c.text.spark.startswith(alias)]
    starts = [c for c in right if c.kind == "int"]
    if len(ends) < 2 or len(starts) < 2:
        return None
    return made("bool", "{0} = {1}", ends[1], starts[0])
