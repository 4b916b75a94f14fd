"""Real servers for a demo or a test, on this machine alone: Kafka with the jars of Maven, PostgreSQL from a wheel."""

import random
import socket


class Missing(Exception):
    """A component that is missing here, and the remedy."""


def free_port() -> int:
    """A free port of this machine.

    It is below the range for outgoing connections, so none of these takes it before a server starts.
    """
    while True:
        port = random.SystemRandom().randrange(15_000, 32_000)
        with socket.socket() as found:
            try:
                found.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
