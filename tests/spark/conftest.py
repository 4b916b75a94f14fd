"""One Spark, one S3 server and one HDFS for all tests here, and stores of checkpoints."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from demo.servers import clouds
from demo.servers import hdfs as hdfs_servers
from demo.servers.kafka import broker
from demo.servers.maven import jars
from freshviews.spark.state.stores.addresses import store_of
from freshviews.spark.state.stores.store import Store
from tests.spark.faults import KILLING, Fault
from tests.spark.jars import kafka_connector, lake_settings, skipping, spark_jars
from tests.spark.servers import BUCKET, s3_server


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One session for the whole run, as starting one takes seconds. Two cores, so that several tasks run at once; the
    other settings are those of every pipeline."""
    pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")
    from freshviews.spark.session import start_session

    # Tests may use their own functions in jobs, so workers must find the tests too.
    root = str(Path(__file__).parents[2])
    source = str(Path(root) / "src")
    os.environ["PYTHONPATH"] = os.pathsep.join([root, source, str(KILLING), os.environ.get("PYTHONPATH", "")])
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["FRESHVIEWS_RINGS"] = "tests.ring.user_rings"
    # Workers, which are started once, look here for the fault that a test plans.
    os.environ["FAULT"] = str(tmp_path_factory.mktemp("fault") / "planned")
    lakes = lake_settings(tmp_path_factory.mktemp("lake"))
    session = start_session("local[2]", {**spark_jars(), **lakes}, quiet=True)
    # For Spark's workers alone: commands that tests run do not find the module.
    del os.environ["FRESHVIEWS_RINGS"]
    # Spark has installed its own handler of Ctrl-C; later tests do not expect it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield session
    session.stop()


@pytest.fixture
def fault(spark: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fault]:
    """Faults in this process, which is the driver, and in the workers of the session."""
    from freshviews.spark import crash_points as steps

    monkeypatch.setattr(steps, "hook", None)
    found = importlib.util.spec_from_file_location("killing", KILLING / "sitecustomize.py")
    assert found is not None and found.loader is not None
    found.loader.exec_module(importlib.util.module_from_spec(found))
    planned = Fault(Path(os.environ["FAULT"]))
    yield planned
    planned.forget()


@pytest.fixture(scope="session")
def s3() -> Iterator[dict[str, str]]:
    """An S3 server for the whole run; returns the environment by which clients find it."""
    pytest.importorskip("boto3", reason="boto3 is not installed; pip install 'freshviews[s3]'")
    pytest.importorskip("moto", reason="the S3 server moto is not installed")
    with s3_server() as found:
        yield found


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Kafka broker for the whole run; Spark has its connector."""
    pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    with skipping():
        jars(kafka_connector())
        with broker(tmp_path_factory.mktemp("kafka")) as found:
            yield found


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hdfs_servers.Hdfs]:
    """A namenode and a datanode for the whole run."""
    with skipping():
        jars(hdfs_servers.HADOOP)
    with hdfs_servers.hdfs(tmp_path_factory.mktemp("hdfs")) as found:
        yield found


@pytest.fixture(scope="session")
def gcs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A server with the protocol of Google's object store; returns the environment by which clients find it."""
    pytest.importorskip("google.cloud.storage", reason="it is not installed; pip install 'freshviews[gcs]'")
    with skipping(), clouds.fake_gcs(tmp_path_factory.mktemp("gcs"), BUCKET) as found:
        yield found


@pytest.fixture(scope="session")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A server with the protocol of Azure's blob storage; returns the environment by which clients find it."""
    pytest.importorskip("azure.storage.blob", reason="it is not installed; pip install 'freshviews[azure]'")
    with skipping(), clouds.azurite(tmp_path_factory.mktemp("azure"), BUCKET) as found:
        yield found


def address_elsewhere(kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of an empty store on a server of the given kind; the environment has what its clients need."""
    name = uuid.uuid4().hex
    if kind == "s3":
        for variable, value in request.getfixturevalue("s3").items():
            monkeypatch.setenv(variable, value)
        return f"s3://{BUCKET}/{name}"
    if kind in ("gcs", "azure"):
        for variable, value in request.getfixturevalue(kind).items():
            monkeypatch.setenv(variable, value)
        host = f"{clouds.ACCOUNT}.dfs.core.windows.net"
        return f"gs://{BUCKET}/{name}" if kind == "gcs" else f"abfss://{BUCKET}@{host}/{name}"
    servers = request.getfixturevalue("hdfs")
    monkeypatch.setenv("FRESHVIEWS_WEBHDFS", servers.web)
    return f"hdfs://{servers.rpc}/{name}"


SERVERS = [pytest.param(kind, marks=pytest.mark.full) for kind in ("hdfs", "gcs", "azure")]


@pytest.fixture(params=["folder", "s3", *SERVERS])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """An empty store of each kind."""
    if request.param == "folder":
        return store_of(tmp_path / "store")
    return store_of(f"{address_elsewhere(request.param, request, monkeypatch)}/below")
