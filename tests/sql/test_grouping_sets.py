"""The groups and sets of a GROUP BY, and the items of a list that are groups."""

from __future__ import annotations

import pytest

from tests.sql.printed import column_types, view, views


def sets_of(by: str, columns: str = "a, b, c") -> str:
    (block,) = view(f"SELECT {columns}, count(*) AS n FROM r GROUP BY {by}").blocks
    return " ".join("".join(sorted(one)) or "()" for one in block.sets or (block.query.free,))


@pytest.mark.parametrize(
    "by, expected",
    [
        ("ROLLUP (a, b, c)", "abc ab a ()"),
        ("ROLLUP ((a, b), c)", "abc ab ()"),
        ("CUBE (a, b, c)", "abc ab ac bc a b c ()"),
        ("CUBE (a, (b, c))", "abc a bc ()"),
        ("GROUPING SETS ((a, b, c), (), a, (b), a)", "abc () a b a"),
        ("GROUPING SETS (ROLLUP (a, b), CUBE (c), GROUPING SETS ((a, b)))", "ab a () c () ab"),
        ("a, ROLLUP (b, c)", "abc ab a"),
        ("ROLLUP (a), CUBE (b), c", "abc ac bc c"),
        ("ROLLUP (a, b), ROLLUP (a, c)", "abc ab ab ac a a ac a ()"),
        ("a, b, c WITH ROLLUP", "abc ab a ()"),
        ("(a), b, c WITH CUBE", "abc ab ac bc a b c ()"),
        ("a, b, c GROUPING SETS ((c, a), b)", "ac b"),
        ("ROLLUP (1, 2), 3", "abc ac c"),
        ("GROUPING SETS ((1, 2, 3))", "abc"),
    ],
)
def test_rollup_cube_and_grouping_sets_give_the_expected_sets(by: str, expected: str) -> None:
    assert sets_of(by) == expected


def test_a_single_grouping_set_of_all_columns_is_an_ordinary_group_by() -> None:
    (one,) = view("SELECT a, grouping(a) AS g FROM r GROUP BY GROUPING SETS ((a))").blocks
    (other,) = view("SELECT a, CAST(0 AS TINYINT) AS g FROM r GROUP BY a").blocks
    assert one == other


def test_a_single_grouping_set_has_null_in_other_columns() -> None:
    (block,) = view("SELECT a, b, grouping_id() AS g FROM r GROUP BY a, b GROUPING SETS ((b))").blocks
    assert (block.kind, block.sets, block.query.free) == ("groups", (), ("b",))
    assert [str(o.expr) for o in block.outputs] == ["NULL", "b", "2"]


@pytest.mark.parametrize(
    "by, kind, sets",
    [
        ("GROUPING SETS (())", "global", ()),
        ("GROUPING SETS ((), ())", "groups", ((), ())),
        ("a GROUPING SETS (())", "groups", ()),
    ],
)
def test_a_view_whose_only_grouping_set_is_empty_has_a_row_for_an_empty_table(
    by: str, kind: str, sets: tuple[tuple[str, ...], ...]
) -> None:
    (block,) = view(f"SELECT count(*) AS n FROM r GROUP BY {by}").blocks
    assert (block.kind, block.sets, block.query.free) == (kind, sets, ())


def test_a_grouping_column_is_nullable_if_a_grouping_set_does_not_contain_the_column() -> None:
    items = "b, e, a, coalesce(b, 0) AS c, grouping(b) AS g, grouping_id() AS i"
    found = view(f"SELECT {items} FROM s GROUP BY a, CUBE (b, e)")
    assert column_types(found) == "b INT, e STRING, a INT, c INT NOT NULL, g TINYINT NOT NULL, i BIGINT NOT NULL"
    assert column_types(view("SELECT b, a FROM s GROUP BY b, ROLLUP (a)")) == "b INT NOT NULL, a INT"


@pytest.mark.parametrize(
    "item, expected",
    [
        ("b", "case(lt(@set, 1), b, NULL)"),
        ("(a)", "case(lt(@set, 2), a, NULL)"),
        ("c + a", "case(lt(@set, 3), i, NULL)"),
        ("r.a + c + b", "add_int(case(lt(@set, 3), a_c, NULL), case(lt(@set, 1), b, NULL))"),
        ("s || 'X'", "case(lt(@set, 4), i, NULL)"),
        ("grouping(a + c)", "case(lt(@set, 3), 0, 1)"),
        ("grouping_id(b, a)", "case(lt(@set, 1), 0, eq(@set, 1), 2, 3)"),
    ],
)
def test_a_grouping_expression_is_recognised_with_operands_in_any_order(item: str, expected: str) -> None:
    (block,) = view(f"SELECT {item} AS i FROM r GROUP BY ROLLUP (s || 'X', a + c, a, b)").blocks
    assert str(block.outputs[0].expr) == expected


def test_grouping_expressions_are_case_sensitive_in_constants() -> None:
    (block,) = view("SELECT s || 'X' AS i, s || 'x' AS j FROM r GROUP BY ROLLUP (s, s || 'X')").blocks
    first, second = (str(o.expr) for o in block.outputs)
    assert first.startswith("case(lt(@set, 1)")
    assert second == "concat(case(lt(@set, 2), s, NULL), x)".replace("x", repr("x"))


def test_grouping_expressions_over_several_tables_need_an_internal_view() -> None:
    inner, outer = views("SELECT r.b + s.b AS k, count(*) AS n FROM r JOIN s ON r.a = s.a GROUP BY ROLLUP (r.b + s.b)")
    assert [block.kind for block in inner.blocks] == ["bag"]
    assert [block.sets for block in outer.blocks] == [(("k",), ())]
    assert [atom.relation for atom in outer.blocks[0].query.atoms] == [inner.name]
