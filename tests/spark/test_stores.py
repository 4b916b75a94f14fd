"""Stores of checkpoints: the same cases for a folder and for real servers of each other kind; and addresses."""

from __future__ import annotations

import random
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from demo.servers.clouds import ACCOUNT
from freshviews.cli.main import app
from freshviews.spark.state.checkpoint import CheckpointError, check_store
from freshviews.spark.state.stores.addresses import store_of
from freshviews.spark.state.stores.cached import Cached
from freshviews.spark.state.stores.folder import Folder
from freshviews.spark.state.stores.hdfs import web_addresses
from freshviews.spark.state.stores.store import AddressError, Objects, Store, read_ranges
from tests.spark.servers import BUCKET


def names(store: Objects, prefix: str) -> list[str]:
    return sorted(found.name for found in store.list(prefix))


def test_objects_are_read_whole_and_in_ranges(store: Store) -> None:
    store.write("a/b/c.bin", bytes(range(256)))
    assert store.read("a/b/c.bin") == bytes(range(256))
    assert bytes(store.read_range("a/b/c.bin", 3, 4)) == bytes([3, 4, 5, 6])
    assert bytes(store.read_range("a/b/c.bin", 255, 1)) == b"\xff"
    store.write("a/b/c.bin", b"other")
    assert store.read("a/b/c.bin") == b"other"
    store.write("top", b"")
    assert store.read("top") == b""


@pytest.mark.parametrize("folder", ["changes", "state/0"])
def test_a_discarded_writer_leaves_nothing(store: Store, folder: str) -> None:
    writer = store.writer(f"{folder}/one")
    for i in range(5):
        writer.write(bytes([i]) * 1000)
    writer.finish()
    writer.wait()
    ranges = [(f"{folder}/one", i * 1000, 3) for i in range(5)]
    assert [bytes(found) for found in read_ranges(store, ranges)] == [bytes([i]) * 3 for i in range(5)]
    other = store.writer(f"{folder}/two")
    other.write(b"x")
    other.discard()
    assert names(store, f"{folder}/") == [f"{folder}/one"]


def test_names_of_objects_may_have_any_characters(store: Store) -> None:
    """Names of tables and views are part of the names of objects."""
    odd = ["a b", "a+b", "a%20b", "a%2Fb", "ü€", "a&b=c", "a#b", "a?b", "a;b", "'a'", '"a"', "[x]", "a*b", "a,b", "a=1"]
    for name in odd:
        store.write(f"state/{name}/x", name.encode())
    assert names(store, "state/") == sorted(f"state/{name}/x" for name in odd)
    assert [store.read(f"state/{name}/x").decode() for name in odd] == odd
    store.delete([f"state/{name}/x" for name in odd])
    assert names(store, "state/") == []


def test_a_large_object_is_stored_completely(store: Store) -> None:
    size = 40_000_000
    data = random.Random(3).randbytes(size)
    store.write("changes/large", data)
    assert store.read("changes/large") == data
    assert bytes(store.read_range("changes/large", size - 5, 5)) == data[-5:]
    assert [(found.name, found.size) for found in store.list("changes/")] == [("changes/large", size)]


def test_reading_a_missing_object_raises_file_not_found(store: Store) -> None:
    with pytest.raises(FileNotFoundError):
        store.read("nothing/here")
    for name in ("nothing/here", "state/0/here"):
        with pytest.raises(FileNotFoundError):
            store.read_range(name, 0, 1)
    assert names(store, "nothing/") == []
    store.delete(["nothing/here"])


def test_listing_a_prefix_gives_names_sizes_and_times(store: Store) -> None:
    for name in ("state/0/image-a/x", "state/0/image-a.begun", "state/0/image-b", "state/10/image-a", "manifest/1"):
        store.write(name, b"12345")
    assert names(store, "state/0/image-a") == ["state/0/image-a.begun", "state/0/image-a/x"]
    assert names(store, "state/0/") == ["state/0/image-a.begun", "state/0/image-a/x", "state/0/image-b"]
    assert len(names(store, "state/")) == 4 and names(store, "stat") == names(store, "state/")
    (found,) = store.list("manifest/")
    assert (found.name, found.size) == ("manifest/1", 5) and abs(found.modified - time.time()) < 60


def test_one_call_deletes_exactly_the_named_objects(store: Store) -> None:
    many = [f"bad/{i:04d}" for i in range(1005 if isinstance(store, Folder) else 30)]
    for name in many:
        store.write(name, b"x")
    store.write("bad2/one", b"x")
    store.delete([*many, "bad/none"])
    assert names(store, "bad") == ["bad2/one"]


def test_only_one_writer_succeeds_with_write_if_absent(store: Store) -> None:
    for turn in range(5):
        won: list[int] = []
        refused: list[int] = []

        def write(number: int, name: str = f"manifest/{turn}", won=won, refused=refused) -> None:  # type: ignore[no-untyped-def]
            try:
                store.write_if_absent(name, str(number).encode())
                won.append(number)
            except FileExistsError:
                refused.append(number)

        threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1 and len(refused) == 7
        assert store.read(f"manifest/{turn}") == str(won[0]).encode()


def test_a_store_without_exclusive_writes_is_refused(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_store(store)
    assert names(store, "probe/") == []
    if store.is_local:
        return
    monkeypatch.setattr(type(store), "write_if_absent", type(store).write)
    with pytest.raises(CheckpointError, match="conditional puts"):
        check_store(store)


def test_objects_are_read_again_only_after_the_cache_is_lost(
    s3: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3.items():
        monkeypatch.setenv(name, value)
    store = store_of(f"s3://{BUCKET}/{uuid.uuid4().hex}")
    assert isinstance(store, Cached)
    store.write("state/0/one", b"abcdef")
    read: list[str] = []
    inner = store._store
    true_read: Callable[[str], bytes] = inner.read
    monkeypatch.setattr(inner, "read", lambda name: (read.append(name), true_read(name))[1])
    for _ in range(3):
        assert bytes(store.read_range("state/0/one", 2, 2)) == b"cd"
    assert read == ["state/0/one"]
    (store.local / "state" / "0" / "one").unlink()
    assert bytes(store.read_range("state/0/one", 0, 6)) == b"abcdef" and len(read) == 2
    monkeypatch.setattr("freshviews.spark.state.stores.cached.UNUSED", -1.0)
    monkeypatch.setattr("freshviews.spark.state.stores.cached._LOOK_EVERY", -1.0)
    store.writer("changes/x")
    assert not (store.local / "state" / "0" / "one").exists()


@pytest.mark.parametrize("address", ["gopher:/x", "dbfs:/x", "wasbs://c@a/x", "S4://x/y"])
def test_an_unknown_scheme_is_refused(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    scheme = address.partition(":")[0]
    message = f"that begin with {scheme}: are not supported; .*file:/path .*s3://bucket.* hdfs://namenode/"
    with pytest.raises(AddressError, match=message):
        store_of(address)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "address",
    [
        *("s3://", "s3://bucket", "s3:/bucket/x", "s3a:///x", "file://host/x"),
        *("hdfs://", "hdfs:/x", "hdfs:///x", "hdfs://host", "hdfs://host//", "webhdfs:///x", "swebhdfs://host:9"),
        *("gs://", "gs://bucket", "gs://bucket//", "gs:bucket/x"),
        *("abfss://c@a.dfs.core.windows.net", "abfss://a.dfs.core.windows.net/x", "abfss://@a/x", "abfs://c@/x"),
    ],
)
def test_an_incomplete_address_is_refused(address: str) -> None:
    accepted = r"(s3://bucket/folder|file:/path|hdfs://namenode/folder|gs://bucket/folder|abfss://container@account\S+)"
    with pytest.raises(AddressError, match=rf"{accepted} is accepted"):
        store_of(address)


@pytest.mark.parametrize(
    "scheme, host, given, wanted",
    [
        ("hdfs", "nn", "", ["http://nn:9870"]),
        ("hdfs", "nn:8020", "", ["http://nn:9870"]),
        ("hdfs", "cluster", "a, b:99,https://c", ["http://a:9870", "http://b:99", "https://c:9871"]),
        ("webhdfs", "nn", "other", ["http://nn:9870"]),
        ("webhdfs", "nn:80", "other", ["http://nn:80"]),
        ("swebhdfs", "nn", "", ["https://nn:9871"]),
        ("hdfs", "[::1]:8020", "", ["http://[::1]:9870"]),
        ("hdfs", "", "", []),
    ],
)
def test_web_addresses_of_namenodes_are_found(scheme: str, host: str, given: str, wanted: list[str]) -> None:
    assert list(web_addresses(scheme, host, {"FRESHVIEWS_WEBHDFS": given})) == wanted


@pytest.mark.parametrize("given", ["ftp://a", "a:b", "http://", "a,"])
def test_a_webhdfs_variable_without_a_web_address_is_refused(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRESHVIEWS_WEBHDFS", given)
    with pytest.raises(AddressError, match=r"http://host:port is accepted in FRESHVIEWS_WEBHDFS"):
        store_of(f"hdfs://nn/{given.replace('/', '')}")


def test_executors_get_the_address_and_the_user_of_hdfs() -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")
    from freshviews.spark.session import executor_settings

    given = {"FRESHVIEWS_WEBHDFS": "a", "HADOOP_USER_NAME": "b"}
    found = executor_settings(given)
    assert {name: found[f"spark.executorEnv.{name}"] for name in given} == given


def test_a_path_and_a_file_address_of_a_folder_mean_the_same_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for address in (tmp_path / "c", "c", f"file:{tmp_path}/c", f"file://{tmp_path}/c", f"file://localhost{tmp_path}/c/"):
        assert store_of(address).address == str(tmp_path / "c")


def test_the_error_names_a_missing_s3_server_or_bucket(
    s3: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(CheckpointError, match=r"s3://no-such-bucket/x cannot be written: .*NoSuchBucket"):
        check_store(store_of("s3://no-such-bucket/x"))
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(CheckpointError, match=r"s3://no-such-server/x cannot be written: .*127\.0\.0\.1:9"):
        check_store(store_of("s3://no-such-server/x"))


@pytest.mark.full
def test_the_error_names_a_missing_google_bucket_or_azure_container(
    gcs: dict[str, str], azure: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**gcs, **azure}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(CheckpointError, match=r"gs://no-such-bucket/x cannot be written: .*no-such-bucket"):
        check_store(store_of("gs://no-such-bucket/x"))
    address = f"abfss://no-such@{ACCOUNT}.dfs.core.windows.net/x"
    with pytest.raises(CheckpointError, match=r"abfss://no-such@.* cannot be written: .*container does not exist"):
        check_store(store_of(address))


@pytest.mark.parametrize(
    "variables, message",
    [
        ({"AZURE_STORAGE_CONNECTION_STRING": "nonsense"}, "is invalid: "),
        (
            {"AZURE_STORAGE_CONNECTION_STRING": "AccountName=other;AccountKey=a2V5;EndpointSuffix=core.windows.net"},
            "names account other, not mine",
        ),
    ],
)
def test_a_connection_string_of_another_account_is_refused(
    variables: dict[str, str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("azure.storage.blob", reason="it is not installed; pip install 'freshviews[azure]'")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(AddressError, match=message):
        store_of("abfss://c@mine.dfs.core.windows.net/connection")


def test_a_google_address_without_credentials_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("google.cloud.storage", reason="it is not installed; pip install 'freshviews[gcs]'")
    monkeypatch.delenv("STORAGE_EMULATOR_HOST", raising=False)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    message = r"checkpoint gs://b/x: no Google .*none\.json.*; .* GOOGLE_APPLICATION_CREDENTIALS, .* gcloud auth"
    with pytest.raises(AddressError, match=message):
        store_of("gs://b/x")
    script = tmp_path / "s.sql"
    script.write_text("CREATE STREAMING TABLE t (a INT) USING json OPTIONS (path 'in');")
    done = CliRunner().invoke(app, ["status", str(script), "--checkpoint", "gs://b/x"])
    assert done.exit_code == 1 and "gcloud auth application-default login" in done.stderr


def test_executors_get_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")
    from freshviews.spark.session import executor_settings

    secrets = ("AWS_SECRET_ACCESS_KEY", "AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_KEY", "AZURE_CLIENT_SECRET")
    assert not any("secret" in str(value) for value in executor_settings(dict.fromkeys(secrets, "secret")).values())
