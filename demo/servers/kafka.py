"""A broker of Kafka: one real process, KRaft mode, with the jars of Maven."""

from __future__ import annotations

import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from demo.servers import free_port
from demo.servers.maven import jars, java

KAFKA = "org.apache.kafka:kafka_2.13:4.1.1"
_LOG = "org.slf4j:slf4j-simple:1.7.36"
"""Without it a broker that cannot start prints no reason."""

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
    """A broker with its data in a folder; yields the address for clients. Raises Missing if its jars cannot be
    fetched."""
    path = ":".join(str(jar) for jar in [*jars(KAFKA), *jars(_LOG)])
    port = free_port()
    settings = folder / "server.properties"
    settings.write_text(_PROPERTIES.format(port=port, controller=free_port(), folder=folder))
    level = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
    start = [java(), "-Xmx256m", "-XX:TieredStopAtLevel=1", level, "-cp", path]
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

    until = time.monotonic() + 180
    while time.monotonic() < until and process.poll() is None:
        try:
            AdminClient({"bootstrap.servers": address, "log_level": 0}).list_topics(timeout=2)
            return
        except Exception:
            time.sleep(0.2)
    raise AssertionError(log.read_text(errors="replace"))


def messages(address: str, topic: str) -> list[Any]:
    """All messages of a topic, as confluent-kafka returns them, by partition and offset."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": address, "group.id": uuid.uuid4().hex})
    found: list[Any] = []
    try:
        for number in sorted(consumer.list_topics(topic, timeout=30).topics[topic].partitions):
            place = TopicPartition(topic, number, 0)
            _, end = consumer.get_watermark_offsets(place, timeout=30)
            consumer.assign([place])
            while end > (found[-1].offset() + 1 if found and found[-1].partition() == number else 0):
                message = consumer.poll(30)
                assert message is not None and message.error() is None
                found.append(message)
    finally:
        consumer.close()
    return found
