"""Runs a gRPC server for Flight SQL.

It limits the size of a message, the number of requests at a time, and the time that it waits for a client.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from ipaddress import ip_address
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Any, Literal, NoReturn

from freshviews.errors import ArgumentError, FreshviewsError, OutOfMemory, shown
from freshviews.secrets import masked
from freshviews.wire.flight_sql import FlightSql
from freshviews.wire.held import Gone
from freshviews.wire.messages import BadMessage, classes, made, parsed
from freshviews.wire.served import RefusedStatement, Served
from freshviews.wire.tokens import checked, random_token, shows

SECONDS = 60.0
"""Seconds that a client may let the server wait."""
LONGEST = 16 << 20
"""Most bytes of a message."""
WORKERS = 16
MOST = 64
_POLL = 0.5
_HEADERS = 16 << 10
_STREAMS = 64
_LAST_PORT = 65_535
_HOST = re.compile(r"[\w.:-]+", re.ASCII)
"""Other letters would let gRPC take it for something else, as a socket in the file system."""
_ALIVE_MS, _ANSWER_MS = 60_000, 20_000
_SERVICE = "arrow.flight.protocol.FlightService"


class FlightServer:
    """Serves a ``Served`` until ``close``.

    The token is checked before a message is read. A message has at most ``LONGEST`` bytes. At most ``WORKERS`` requests
    run at a time, and at most ``MOST`` run or wait. A client that neither sends nor takes a message for ``SECONDS`` is
    cut off.

    Attributes
    ----------
    host, port
        The address.
    token
        What clients show; empty if they need not.
    """

    def __init__(
        self,
        served: Served,
        host: str,
        port: int,
        token: str | Literal[False] | None,
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        """Take the port and serve. ``token``: None for a random one; False for none, on an address of this machine.
        ``ended``: called by ``close``.

        Raises ArgumentError if the port cannot be taken, or grpcio or protobuf is missing.
        """
        try:
            import grpc
        except ImportError:
            raise ArgumentError("Flight SQL needs the package grpcio; pip install 'freshviews[flight]'") from None
        classes()
        if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= _LAST_PORT:
            raise ArgumentError(f"port must be a whole number from 0 to {_LAST_PORT}, not {shown(port)}")
        self.host = _host(host)
        self.token = "" if token is False else random_token() if token is None else checked(token, "the token")
        if token is False and not _is_of_this_machine(host):
            raise ArgumentError(f"host {host}: a server without a token needs an address of this machine, as 127.0.0.1")
        self._is_writable, self._is_closed, self._ended = served.is_writable, False, ended
        self._sql = FlightSql(served)
        self._watch = _Watch(SECONDS)
        self._workers = ThreadPoolExecutor(WORKERS, "flight-sql")
        handler = grpc.method_handlers_generic_handler(_SERVICE, _handlers(grpc, self._sql, self._watch))
        self._server = grpc.server(
            self._workers,
            handlers=[handler],
            interceptors=[_guard(grpc, self.token)] if self.token else [],
            maximum_concurrent_rpcs=MOST,
            options=[
                ("grpc.max_receive_message_length", LONGEST),
                ("grpc.max_send_message_length", -1),
                ("grpc.absolute_max_metadata_size", _HEADERS),
                ("grpc.max_concurrent_streams", _STREAMS),
                ("grpc.keepalive_time_ms", _ALIVE_MS),
                ("grpc.keepalive_timeout_ms", _ANSWER_MS),
                ("grpc.so_reuseport", 0),
            ],
        )
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            self.port: int = self._server.add_insecure_port(address)
        except RuntimeError:
            self.port = 0
        if not self.port:
            self._workers.shutdown()
            raise ArgumentError(
                f"cannot listen at {address}: another process uses the port, or the address is not of this machine; "
                "name another port, or 0 for a free port"
            )
        self._watch.start()
        self._server.start()

    @property
    def uri(self) -> str:
        """The address as clients take it."""
        return f"grpc://[{self.host}]:{self.port}" if ":" in self.host else f"grpc://{self.host}:{self.port}"

    def __enter__(self) -> FlightServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else "open for writing" if self._is_writable else "read only"
        return f"server of Arrow Flight SQL at {self.uri}, {state}"

    def close(self) -> None:
        """End, and cut all clients off. May be called twice."""
        self._is_closed = True
        self._ended()
        self._server.stop(None).wait()
        self._watch.close()
        self._workers.shutdown(wait=False, cancel_futures=True)
        self._sql.close()


def _host(host: object) -> str:
    if not isinstance(host, str) or not _HOST.fullmatch(host):
        raise ArgumentError(f"host must be an address of this machine, such as 127.0.0.1, not {shown(host)}")
    return host


def _is_of_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class _Watch:
    """Cancels requests whose client lets the server wait too long."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._waiting: dict[Any, float] = {}
        self._changing = Lock()
        self._ended = Event()
        self._thread = Thread(target=self._run, name="flight-sql-watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._ended.set()
        self._thread.join()

    @contextmanager
    def waiting(self, context: Any) -> Iterator[None]:
        """While a request waits for its client."""
        with self._changing:
            self._waiting[context] = time.monotonic() + self._seconds
        try:
            yield
        finally:
            with self._changing:
                self._waiting.pop(context, None)

    def sent(self, messages: Iterator[bytes], context: Any) -> Iterator[bytes]:
        """Messages to a client. gRPC asks for the next one when the client has taken those before it."""
        for message in messages:
            with self.waiting(context):
                yield message

    def received(self, messages: Iterator[bytes], context: Any) -> Iterator[bytes]:
        """Messages from a client."""
        while True:
            with self.waiting(context):
                message = next(messages, None)
            if message is None:
                return
            yield message

    def _run(self) -> None:
        while not self._ended.wait(_POLL):
            now = time.monotonic()
            with self._changing:
                late = [context for context, end in self._waiting.items() if end < now]
            for context in late:
                context.cancel()


def _handlers(grpc: Any, sql: FlightSql, watch: _Watch) -> dict[str, Any]:
    """The methods of the service. Messages arrive and leave as bytes, so that a bad one is answered here.

    Each is a stream in both directions, also where one message is sent: gRPC would wait for it without a limit.
    """

    def streams(method: Callable[[Iterator[bytes]], Iterator[bytes]]) -> Any:
        def call(requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
            with _errors(grpc, context):
                yield from watch.sent(method(watch.received(requests, context)), context)

        return grpc.stream_stream_rpc_method_handler(call)

    def one(method: Callable[[bytes], bytes]) -> Any:
        return streams(lambda requests: iter((method(_first(requests)),)))

    def several(method: Callable[[bytes], Iterator[bytes]]) -> Any:
        return streams(lambda requests: method(_first(requests)))

    def shake(requests: Iterator[bytes]) -> Iterator[bytes]:
        # A client that names a user and password asks for this first. The token was shown with it.
        for request in requests:
            version = parsed("HandshakeRequest", request).protocol_version
            yield made("HandshakeResponse", protocol_version=version).SerializeToString()

    return {
        "Handshake": streams(shake),
        "GetFlightInfo": one(sql.info),
        "GetSchema": one(sql.schema),
        "DoGet": several(sql.rows),
        "DoPut": streams(sql.put),
        "DoAction": several(sql.act),
        "ListActions": several(lambda request: sql.actions()),
        "ListFlights": several(lambda request: iter(())),
    }


def _first(requests: Iterator[bytes]) -> bytes:
    request = next(requests, None)
    if request is None:
        raise BadMessage("the request has no message")
    return request


@contextmanager
def _errors(grpc: Any, context: Any) -> Iterator[None]:
    """Errors as the status of a request, whose details are the message; of a bug, its kind alone."""
    status = grpc.StatusCode
    try:
        yield
    except BadMessage as error:
        _abort(context, status.INVALID_ARGUMENT, str(error))
    except Gone:
        _abort(context, status.NOT_FOUND, "the result or statement is not held any more; execute it again")
    except RefusedStatement as error:
        _abort(context, status.UNIMPLEMENTED, str(error))
    except OutOfMemory as error:
        _abort(context, status.RESOURCE_EXHAUSTED, str(error))
    except FreshviewsError as error:
        _abort(context, status.INVALID_ARGUMENT, str(error))
    except (GeneratorExit, grpc.RpcError):
        raise
    except Exception as error:
        if context.is_active():
            _abort(context, status.INTERNAL, f"an error inside freshviews: {type(error).__name__}")


def _abort(context: Any, status: Any, message: str) -> NoReturn:
    # The details are a header of the answer.
    context.abort(status, masked(message)[:4000])
    raise AssertionError("abort raises")


def _guard(grpc: Any, token: str) -> Any:
    """The interceptor that refuses requests without the token. A password gets the token back, for later requests."""

    class Guard(grpc.ServerInterceptor):  # type: ignore[misc]
        def intercept_service(self, continuation: Any, details: Any) -> Any:
            headers = [value for name, value in details.invocation_metadata if name == "authorization"]
            if len(headers) == 1 and shows(headers[0], token):
                handler = continuation(details)
                if handler is not None and details.method.endswith("/Handshake"):
                    return _with_token(grpc, handler, token)
                return handler
            return grpc.stream_stream_rpc_method_handler(refuse)

    def refuse(requests: Any, context: Any) -> Iterator[bytes]:
        context.abort(
            grpc.StatusCode.UNAUTHENTICATED,
            "the token is missing or wrong; send the header 'authorization: Bearer TOKEN', or it as the password",
        )
        yield b""

    return Guard()


def _with_token(grpc: Any, handler: Any, token: str) -> Any:
    def call(requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
        context.send_initial_metadata([("authorization", f"Bearer {token}")])
        yield from handler.stream_stream(requests, context)

    return grpc.stream_stream_rpc_method_handler(call)
