"""Hypothesis strategies for small queries in the notation, and for dependencies on them."""

from __future__ import annotations

from hypothesis import strategies as st

from freshviews.query.dependencies import FD
from freshviews.query.query import Query
from tests.query.notation import query


@st.composite
def queries(draw: st.DrawFn, conditions: bool = False) -> Query:
    """Up to four atoms over up to five variables; any of them free."""
    names = "abcde"[: draw(st.integers(1, 5))]
    some = st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True)
    atoms = [f"{'RSTU'[i]}({', '.join(draw(some))})" for i in range(draw(st.integers(1, 4)))]
    used = sorted({v for atom in atoms for v in atom[2:-1].split(", ")})
    free = [v for v in used if draw(st.booleans())]
    if conditions and len(used) > 1 and draw(st.booleans()):
        one, other = draw(st.lists(st.sampled_from(used), min_size=2, max_size=2, unique=True))
        atoms.append(f"{one} < {other}")
    return query(f"Q({', '.join(free)}) = {', '.join(atoms)}")


@st.composite
def dependencies(draw: st.DrawFn, of: Query, anywhere: bool = False) -> tuple[FD, ...]:
    """At most one dependency per atom; ``anywhere``: every relation obeys it."""
    found = []
    for atom in of.atoms:
        left = tuple(v for v in atom.variables if draw(st.booleans()))
        right = tuple(v for v in atom.variables if v not in left)
        if left and right:
            found.append(FD(left, right, None if anywhere else atom.name))
    return tuple(found)
