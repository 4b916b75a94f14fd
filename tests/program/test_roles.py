"""A statement declares the roles of its fields; every walk over programs uses these declarations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, get_args

import pytest

from freshviews.expr.nodes import Column
from freshviews.program.payload import ComponentOf, Monomial, Value, hashed_once
from freshviews.program.rewrite import Renaming, rename, renamed
from freshviews.program.roles import Columns, Often, Role, Runs, parts_of
from freshviews.program.statements import Add, Body, Emit, Key, Let, ReadView, Statement
from freshviews.program.structure import Slice, bodies, columns, slice_of, uses, visit, visits, with_bodies, work
from freshviews.types import BIGINT


@hashed_once
@dataclass(frozen=True)
class Values:
    """A kind of statement unknown to the product: runs the body for each value of a column of a view."""

    view: ReadView
    prefix: Key
    value: Annotated[str, Role.BINDS, Columns(after=True)]
    body: Annotated[Body, Runs(Often.EACH)]
    limit: int = 5


def statement(body: Body = ()) -> Any:
    return Values("V", ("a", "b"), "c", body)


def test_a_walk_over_a_new_kind_of_statement_follows_the_roles_of_its_fields() -> None:
    inner = Add("W", ("c",), ("count",), (Monomial((ComponentOf("v", "count"),)),))
    made = statement((inner,))
    assert list(visit((made,))) == [made, inner]
    assert bodies(made) == ((inner,),)
    assert [one.often for one in visits(made)] == [Often.EACH]
    found = uses(made)
    assert [one.name for one in found.reads if not isinstance(one, ComponentOf)] == ["a", "b"]  # type: ignore[union-attr]
    assert (found.binds, found.views, found.changes) == (("c",), ("V",), ())
    assert [(name, of, place) for name, _, of, place in columns(made)] == [("a", "V", 0), ("b", "V", 1), ("c", "V", 2)]
    assert slice_of(made) == Slice("V", ("a", "b", "c"), (0, 1), "", False, False, "")
    assert work(made).walks


def test_renaming_reaches_every_field_of_a_new_kind_of_statement() -> None:
    inner: Statement = Let("d", Column("c", BIGINT))
    (made,) = rename((statement((inner,)),), {"c": "x", "b": "y"}, {})
    assert made == Values("V", ("a", "y"), "x", (Let("d", Column("x", BIGINT)),))
    assert renamed(statement(), Renaming(views={"V": "U"})).view == "U"  # type: ignore[union-attr]


def test_only_changed_statements_are_copied() -> None:
    emit = Emit(("c",), (Monomial((Value("m"),)),))
    made = statement((emit,))
    assert with_bodies(made, lambda body: body) is made
    assert bodies(with_bodies(made, lambda body: ())) == ((),)
    assert with_bodies(made, lambda body: ()).limit == 5  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", get_args(Statement))
def test_every_body_of_a_statement_declares_how_often_it_runs(kind: type) -> None:
    hints = kind.__annotations__
    reported = {part.name for part in parts_of(kind) if part.runs is not None}
    assert {name for name, hint in hints.items() if "Body" in hint or "Loop" in hint} == reported
