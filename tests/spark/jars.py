"""The packages of Maven that tests load into Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from demo.servers import Missing
from demo.servers.maven import jars, jars_for_spark
from demo.shop.packages import KAFKA_CONNECTOR, POSTGRES

AVRO = "org.apache.spark:spark-avro_2.13:4.1.1"


@contextmanager
def skipping() -> Iterator[None]:
    """A block that skips the test where a component cannot be had."""
    try:
        yield
    except Missing as error:
        pytest.skip(str(error))


def spark_jars() -> dict[str, str]:
    """The setting ``spark.jars`` with the connectors that can be fetched; empty if there are none."""
    return jars_for_spark([package for package in (KAFKA_CONNECTOR, AVRO, POSTGRES) if has(package)])


def has(package: str) -> bool:
    """True if a package can be fetched."""
    try:
        return bool(jars(package))
    except Missing:
        return False
