"""Real servers for a demo or a test, on this machine alone: Kafka with the jars of Maven, PostgreSQL from a wheel."""

import socket


class Missing(Exception):
    """A component that cannot be had here, and what would bring it."""


def free_port() -> int:
    """A port of this machine that nothing listens to."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
