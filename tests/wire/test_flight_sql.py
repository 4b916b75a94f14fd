"""Clients that others wrote read a server: ADBC's driver in Go, polars by it, and Flight's client of pyarrow in C++."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("grpc", reason="grpcio is not installed; pip install 'freshviews[flight]'")
pytest.importorskip("google.protobuf", reason="protobuf is not installed; pip install 'freshviews[flight]'")

import pyarrow.flight as flight

from freshviews.wire import FlightServer
from freshviews.wire.messages import made, packed, parsed
from tests.wire.kept import BY_PART, TOKEN, Kept, serving

pytestmark = pytest.mark.plain_python(only=True)

HEADER = "adbc.flight.sql.authorization_header"


@pytest.fixture(scope="module")
def server() -> Iterator[FlightServer]:
    with serving() as made:
        yield made


@contextmanager
def connected(server: FlightServer, token: str = TOKEN, **options: str) -> Iterator[Any]:
    """A connection of ADBC."""
    pytest.importorskip("adbc_driver_manager", reason="adbc-driver-manager is not installed")
    adbc = pytest.importorskip("adbc_driver_flightsql.dbapi", reason="adbc-driver-flightsql is not installed")
    options = options or {HEADER: f"Bearer {token}"}
    with adbc.connect(server.uri, db_kwargs=options, autocommit=True) as connection:
        yield connection


def rows(server: FlightServer, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
    with connected(server) as connection, connection.cursor() as cursor:
        cursor.execute(sql, parameters or None)
        found: list[tuple[Any, ...]] = cursor.fetchall()
        return found


def test_adbc_reads_the_rows_of_a_select_with_their_types(server: FlightServer) -> None:
    with connected(server) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT * FROM by_part ORDER BY part")
        found = cursor.fetch_arrow_table()
    assert found.to_pylist() == BY_PART.to_pylist()
    assert found.schema.types == [pa.string(), pa.int32()]
    assert found.schema.metadata == {b"freshviews.version": b"7"}


def test_parameters_of_a_prepared_statement_are_never_read_as_sql(server: FlightServer) -> None:
    sql = "SELECT part FROM by_part WHERE qty > ? AND part <> ?"
    assert rows(server, sql, 3, "x") == [("nut",)]
    assert rows(server, sql, 1, "nut' OR '1'='1") == [("bolt",), ("nut",)]
    values = (True, 5, 1.5, "é'", Decimal("1.50"), date(2026, 1, 31), datetime(2026, 1, 31, 12, 30), None)
    assert rows(server, f"SELECT {', '.join('?' * len(values))}", *values) == [values]


def test_a_prepared_statement_is_executed_again_with_other_parameters(server: FlightServer) -> None:
    with connected(server) as connection, connection.cursor() as cursor:
        for least, expected in ((1, 2), (3, 1), (9, 0)):
            cursor.execute("SELECT part FROM by_part WHERE qty > ?", (least,))
            assert len(cursor.fetchall()) == expected


def test_the_token_is_accepted_as_password_of_any_user(server: FlightServer) -> None:
    with connected(server, username="anyone", password=TOKEN) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM by_part")
        assert cursor.fetchall() == [(2,)]


def test_a_client_gets_the_message_of_an_error_in_its_sql(server: FlightServer) -> None:
    with pytest.raises(Exception, match='column "quantity" not found'):
        rows(server, "SELECT quantity FROM by_part")


def test_the_catalog_lists_tables_views_and_their_columns(server: FlightServer) -> None:
    with connected(server) as connection:
        (catalog,) = connection.adbc_get_objects().read_all().to_pylist()
        (schema,) = catalog["catalog_db_schemas"]
        found = {one["table_name"]: one for one in schema["db_schema_tables"]}
        assert {name: one["table_type"] for name, one in found.items()} == {"by_part": "VIEW", "items": "TABLE"}
        assert [one["column_name"] for one in found["items"]["table_columns"]] == ["part", "qty"]
        assert connection.adbc_get_table_schema("by_part") == BY_PART.schema
        assert connection.adbc_get_table_types() == ["TABLE", "VIEW"]
        assert connection.adbc_get_info()["vendor_name"] == "freshviews"


def test_polars_reads_a_view(server: FlightServer) -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed")
    with connected(server) as connection:
        found = polars.read_database("SELECT part, qty FROM by_part ORDER BY qty", connection)
    assert found.rows() == [("bolt", 3), ("nut", 5)]


def test_a_result_of_many_megabytes_comes_in_parts() -> None:
    many = pa.table({"part": [f"part {n}" for n in range(400_000)], "note": ["x" * 60] * 400_000})
    with serving(Kept(view=many)) as server, connected(server) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT * FROM by_part")
        found = cursor.fetch_arrow_table()
    assert found.equals(many) and found.column(0).num_chunks > 4


def test_dictionary_columns_of_arrow_are_sent_as_plain_values() -> None:
    coded = pa.table({"part": pa.array(["bolt", None, "bolt"]).dictionary_encode()})

    class Coded(Kept):
        def select(self, sql: str, parameters: object) -> Any:
            from freshviews.wire import Rows

            return Rows(coded, 1)

    with serving(Coded()) as server:
        assert rows(server, "SELECT * FROM by_part") == [("bolt",), (None,), ("bolt",)]


def test_a_server_that_is_read_only_refuses_to_change_rows(server: FlightServer) -> None:
    with connected(server) as connection, connection.cursor() as cursor:
        for sql in ("INSERT INTO items VALUES ('nut', 1)", "DROP TABLE items", "COPY items TO 'x'"):
            with pytest.raises(Exception, match="read only; only SELECT is accepted; rows are changed elsewhere"):
                cursor.execute(sql)
            with pytest.raises(Exception, match="read only"):
                cursor.executescript(sql)


def test_ingest_is_refused_with_the_statement_to_execute_instead(server: FlightServer) -> None:
    given = pa.table({"part": ["nut"], "qty": pa.array([1], pa.int32())})
    writable = "adbc_ingest.*not supported; execute INSERT INTO items VALUES .* by executemany, or call db.insert"
    with serving(Kept(is_writable=True)) as other:
        for one, message in ((server, "adbc_ingest.*and the server is read only; rows are changed"), (other, writable)):
            with connected(one) as connection, connection.cursor() as cursor:
                for mode in ("append", "create"):
                    with pytest.raises(Exception, match=message):
                        cursor.adbc_ingest("items", given, mode=mode)


def test_a_writable_server_counts_changed_rows() -> None:
    kept = Kept(is_writable=True)
    with serving(kept) as server, connected(server) as connection, connection.cursor() as cursor:
        cursor.execute("DELETE FROM items")
        assert cursor.fetchall() == [(1,)]
        cursor.executemany("INSERT INTO items VALUES (?, ?)", [("nut", 1), ("bolt", 2)])
        assert cursor.rowcount == 2
        cursor.executescript("TRUNCATE TABLE items")
    insert = "INSERT INTO items VALUES (?, ?)"
    assert kept.updates == [
        ("DELETE FROM items", ()), (insert, ("nut", 1)), (insert, ("bolt", 2)), ("TRUNCATE TABLE items", ())
    ]  # fmt: skip


def options(token: str = TOKEN) -> flight.FlightCallOptions:
    return flight.FlightCallOptions(headers=[(b"authorization", f"Bearer {token}".encode())])


def asked(server: FlightServer, name: str, **fields: object) -> pa.Table:
    """The rows of a command, by pyarrow's client."""
    with flight.connect(server.uri) as client:
        info = client.get_flight_info(flight.FlightDescriptor.for_command(packed(made(name, **fields))), options())
        found = client.do_get(info.endpoints[0].ticket, options()).read_all()
    assert found.schema == info.schema and found.num_rows == info.total_records
    return found


def test_primary_keys_are_returned_with_positions(server: FlightServer) -> None:
    found = asked(server, "CommandGetPrimaryKeys", table="ITEMS").to_pylist()
    assert [(one["table_name"], one["column_name"], one["key_sequence"]) for one in found] == [("items", "part", 1)]
    assert asked(server, "CommandGetPrimaryKeys", table="by_part").num_rows == 0


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({"table_name_filter_pattern": "by%"}, ["by_part"]),
        ({"table_name_filter_pattern": r"by\_part"}, ["by_part"]),
        ({"table_name_filter_pattern": r"b\%"}, []),
        ({"table_name_filter_pattern": "_tem_"}, ["items"]),
        ({"table_name_filter_pattern": "%" * 500 + "z"}, []),
        ({"table_types": ["VIEW"]}, ["by_part"]),
        ({"catalog": ""}, ["by_part", "items"]),
        ({"catalog": "other"}, []),
        ({"db_schema_filter_pattern": "%"}, ["by_part", "items"]),
        ({"db_schema_filter_pattern": "x"}, []),
    ],
)
def test_tables_are_listed_by_name_pattern_and_type(
    server: FlightServer, fields: dict[str, Any], names: list[str]
) -> None:
    assert asked(server, "CommandGetTables", **fields)["table_name"].to_pylist() == names


def test_schemas_of_tables_are_sent_on_request(server: FlightServer) -> None:
    found = asked(server, "CommandGetTables", include_schema=True, table_name_filter_pattern="by_part")
    assert pa.ipc.read_schema(pa.BufferReader(found["table_schema"][0].as_py())) == BY_PART.schema


def test_the_server_lists_its_supported_features(server: FlightServer) -> None:
    rows = asked(server, "CommandGetSqlInfo", info=[0, 3, 4, 8]).to_pylist()
    found = {one["info_name"]: one["value"] for one in rows}
    assert found == {0: "freshviews", 3: True, 4: True, 8: 0}
    assert asked(server, "CommandGetSqlInfo").num_rows > 10


def test_the_schema_of_a_select_can_be_requested_without_its_rows(server: FlightServer) -> None:
    command = packed(made("CommandStatementQuery", query="SELECT * FROM by_part"))
    with flight.connect(server.uri) as client:
        found = client.get_schema(flight.FlightDescriptor.for_command(command), options())
    assert found.schema.names == ["part", "qty"]


def test_a_ticket_can_be_read_only_once(server: FlightServer) -> None:
    command = flight.FlightDescriptor.for_command(packed(made("CommandStatementQuery", query="SELECT 1")))
    with flight.connect(server.uri) as client:
        ticket = client.get_flight_info(command, options()).endpoints[0].ticket
        client.do_get(ticket, options()).read_all()
        with pytest.raises(KeyError, match="not held any more"):
            client.do_get(ticket, options()).read_all()


def test_a_closed_server_answers_no_request() -> None:
    with serving() as server, flight.connect(server.uri) as client:
        server.close()
        with pytest.raises(flight.FlightUnavailableError):
            list(client.list_actions(options()))


def test_messages_are_encoded_as_in_the_protobuf_specification() -> None:
    one = made("CommandGetTables", catalog="", include_schema=True)
    assert one.SerializeToString() == b"\x0a\x00\x28\x01" and one.HasField("catalog")
    assert not parsed("CommandGetTables", b"\x28\x01").HasField("catalog")
