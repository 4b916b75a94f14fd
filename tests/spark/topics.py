"""Topics of a Kafka broker, for tests."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from demo.servers.kafka import messages


class Topic:
    """A topic of its own for a test, with its partitions."""

    def __init__(self, address: str, partitions: int = 2) -> None:
        from confluent_kafka.admin import AdminClient, NewTopic

        self.address = address
        self.name = f"t-{uuid.uuid4().hex[:12]}"
        client = AdminClient({"bootstrap.servers": address})
        client.create_topics([NewTopic(self.name, partitions, 1)])[self.name].result(30)

    def send(self, *messages: Mapping[str, Any], transaction: str | None = None) -> None:
        """Send messages, each with ``key``, ``value``, ``headers``, ``partition`` as in confluent-kafka.
        ``transaction``: commit or abort."""
        from confluent_kafka import Producer

        settings: dict[str, Any] = {"bootstrap.servers": self.address}
        if transaction is not None:
            settings["transactional.id"] = uuid.uuid4().hex
        producer = Producer(settings)
        if transaction is not None:
            producer.init_transactions(30)
            producer.begin_transaction()
        for message in messages:
            producer.produce(self.name, **message)
        assert producer.flush(30) == 0
        if transaction == "commit":
            producer.commit_transaction(30)
        elif transaction == "abort":
            producer.abort_transaction(30)

    def messages(self) -> list[Any]:
        """All messages, by partition and offset."""
        return messages(self.address, self.name)


def headers_of(message: Any) -> dict[str, str]:
    """The headers of a message, by name."""
    given: Sequence[tuple[str, bytes]] = message.headers() or ()
    return {name: value.decode() for name, value in given}
