from __future__ import annotations

import pytest

from freshviews.stream import (
    AppendOnly,
    DebeziumJson,
    DeltaFeed,
    FormatError,
    Multiplicities,
    OpColumn,
    Snapshots,
    Upserts,
    format_for,
    looks_up,
    own_columns,
    signed_rows,
)
from tests.stream.tables import BAG, ORDERS, batch, table


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("append", AppendOnly()),
        ("signed", Multiplicities()),
        ("_multiplicity", Multiplicities()),
        ("Delta", DeltaFeed()),
        ("_change_type", DeltaFeed()),
        ("debezium", DebeziumJson()),
        ("debezium-upsert", DebeziumJson(by_key=True)),
        ("UPSERT", Upserts()),
        ("snapshot", Snapshots()),
        ("op", OpColumn("op")),
    ],
)
def test_a_format_is_found_by_its_name_or_by_the_name_of_its_column(name, form):
    assert format_for(name) == form


def test_the_reserved_columns_determine_the_format_if_no_format_is_named():
    assert format_for(None, ["id", "part"]) == AppendOnly()
    assert format_for(None, ["id", "_multiplicity"]) == Multiplicities()
    assert format_for(None, ["id", "_change_type", "_commit_version"]) == DeltaFeed()
    with pytest.raises(FormatError, match="name one of them"):
        format_for(None, ["_multiplicity", "_change_type"])


def test_the_error_of_an_unknown_format_lists_the_accepted_names():
    with pytest.raises(FormatError, match=r"'opp' is unknown; accepted: append, .*, one of id, op$"):
        format_for("opp", ["id", "op"])
    assert format_for("OP", ["id", "op"]) == OpColumn("op")


@pytest.mark.parametrize("form", [Upserts(), DebeziumJson(by_key=True)])
def test_changes_by_key_are_refused_for_a_table_without_a_key(form):
    with pytest.raises(FormatError, match="table bag: changes by key need a PRIMARY KEY"):
        signed_rows(batch(id=[1], part=["a"]), BAG, form)


def test_columns_of_a_change_format_are_reserved():
    both = table("CREATE TABLE t (id BIGINT, op STRING)")
    with pytest.raises(FormatError, match="column op is reserved by the change format"):
        signed_rows(batch(id=[1], op=["I"]), both, OpColumn("op"))


def test_a_format_declares_its_columns_and_lookups():
    assert own_columns(DeltaFeed()) == ("_change_type", "_commit_version", "_commit_timestamp")
    assert own_columns(Upserts("op", order="at")) == ("op",)
    assert own_columns(AppendOnly()) == ()
    assert looks_up(Upserts(), ORDERS) and looks_up(OpColumn(), ORDERS) and looks_up(DebeziumJson(by_key=True), ORDERS)
    assert not looks_up(OpColumn(), BAG) and not looks_up(DebeziumJson(), ORDERS) and not looks_up(DeltaFeed(), ORDERS)


def test_wrong_options_are_refused_at_construction():
    with pytest.raises(FormatError, match="timestamps must be 'ms', 'us' or 'ns', not 's'"):
        DebeziumJson(timestamps="s")  # type: ignore[arg-type]
