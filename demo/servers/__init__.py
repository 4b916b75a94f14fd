"""Real servers for a demo or a test, on this machine alone: Kafka with the jars of Maven, PostgreSQL from a wheel."""

import random
import socket


class Missing(Exception):
    """A component that cannot be had here, and what would bring it."""


def free_port() -> int:
    """A port of this machine that nothing listens to.

    It is below those that systems give to outgoing connections, so none of these has it before a server starts.
    """
    while True:
        port = random.SystemRandom().randrange(15_000, 32_000)
        with socket.socket() as found:
            try:
                found.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
