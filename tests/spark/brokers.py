"""A broker of Kafka for tests: one real process, KRaft mode, with the jars of Maven."""

from __future__ import annotations

import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.spark.jars import jars, java
from tests.spark.servers import free_port

KAFKA = "org.apache.kafka:kafka_2.13:4.1.1"

_PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={folder}/data
num.partitions=2
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
"""


@contextmanager
def broker(folder: Path) -> Iterator[str]:
    """A broker with its data in a folder: the address for clients. Skips where its jars cannot be fetched."""
    path = ":".join(str(jar) for jar in jars(KAFKA))
    port = free_port()
    settings = folder / "server.properties"
    settings.write_text(_PROPERTIES.format(port=port, controller=free_port(), folder=folder))
    start = [java(), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", path]
    identity = ["format", "-t", "freshviewsTestBrokerAA", "-c", str(settings)]
    subprocess.run([*start, "kafka.tools.StorageTool", *identity], check=True, capture_output=True)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([*start, "kafka.Kafka", str(settings)], stdout=log, stderr=log)
        try:
            address = f"127.0.0.1:{port}"
            _wait(process, address, folder / "log")
            yield address
        finally:
            process.kill()
            process.wait(20)


def _wait(process: subprocess.Popen[bytes], address: str, log: Path) -> None:
    from confluent_kafka.admin import AdminClient

    until = time.monotonic() + 60
    while time.monotonic() < until and process.poll() is None:
        try:
            AdminClient({"bootstrap.servers": address, "log_level": 0}).list_topics(timeout=2)
            return
        except Exception:
            time.sleep(0.2)
    raise AssertionError(log.read_text(errors="replace"))


class Topic:
    """A topic of its own for a test, with its partitions."""

    def __init__(self, address: str, partitions: int = 2) -> None:
        from confluent_kafka.admin import AdminClient, NewTopic

        self.address = address
        self.name = f"t-{uuid.uuid4().hex[:12]}"
        client = AdminClient({"bootstrap.servers": address})
        client.create_topics([NewTopic(self.name, partitions, 1)])[self.name].result(30)

    def send(self, *messages: Mapping[str, Any], transaction: str | None = None) -> None:
        """Send messages, each with ``key``, ``value``, ``headers``, ``partition`` as confluent-kafka takes them.
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
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer({"bootstrap.servers": self.address, "group.id": uuid.uuid4().hex})
        found: list[Any] = []
        try:
            for number in sorted(consumer.list_topics(self.name, timeout=30).topics[self.name].partitions):
                place = TopicPartition(self.name, number, 0)
                _, end = consumer.get_watermark_offsets(place, timeout=30)
                consumer.assign([place])
                while end > (found[-1].offset() + 1 if found and found[-1].partition() == number else 0):
                    message = consumer.poll(30)
                    assert message is not None and message.error() is None
                    found.append(message)
        finally:
            consumer.close()
        return found


def headers_of(message: Any) -> dict[str, str]:
    """The headers of a message, by name."""
    given: Sequence[tuple[str, bytes]] = message.headers() or ()
    return {name: value.decode() for name, value in given}
