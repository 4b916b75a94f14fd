"""An HTTP server for one page, /metrics, in threads beside a pipeline, which it can neither block nor end.

It trusts no client. A connection has ``SECONDS`` in all for its request and answer. At most ``MOST`` connections are
open: a new one beyond that takes the place of the oldest, so connections that wait silently shut nobody out. A request
has at most ``LONGEST`` bytes.
"""

from __future__ import annotations

import errno
import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer, ThreadingMixIn
from threading import Lock, Thread
from typing import Any, BinaryIO

from freshviews.cli.metrics import CONTENT_TYPE, Busy
from freshviews.errors import FreshviewsError

PAGE = "/metrics"
SECONDS = 5.0
"""Seconds that a connection may take."""
MOST = 32
"""Connections that may be open."""
LONGEST = 1 << 16
"""Bytes of a request."""
_POLL = 0.2
_PAUSE = 0.1

Text = Callable[[float], bytes]
"""Returns the page; waits at most the given seconds for another thread that computes it, else raises Busy."""


class MetricsError(FreshviewsError):
    """The page cannot be served; the message names the address and the remedy."""


class MetricsServer:
    """Serves the page from ``start`` until ``close``; the port is taken when it is created."""

    def __init__(self, host: str, port: int, text: Text) -> None:
        """Raises MetricsError if the port cannot be taken."""
        accepted = "name one, such as 127.0.0.1, or 0.0.0.0 for all"
        if not host:
            raise MetricsError(f"--metrics-host has no address; {accepted}")
        try:
            family, _, _, _, place = socket.getaddrinfo(
                host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
        except (OSError, UnicodeError) as error:
            raise MetricsError(
                f"--metrics-host {host} is no address of this machine: {getattr(error, 'strerror', None) or error}; "
                f"{accepted}"
            ) from None
        try:
            self._server = _Server(family, place[:2], text)
        except OSError as error:
            reason = os.strerror(error.errno or 0)
            if error.errno == errno.EADDRNOTAVAIL:
                message = f"--metrics-host {host} is no address of this machine: {reason}; {accepted}"
                raise MetricsError(message) from None
            remedy = "name another port" + (
                ", or end the process that listens there" if error.errno == errno.EADDRINUSE else ", above 1023"
            )
            raise MetricsError(f"--metrics-port {port}: {host}:{port} cannot be taken: {reason}; {remedy}") from None
        self._thread = Thread(target=self._server.serve_forever, args=(_POLL,), name="metrics", daemon=True)

    @property
    def address(self) -> str:
        """The URL of the page."""
        host, port = self._server.server_address[:2]
        return f"http://{f'[{host!s}]' if ':' in str(host) else host!s}:{port}{PAGE}"

    def start(self) -> None:
        """Serve, in a thread."""
        self._thread.start()

    def close(self) -> None:
        """End, and close all connections. It may be called twice, and before ``start``."""
        if self._thread.is_alive():
            self._server.shutdown()
        self._server.server_close()
        self._server.cut(0)


class _Server(ThreadingMixIn, TCPServer):
    """A thread per connection. ``_open`` has the connections, the oldest first, with the time of their beginning."""

    daemon_threads = True
    block_on_close = False
    # Else a port is not free for a minute after a run.
    allow_reuse_address = True
    request_queue_size = MOST

    def __init__(self, family: int, place: Any, text: Text) -> None:
        self.address_family = family
        self.text = text
        self._open: dict[socket.socket, float] = {}
        self._changing = Lock()
        super().__init__(place, _Handler)

    def get_request(self) -> tuple[socket.socket, Any]:
        try:
            return super().get_request()
        except OSError:
            # The process has too many open files, perhaps: do not try in a busy loop.
            time.sleep(_PAUSE)
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._changing:
            self._open[request] = time.monotonic()
            oldest = next(iter(self._open)) if len(self._open) > MOST else None
            full = len(self._open) > 2 * MOST
        if oldest is not None:
            _cut(oldest)
        if full and not self._room():
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def _room(self) -> bool:
        """Wait for threads of connections that were cut to end; False if they do not: then no more may begin."""
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
        self.cut(SECONDS)

    def cut(self, seconds: float) -> None:
        """Cut the connections that have been open for this number of seconds or more."""
        before = time.monotonic() - seconds
        with self._changing:
            old = [request for request, begun in self._open.items() if begun <= before]
        for request in old:
            _cut(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: what a client does wrong concerns no user of the pipeline."""


def _cut(request: socket.socket) -> None:
    """Make the thread of a connection end: what it reads is the end of the stream, and what it writes fails."""
    with suppress(OSError):
        request.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    """Answers GET /metrics, and nothing else."""

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
        if self.path.partition("?")[0] != PAGE:
            self.send_error(HTTPStatus.NOT_FOUND, f"there is only {PAGE}")
            return
        try:
            text = self.server.text(SECONDS)
        except Busy:
            self.send_error(HTTPStatus.SERVICE_UNAVAILABLE, "the numbers are being read")
            return
        except Exception as error:
            self.send_error(HTTPStatus.INTERNAL_SERVER_ERROR, f"the numbers cannot be read: {type(error).__name__}")
            return
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


class _Limited:
    """A file of which at most ``LONGEST`` bytes are read by lines."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._left = LONGEST

    def readline(self, size: int) -> bytes:
        """Raises ConnectionError where the limit is reached."""
        line = self._file.readline(min(size, self._left))
        self._left -= len(line)
        if not self._left:
            raise ConnectionError("the request is too long")
        return line

    def close(self) -> None:
        self._file.close()
