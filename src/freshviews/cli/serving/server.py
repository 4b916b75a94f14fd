"""Runs an HTTP server that answers only GET. Each connection has a thread of its own.

The server limits the number of connections, the seconds of a connection, and the size of a request.
"""

from __future__ import annotations

import errno
import os
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer, ThreadingMixIn
from threading import Lock, Thread
from typing import Any, BinaryIO

from freshviews.errors import FreshviewsError
from freshviews.records import dataclass

SECONDS = 5.0
"""Seconds that a connection may last."""
MOST = 32
"""Most open connections."""
LONGEST = 1 << 16
"""Most bytes of a request."""
_POLL = 0.2
_PAUSE = 0.1


@dataclass(frozen=True)
class Request:
    """A GET request. ``target``: path and query as sent; ``hosts``: the values of its Host headers."""

    target: str
    hosts: tuple[str, ...]


@dataclass(frozen=True)
class Answer:
    """An answer. ``headers``: those besides the type and the length of the body."""

    status: HTTPStatus
    kind: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


def plain_answer(status: HTTPStatus, message: str) -> Answer:
    """A line of text as the answer."""
    return Answer(status, "text/plain; charset=utf-8", f"{status.value} {message}\n".encode())


class Busy(Exception):
    """Another request is still being computed."""


class ServerError(FreshviewsError):
    """An address cannot be served; the message names it and the remedy."""


class HttpServer:
    """Serves from ``start`` until ``close``; takes its port when created."""

    def __init__(
        self,
        host: str,
        port: int,
        answer: Callable[[Request], Answer],
        *,
        option: str = "",
        seconds: float | None = None,
    ) -> None:
        """``answer`` must not raise. ``option``: the prefix of the options ``host`` and ``port`` of the command line.
        ``seconds``: the time of a connection from its request until all is sent; by default ``SECONDS`` in all.

        Raises ServerError if the port cannot be taken.
        """
        accepted = "name an address, such as 127.0.0.1, or 0.0.0.0 for all"
        if not host:
            raise ServerError(f"--{option}host is empty; {accepted}")
        try:
            family, _, _, _, place = socket.getaddrinfo(
                host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
        except (OSError, UnicodeError) as error:
            raise ServerError(
                f"--{option}host {host} is not an address of this machine: {getattr(error, 'strerror', None) or error}"
                f"; {accepted}"
            ) from None
        try:
            self._server = _Server(family, place[:2], answer, seconds)
        except OSError as error:
            reason = os.strerror(error.errno or 0)
            if error.errno == errno.EADDRNOTAVAIL:
                message = f"--{option}host {host} is not an address of this machine: {reason}; {accepted}"
                raise ServerError(message) from None
            remedy = "name another port" + (
                ", or end the process that listens there" if error.errno == errno.EADDRINUSE else ", above 1023"
            )
            raise ServerError(f"--{option}port {port}: cannot listen at {host}:{port}: {reason}; {remedy}") from None
        self._thread = Thread(target=self._server.serve_forever, args=(_POLL,), name="http", daemon=True)

    @property
    def address(self) -> str:
        """The URL of the server, without a path."""
        host, port = self._server.server_address[:2]
        return f"http://{f'[{host!s}]' if ':' in str(host) else host!s}:{port}"

    def start(self) -> None:
        """Serve, in a thread."""
        self._thread.start()

    def close(self) -> None:
        """End, and close all connections. May be called twice, and before ``start``."""
        if self._thread.is_alive():
            self._server.shutdown()
        self._server.server_close()
        self._server.cut(float("inf"))


class _Server(ThreadingMixIn, TCPServer):
    """A thread per connection. ``_open``: the connections, the oldest first, with the time at which each is closed."""

    daemon_threads = True
    block_on_close = False
    # Without this, a port stays taken for a minute after a run.
    allow_reuse_address = True
    request_queue_size = MOST

    def __init__(
        self, family: int, place: Any, answer: Callable[[Request], Answer], seconds: float | None
    ) -> None:
        self.address_family = family
        self.answer = answer
        self._seconds = seconds
        self._open: dict[socket.socket, float] = {}
        self._changing = Lock()
        super().__init__(place, _Handler)

    def get_request(self) -> tuple[socket.socket, Any]:
        try:
            return super().get_request()
        except OSError:
            # The process may have too many open files: do not retry in a busy loop.
            time.sleep(_PAUSE)
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._changing:
            self._open[request] = time.monotonic() + SECONDS
            oldest = next(iter(self._open)) if len(self._open) > MOST else None
            full = len(self._open) > 2 * MOST
        if oldest is not None:
            _cut(oldest)
        if full and not self._room():
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def _room(self) -> bool:
        """Wait until threads of closed connections end; False if they do not, so that no further one may begin."""
        end = time.monotonic() + SECONDS
        while len(self._open) > 2 * MOST and time.monotonic() < end:
            time.sleep(_PAUSE / 10)
        return len(self._open) <= 2 * MOST

    def shutdown_request(self, request: Any) -> None:
        with self._changing:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Called by the loop every ``_POLL`` seconds."""
        self.cut(time.monotonic())

    def answering(self, request: socket.socket) -> None:
        """The request has been read: its connection now has the seconds of an answer."""
        with self._changing:
            if self._seconds is not None and request in self._open:
                self._open[request] = time.monotonic() + self._seconds

    def cut(self, moment: float) -> None:
        """Close the connections whose time has passed at a moment."""
        with self._changing:
            old = [request for request, end in self._open.items() if end <= moment]
        for request in old:
            _cut(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log nothing: errors of clients do not concern users of the pipeline."""


def _cut(request: socket.socket) -> None:
    """End the thread of a connection: its reads see the end of the stream, and its writes fail."""
    with suppress(OSError):
        request.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    """Answers GET only."""

    server: _Server
    rfile: Any
    server_version = "freshviews"
    sys_version = ""
    error_message_format = "%(code)d %(message)s\n"
    error_content_type = "text/plain; charset=utf-8"

    def setup(self) -> None:
        super().setup()
        self.rfile = _Limited(self.rfile)

    def handle_one_request(self) -> None:
        # The connection was cut, or the request is too long.
        with suppress(OSError):
            super().handle_one_request()

    def do_GET(self) -> None:
        self.server.answering(self.connection)
        made = self.server.answer(Request(self.path, tuple(self.headers.get_all("Host", []))))
        self.send_response(made.status)
        self.send_header("Content-Type", made.kind)
        self.send_header("Content-Length", str(len(made.body)))
        for name, value in made.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(made.body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


class _Limited:
    """A file whose lines have at most ``LONGEST`` bytes in all."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._left = LONGEST

    def readline(self, size: int) -> bytes:
        """Raises ConnectionError beyond the limit."""
        line = self._file.readline(min(size, self._left))
        self._left -= len(line)
        if not self._left:
            raise ConnectionError("the request is too long")
        return line

    def close(self) -> None:
        self._file.close()
