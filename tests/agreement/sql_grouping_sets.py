"""Random grouping sets in both dialects of SQL."""

from __future__ import annotations

from collections.abc import Sequence

from tests.agreement.choices import Choices
from tests.agreement.scenario import Text
from tests.agreement.sql_expressions import Term, made

NOT_EMPTY = "COUNT(*) > 0"
"""HAVING for DuckDB, which otherwise returns a row for the empty grouping set over no rows."""


def grouping_sets(choose: Choices, groups: Sequence[Term], positions: bool) -> Text:
    """GROUP BY of several different sets of the groups. ``positions``: numbers may stand for groups."""
    numbers = positions and choose.chance(15)
    texts = [Text.same(str(i)) if numbers else group.text for i, group in enumerate(groups, 1)]
    kind = choose.pick(("ROLLUP", "ROLLUP", "CUBE", "SETS", "BESIDE", "TOGETHER"))
    if kind == "SETS":
        chosen = [[t for t in texts if choose.chance(50)] for _ in range(choose.between(1, 4))]
        # All groups are in some set, so each may be shown.
        rest = [t for t in texts if all(t not in one for one in chosen)]
        return _joined([*chosen, *([rest] if rest else [])], "GROUPING SETS ({})")
    if kind == "BESIDE" and len(texts) > 1:
        first, rest = texts[:1], texts[1:]
        word = choose.pick(("ROLLUP", "CUBE"))
        return Text(*(f"{a}, {word} ({b})" for a, b in zip(_listed(first), _listed(rest), strict=True)))
    if kind == "TOGETHER":
        if len(texts) > 2 and choose.chance(50):
            return _joined([texts[:2], texts[2:]], "ROLLUP ({})")
        word = choose.pick(("ROLLUP", "CUBE"))
        spark, duck = _listed(texts)
        return Text(f"{spark} WITH {word}", f"{word} ({duck})")
    word = kind if kind == "CUBE" else "ROLLUP"
    return Text(*(f"{word} ({text})" for text in _listed(texts)))


def grouping_call(choose: Choices, groups: Sequence[Term]) -> Term:
    """GROUPING of a group, or GROUPING_ID of all."""
    if choose.chance(50):
        return made("int", "GROUPING({0})", choose.pick(groups))
    return made("int", f"GROUPING_ID({', '.join(f'{{{i}}}' for i in range(len(groups)))})", *groups)


def _listed(texts: Sequence[Text]) -> tuple[str, str]:
    return ", ".join(t.spark for t in texts), ", ".join(t.duck for t in texts)


def _joined(sets: Sequence[Sequence[Text]], around: str) -> Text:
    spark, duck = zip(*map(_listed, sets), strict=True)
    return Text(*(around.format(", ".join(f"({one})" for one in texts)) for texts in (spark, duck)))
