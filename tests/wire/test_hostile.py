"""Clients that lie, send junk, send too much or stop reading: each is refused, and the next client is answered."""

from __future__ import annotations

import base64
import random
import resource
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from freshviews.errors import ArgumentError

pytest.importorskip("grpc", reason="grpcio is not installed; pip install 'freshviews[flight]'")
pytest.importorskip("google.protobuf", reason="protobuf is not installed; pip install 'freshviews[flight]'")

import grpc

from freshviews.wire import FlightServer, Rows, held, read_token
from freshviews.wire import server as wire_server
from freshviews.wire.arrow_data import rows_of, stream_of
from freshviews.wire.held import Gone, Prepared, held_statements
from freshviews.wire.messages import BadMessage, made, packed, parsed
from tests.wire.kept import BY_PART, TOKEN, Kept, serving

pytestmark = pytest.mark.plain_python(only=True)

ONE = {"GetFlightInfo", "GetSchema"}
FROM_ONE = {"DoGet", "DoAction", "ListActions", "ListFlights"}
FROM_MANY = {"DoPut", "Handshake"}
METHODS = sorted(ONE | FROM_ONE | FROM_MANY)
Header = tuple[str, str]
JUNK = (b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 500, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 99)
RIGHT: list[Header] = [("authorization", f"Bearer {TOKEN}")]


@pytest.fixture(scope="module")
def server() -> Iterator[FlightServer]:
    with serving(Kept(is_writable=True)) as made_server:
        yield made_server


def call(server: FlightServer, method: str, *requests: bytes, headers: list[Header] = RIGHT, wait: float = 20) -> Any:
    """The answers to a request, as bytes; an error's status and details."""
    options = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
    with grpc.insecure_channel(f"{server.host}:{server.port}", options=options) as channel:
        path = f"/arrow.flight.protocol.FlightService/{method}"
        try:
            if method in ONE:
                return [channel.unary_unary(path)(requests[0], metadata=headers, timeout=wait)]
            if method in FROM_MANY:
                return [*channel.stream_stream(path)(iter(requests), metadata=headers, timeout=wait)]
            return [*channel.unary_stream(path)(requests[0], metadata=headers, timeout=wait)]
        except grpc.RpcError as error:
            return error.code().name, error.details()


def descriptor(name: str, **fields: object) -> Any:
    return made("FlightDescriptor", type=2, cmd=packed(made(name, **fields)))


def select(server: FlightServer) -> bytes:
    """The ticket of a SELECT, which shows that the server answers."""
    request = descriptor("CommandStatementQuery", query="SELECT * FROM by_part").SerializeToString()
    (answer,) = call(server, "GetFlightInfo", request)
    ticket: bytes = parsed("FlightInfo", answer).endpoint[0].ticket.SerializeToString()
    return ticket


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


WRONG: list[list[Header]] = [
    [],
    [("authorization", "")],
    [("authorization", "Bearer")],
    [("authorization", f"Bearer {TOKEN[:-1]}")],
    [("authorization", f"Bearer {TOKEN}x")],
    [("authorization", f"Bearer {TOKEN.upper()}")],
    [("authorization", TOKEN)],
    [("authorization", f"Digest {TOKEN}")],
    [("authorization", basic(TOKEN))],
    [("authorization", basic(f"user:{TOKEN[1:]}"))],
    [("authorization", "Basic !!!")],
    [("token", TOKEN)],
    [*RIGHT, ("authorization", "Bearer wrong")],
]


@pytest.mark.parametrize("headers", WRONG)
def test_a_request_without_the_token_is_refused(server: FlightServer, headers: list[Header]) -> None:
    request = descriptor("CommandStatementQuery", query="SELECT 1").SerializeToString()
    status, details = call(server, "GetFlightInfo", request, headers=headers)
    assert status == "UNAUTHENTICATED" and TOKEN not in details


@pytest.mark.parametrize("method", METHODS)
def test_every_method_refuses_a_wrong_token(server: FlightServer, method: str) -> None:
    status, _ = call(server, method, b"", headers=[("authorization", "Bearer wrong")])
    assert status == "UNAUTHENTICATED"


@pytest.mark.parametrize("headers", [RIGHT, [("authorization", basic(f"anyone:{TOKEN}"))]])
def test_the_token_is_accepted_as_a_bearer_token_and_as_a_password(server: FlightServer, headers: list[Header]) -> None:
    assert call(server, "Handshake", b"", headers=headers) == [b""]


def test_a_message_that_is_too_long_is_not_read(server: FlightServer) -> None:
    long = made("FlightDescriptor", type=2, cmd=b"x" * (200 << 20)).SerializeToString()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for headers in ([], RIGHT):
        assert call(server, "GetFlightInfo", long, headers=headers)[0] in ("RESOURCE_EXHAUSTED", "UNAUTHENTICATED")
    # The client, in this process, holds a copy or two; a server that read the message would hold more.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 900 << 10
    assert select(server)


def test_headers_that_are_too_long_are_refused(server: FlightServer) -> None:
    status, _ = call(server, "ListActions", b"", headers=[*RIGHT, ("x", "y" * (1 << 20))])
    assert status in ("RESOURCE_EXHAUSTED", "UNAVAILABLE", "INTERNAL") and select(server)


@pytest.mark.parametrize("method", METHODS)
def test_random_bytes_are_refused_and_the_next_request_is_answered(server: FlightServer, method: str) -> None:
    chance = random.Random(method)
    good = descriptor("CommandStatementQuery", query="SELECT 1").SerializeToString()
    for number in range(30):
        if number % 2:
            junk = bytearray(good)
            for _ in range(chance.randrange(1, 6)):
                junk[chance.randrange(len(junk))] = chance.randrange(256)
        else:
            junk = bytearray(chance.randbytes(chance.randrange(1, 200)))
        answer = call(server, method, bytes(junk))
        if isinstance(answer, tuple):
            assert answer[0] in ("INVALID_ARGUMENT", "NOT_FOUND", "UNIMPLEMENTED"), answer
    assert select(server)


def test_a_deeply_nested_message_is_refused(server: FlightServer) -> None:
    nested = b""
    for _ in range(2000):
        size = len(nested)
        nested = b"\x1a" + bytes([size & 127 | 128, size >> 7 & 127 | 128, size >> 14]) + nested
    status, _ = call(server, "GetFlightInfo", nested)
    assert status == "INVALID_ARGUMENT" and select(server)


def test_corrupt_arrow_data_for_parameters_is_refused(server: FlightServer) -> None:
    create = packed(made("ActionCreatePreparedStatementRequest", query="SELECT ? + ?"))
    action = made("Action", type="CreatePreparedStatement", body=create)
    (answer,) = call(server, "DoAction", action.SerializeToString())
    result = parsed("ActionCreatePreparedStatementResult", parsed("Any", parsed("Result", answer).body).value)
    handle = result.prepared_statement_handle
    names = descriptor("CommandPreparedStatementQuery", prepared_statement_handle=handle)
    first, *others = stream_of(pa.table({"1": ["a", "b", "c"] * 9, "2": pa.array([1.5] * 27)}))
    begun = made("FlightData", flight_descriptor=names)
    begun.MergeFrom(parsed("FlightData", first))
    assert call(server, "DoPut", begun.SerializeToString(), *others) == [b""]
    chance = random.Random(1)
    for _ in range(60):
        messages = [bytearray(begun.SerializeToString()), *map(bytearray, others)]
        victim = messages[chance.randrange(len(messages))]
        for _ in range(chance.randrange(1, 4)):
            # Of the first message the descriptor stays.
            victim[chance.randrange(100 if victim is messages[0] else 0, len(victim))] = chance.randrange(256)
        answer = call(server, "DoPut", *map(bytes, messages))
        assert answer == [b""] or answer[0] in ("INVALID_ARGUMENT", "NOT_FOUND", "UNIMPLEMENTED"), answer
    status, details = call(server, "DoPut", begun.SerializeToString(), b"\xff" * 50)
    assert status == "INVALID_ARGUMENT" and details == "the request is not a valid FlightData"
    assert select(server)


_MANY = 10_000_000
BOMBS: list[tuple[pa.Array, str | None, str]] = [
    (pa.nulls(_MANY), None, "more than 4,194,304 parameters"),
    (pa.array([0] * 1000), "zstd", "are compressed"),
    (pa.array(["x"] * 1000).dictionary_encode(), None, "of type dictionary"),
    (pa.array([[None]] * 3), None, "of type list"),
    (pa.RunEndEncodedArray.from_arrays(pa.array([_MANY], pa.int32()), pa.array([1])), None, "of type run_end"),
    (pa.array(["x"] * 3, pa.string_view()), None, "of type string_view"),
]


@pytest.mark.parametrize(("column", "compression", "message"), BOMBS)
def test_a_message_of_too_many_rows_is_refused(
    column: pa.Array, compression: str | None, message: str
) -> None:
    sink = pa.BufferOutputStream()
    batch = pa.record_batch([column], ["1"])
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as stream:
        stream.write_batch(batch)
    reader = pa.ipc.MessageReader.open_stream(sink.getvalue())
    parts = [
        made("FlightData", data_header=one.metadata.to_pybytes(), data_body=one.body.to_pybytes()).SerializeToString()
        for one in reader
    ]
    assert sum(map(len, parts)) < 100_000
    with pytest.raises(BadMessage, match=message):
        rows_of(parts, 1 << 20)


def test_parameters_count_towards_the_limit_of_bytes(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held, "RESULT_BYTES", 10_000)
    statements = held_statements()
    one, other = statements.add(Prepared("SELECT ?", 1)), statements.add(Prepared("SELECT ?", 1))
    for handle in (one, other):
        statements.get(handle).bind([("x" * 6000,)])
    with pytest.raises(Gone):
        statements.get(one)
    assert statements.get(other).bound


@pytest.mark.parametrize(
    ("method", "request_of", "message"),
    [
        ("GetFlightInfo", lambda: made("FlightDescriptor", type=1, path=["by_part"]), "only commands of Flight SQL"),
        ("GetFlightInfo", lambda: made("FlightDescriptor", type=2, cmd=b"SELECT 1"), "not a valid Any"),
        ("GetFlightInfo", lambda: descriptor("TicketStatementQuery", statement_handle=b"x"), "does not return rows"),
        ("GetFlightInfo", lambda: descriptor("CommandStatementQuery", query="x" * (2 << 20)), "1,048,576 characters"),
        ("GetFlightInfo", lambda: descriptor("CommandStatementQuery", query="SELECT 1", transaction_id=b"x"),
         "transactions are not supported"),
        ("GetFlightInfo", lambda: descriptor("CommandPreparedStatementQuery", prepared_statement_handle=b"x"),
         "not held any more"),
        ("GetFlightInfo", lambda: descriptor("CommandGetTables", table_name_filter_pattern="%a" * 5000), "1000 char"),
        ("DoGet", lambda: made("Ticket", ticket=b"junk"), "not a valid Any"),
        ("DoAction", lambda: made("Action", type="BeginTransaction"), "is not supported; the actions are"),
        ("DoPut", lambda: made("FlightData", flight_descriptor=descriptor("CommandGetCatalogs")),
         "DoPut does not accept"),
    ],
)  # fmt: skip
def test_a_wrong_request_is_refused_with_its_reason(
    server: FlightServer, method: str, request_of: Callable[[], Any], message: str
) -> None:
    _, details = call(server, method, request_of().SerializeToString())
    assert message in details


def test_an_unknown_method_is_refused(server: FlightServer) -> None:
    for headers in ([], RIGHT):
        with grpc.insecure_channel(f"{server.host}:{server.port}") as channel, pytest.raises(grpc.RpcError) as error:
            channel.unary_unary("/arrow.flight.protocol.FlightService/Other")(b"", metadata=headers, timeout=20)
        assert error.value.code().name in ("UNIMPLEMENTED", "UNAUTHENTICATED")


def test_an_internal_error_shows_only_its_class() -> None:
    class Broken(Kept):
        def select(self, sql: str, parameters: object) -> Rows:
            raise KeyError("password=hunter2 of /etc/secret")

    with serving(Broken()) as server:
        request = descriptor("CommandStatementQuery", query="SELECT 1").SerializeToString()
        assert call(server, "GetFlightInfo", request) == ("INTERNAL", "an error inside freshviews: KeyError")


def test_clients_that_stop_reading_are_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire_server, "SECONDS", 0.5)
    many = pa.table({"text": ["x" * 1000] * 60_000})
    with serving(Kept(view=many)) as server:
        channels = []
        for _ in range(wire_server.WORKERS):
            channel = grpc.insecure_channel(f"{server.host}:{server.port}")
            path = "/arrow.flight.protocol.FlightService/DoGet"
            answers = channel.unary_stream(path)(select(server), metadata=RIGHT)
            next(iter(answers))
            channels.append((channel, answers))
        time.sleep(1.5)
        while server._watch._waiting:  # On a busy machine some answers are not written yet.
            time.sleep(0.5)
        assert select(server)
        for channel, answers in channels:
            with pytest.raises(grpc.RpcError):
                list(answers)
            channel.close()


@pytest.mark.parametrize("method", METHODS)
def test_clients_that_send_no_message_are_cut_off(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    monkeypatch.setattr(wire_server, "SECONDS", 0.5)
    release, other = socket.socketpair()

    def silent() -> Iterator[bytes]:
        release.recv(1)
        yield from ()

    with serving() as server, grpc.insecure_channel(f"{server.host}:{server.port}") as channel:
        call_of = channel.stream_stream(f"/arrow.flight.protocol.FlightService/{method}")
        open_calls = [call_of(silent(), metadata=RIGHT) for _ in range(wire_server.WORKERS)]
        time.sleep(0.2)
        assert select(server)
        for one in open_calls:
            with pytest.raises(grpc.RpcError) as error:
                list(one)
            assert error.value.code().name == "CANCELLED"
        other.close()
    release.close()


def test_a_client_that_stops_sending_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire_server, "SECONDS", 0.5)

    def slow() -> Iterator[bytes]:
        yield made("FlightData", flight_descriptor=descriptor("CommandStatementUpdate", query="x")).SerializeToString()
        release.recv(1)

    release, other = socket.socketpair()
    with serving(Kept(is_writable=True)) as server, grpc.insecure_channel(f"{server.host}:{server.port}") as channel:
        path = "/arrow.flight.protocol.FlightService/DoPut"
        with pytest.raises(grpc.RpcError) as error:
            list(channel.stream_stream(path)(slow(), metadata=RIGHT, timeout=20))
        assert error.value.code().name == "CANCELLED"
        other.send(b"x")
    release.close()
    other.close()


def test_connections_that_do_not_speak_grpc_leave_the_server_running(server: FlightServer) -> None:
    idle = [socket.create_connection((server.host, server.port)) for _ in range(100)]
    for number, one in enumerate(idle):
        one.sendall(JUNK[number % len(JUNK)])
    assert select(server)
    for one in idle:
        one.close()


def test_the_server_keeps_a_limited_number_of_unfetched_results(
    server: FlightServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(Kept(view=BY_PART)) as other:
        results = other._sql._results
        monkeypatch.setattr(results, "_most", 5)
        tickets = [select(other) for _ in range(20)]
        assert len(results._kept) == 5
        assert call(other, "DoGet", tickets[0])[0] == "NOT_FOUND"
        assert len(call(other, "DoGet", tickets[-1])) == 2
        results.clear()
        monkeypatch.setattr(results, "_seconds", -1.0)
        assert call(other, "DoGet", select(other))[0] == "NOT_FOUND"


def test_a_token_is_read_from_a_file_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FRESHVIEWS_TOKEN", raising=False)
    assert read_token() is None
    monkeypatch.setenv("FRESHVIEWS_TOKEN", "of-the-environment")
    (tmp_path / "token").write_text("of-the-file-itself\n")
    assert (read_token(), read_token(str(tmp_path / "token"))) == ("of-the-environment", "of-the-file-itself")


@pytest.mark.parametrize("token", ["", "short", "x" * 2000, "sixteen letters and", "sixteen-létters!", "a\tb" * 9])
def test_an_invalid_token_is_refused(token: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(token)
    with pytest.raises(ArgumentError) as error:
        read_token(str(tmp_path / "token"))
    assert not token or token not in str(error.value)
    with pytest.raises(ArgumentError):
        FlightServer(Kept(), "127.0.0.1", 0, token)


def test_random_tokens_differ() -> None:
    with serving(token=None) as one, serving(token=None) as other:
        assert one.token != other.token and len(one.token) > 40


def test_a_server_on_a_port_in_use_is_refused(server: FlightServer) -> None:
    with pytest.raises(ArgumentError, match=r"cannot listen at 127\.0\.0\.1:\d+"):
        FlightServer(Kept(), "127.0.0.1", server.port, TOKEN)
