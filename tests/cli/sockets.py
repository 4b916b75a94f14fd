"""Sends requests as bytes, also such as no HTTP client sends."""

from __future__ import annotations

import socket
from contextlib import suppress


def answer_to(port: int, request: bytes) -> bytes:
    """All bytes that a server on this machine answers until it closes the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        found = b""
        with suppress(ConnectionError):
            client.sendall(request)
            while more := client.recv(65536):
                found += more
        return found
