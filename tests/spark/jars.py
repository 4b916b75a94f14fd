"""The Maven packages that tests load into Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from demo.servers import Missing
from demo.servers.maven import jars, jars_for_spark
from demo.shop.packages import DELTA, KAFKA_CONNECTOR, POSTGRES
from freshviews.spark.connectors.declarations import connector_of

AVRO = "org.apache.spark:spark-avro_2.13:4.1.1"
LAKES = {
    "4.1": [DELTA, "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"],
    "4.2": ["io.delta:delta-spark_4.2_2.13:4.4.0"],
}
"""By the release of Spark. None runs with 4.3; docs/connectors/delta.md and iceberg.md give the reason."""


@contextmanager
def skipping() -> Iterator[None]:
    """A block that skips the test if a component cannot be fetched."""
    try:
        yield
    except Missing as error:
        pytest.skip(str(error))


def spark_jars() -> dict[str, str]:
    """The setting ``spark.jars`` with the connectors that can be fetched; empty if there are none."""
    wanted = (kafka_connector(), AVRO, POSTGRES, *lakes())
    return jars_for_spark([package for package in wanted if has(package)])


def kafka_connector() -> str:
    """The newest Kafka connector that runs with this Spark."""
    return KAFKA_CONNECTOR if _release() == "4.1" else "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"


def lakes() -> list[str]:
    """The lakehouse packages that run with this Spark."""
    return LAKES.get(_release(), [])


def _release() -> str:
    import pyspark

    return pyspark.__version__.rpartition(".")[0]


def lake(name: str) -> str:
    """The package of delta or iceberg. Skips the test if none runs with this Spark."""
    import pyspark

    found = [package for package in lakes() if f":{name}-" in package]
    if not found:
        pytest.skip(f"no package of {name} runs with pyspark {pyspark.__version__}; it runs with 4.1, the default")
    with skipping():
        jars(found[0])
    return found[0]


def lake_settings(folder: Path) -> dict[str, str]:
    """Settings for the lakehouses of ``lakes``: those of Delta, and a catalog ``lake`` of Iceberg in a folder."""
    names = "".join(lakes())
    found = dict(connector_of("delta").settings) if "delta" in names else {}
    if "iceberg" in names:
        catalog = "spark.sql.catalog.lake"
        found |= {catalog: "org.apache.iceberg.spark.SparkCatalog", f"{catalog}.type": "hadoop"}
        found[f"{catalog}.warehouse"] = str(folder)
    return found


def has(package: str) -> bool:
    """True if a package can be fetched."""
    try:
        return bool(jars(package))
    except Missing:
        return False
