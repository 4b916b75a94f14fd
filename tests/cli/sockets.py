"""Requests as bytes, for what no client of HTTP would send."""

from __future__ import annotations

import socket
from contextlib import suppress


def answer_to(port: int, request: bytes) -> bytes:
    """All bytes of the answer of a server on this machine; what came until then, or none, if the connection was cut."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        found = b""
        with suppress(ConnectionError):
            client.sendall(request)
            while more := client.recv(65536):
                found += more
        return found
