"""HDFS as the store of a checkpoint: lost requests and answers, stopped servers, and refusals.

``test_stores`` tests what all stores have in common, ``test_object_store`` a pipeline on HDFS.
"""

from __future__ import annotations

import errno
import threading
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from demo.servers import hdfs as hdfs_servers
from demo.servers.hdfs import Hdfs
from freshviews.spark.state import probe
from freshviews.spark.state.checkpoint import CheckpointError, cannot_write, check_store, collect
from freshviews.spark.state.manifest import Manifests
from freshviews.spark.state.stores.addresses import store_of
from freshviews.spark.state.stores.hdfs import _Web
from freshviews.spark.state.stores.store import Store
from tests.spark.servers import Between, Loss, answering, between, make_certificate

pytestmark = pytest.mark.full

DATA = bytes(range(256)) * 1000
LOSSES = [
    *(Loss(operation, "namenode", "after") for operation in ("RENAME", "CREATE", "MKDIRS", "OPEN", "LISTSTATUS")),
    *(Loss(operation, "namenode", "before") for operation in ("RENAME", "DELETE", "GETFILESTATUS")),
    Loss("DELETE", "namenode", "after"),
    *(Loss("CREATE", "datanode", how) for how in ("before", "half", "short", "after")),
    *(Loss("OPEN", "datanode", how) for how in ("before", "after")),
]


@pytest.fixture
def losing(hdfs: Hdfs) -> Iterator[Between]:
    with between(hdfs.web) as found:
        yield found


def new_store(web: str) -> Store:
    return store_of(f"webhdfs://{web}/{uuid.uuid4().hex}/below")


def names(store: Store, prefix: str) -> list[str]:
    return sorted(found.name for found in store.list(prefix))


@pytest.mark.large(3)
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: f"{loss.operation}-{loss.server}-{loss.how}")
def test_a_request_that_is_repeated_after_a_loss_takes_effect_once(losing: Between, loss: Loss) -> None:
    store = new_store(losing.web)
    losing.losses = [loss]
    store.write_if_absent("manifest/1", DATA)
    with pytest.raises(FileExistsError):
        store.write_if_absent("manifest/1", b"other")
    store.write("tables", b"before")
    store.write("tables", b"after")
    assert (store.read("manifest/1"), store.read("tables")) == (DATA, b"after")
    assert names(store, "m") == ["manifest/1"]
    store.delete(["manifest/1"])
    assert names(store, "manifest/") == []
    assert losing.losses == []


def test_exactly_one_of_many_writers_succeeds(losing: Between) -> None:
    store = new_store(losing.web)
    losing.losses = [Loss("RENAME", "namenode", how) for how in ("after", "before", "after", "after") for _ in range(3)]
    won: list[int] = []

    def write(number: int) -> None:
        try:
            store.write_if_absent("manifest/1", str(number).encode())
            won.append(number)
        except FileExistsError:
            pass

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1 and store.read("manifest/1") == str(won[0]).encode()


def test_an_unfinished_file_is_never_visible_and_is_deleted(losing: Between) -> None:
    store = new_store(losing.web)
    losing.losses = [Loss("CREATE", "datanode", "half")]
    store.write("state/0/one", DATA)
    assert names(store, "state/") == ["state/0/one"] and store.read("state/0/one") == DATA
    assert len(names(store, "aside/")) == 1
    collect(store, Manifests(store))
    assert len(names(store, "aside/")) == 1
    collect(store, Manifests(store), orphan_seconds=-60)
    assert names(store, "aside/") == []


@pytest.mark.kills
@pytest.mark.parametrize("number", [0, 1], ids=["namenode", "datanode"])
def test_an_error_names_the_stopped_hdfs_server(hdfs: Hdfs, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    store = new_store(hdfs.web)
    store.write("manifest/1", DATA)
    said = f"http://{r'127[.]0[.]0[.]1:[0-9]+' if number else hdfs.web} does not answer .*start HDFS, and let"
    limit = "freshviews.spark.state.stores.hdfs.PATIENCE"
    hdfs.kill(number)
    try:
        monkeypatch.setattr(limit, 0.5)
        with pytest.raises(CheckpointError, match=f"{store.address} cannot be written: .*{said}"):
            check_store(store)
        with pytest.raises(OSError, match=said):
            store.read("manifest/1")
        monkeypatch.setattr(limit, 90.0)
        writing = threading.Thread(target=store.write_if_absent, args=("manifest/2", DATA))
        writing.start()
    finally:
        hdfs.start()
    writing.join()
    assert store.read("manifest/2") == store.read("manifest/1") == DATA


def test_a_stopped_datanode_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both datanodes have the same address, by which the client asks the namenode for another one."""
    monkeypatch.setattr("freshviews.spark.state.stores.hdfs.PATIENCE", 60.0)
    with hdfs_servers.hdfs(tmp_path, 2, **{"dfs.replication": "2"}) as servers:
        store = new_store(servers.web)
        for number in range(4):
            store.write(f"changes/{number}", DATA)
        servers.kill(1)
        for number in range(4):
            assert store.read(f"changes/{number}") == DATA
            store.write(f"changes/again{number}", DATA)
            assert store.read(f"changes/again{number}") == DATA


def test_an_error_of_permission_names_the_user(hdfs: Hdfs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADOOP_USER_NAME", "nobody-known")
    store = new_store(hdfs.web)
    with pytest.raises(CheckpointError, match=r"Permission denied: user=nobody-known, .*correct the owner"):
        check_store(store)
    with pytest.raises(PermissionError):
        store.write("x", DATA * 100)


def test_the_error_of_an_exhausted_quota_asks_for_space(hdfs: Hdfs) -> None:
    store = new_store(hdfs.web)
    store.write("x", b"")
    set_quota(hdfs, urlsplit(store.address).path)
    with pytest.raises(OSError, match="Quota") as found:
        store.write("y", DATA * 100)
    assert found.value.errno == errno.EDQUOT and "free some space there" in cannot_write(store, found.value)


def set_quota(hdfs: Hdfs, path: str) -> None:
    """Set a quota that leaves no room for a block."""
    query = f"op=SETQUOTA&storagespacequota=1000000&user.name={store_user()}"
    asked = urllib.request.Request(f"http://{hdfs.web}/webhdfs/v1{path}?{query}", method="PUT")
    urllib.request.urlopen(asked, timeout=30).close()


def store_user() -> str:
    import getpass

    return getpass.getuser()


def test_requests_go_to_the_active_namenode_of_two(hdfs: Hdfs, monkeypatch: pytest.MonkeyPatch) -> None:
    away = {"exception": "StandbyException", "javaClassName": "x", "message": "READ is not supported in state standby"}
    with answering(403, RemoteException=away) as (standby, asked):
        monkeypatch.setenv("FRESHVIEWS_WEBHDFS", f"http://{standby}, {hdfs.web}")
        store = store_of(f"hdfs:///{uuid.uuid4().hex}")
        check_store(store)
        store.write("x", DATA)
        assert store.read("x") == DATA and len(asked) == 1


def test_a_tls_connection_to_hdfs_verifies_the_certificate_of_the_server(
    hdfs: Hdfs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("cryptography", reason="cryptography, which comes with moto, is not installed")
    make_certificate(tmp_path / "certificate")
    with between(hdfs.web, tmp_path / "certificate") as server:
        monkeypatch.setattr("freshviews.spark.state.stores.hdfs.PATIENCE", 0.0)
        with pytest.raises(CheckpointError, match="certificate verify failed"):
            check_store(store_of(f"swebhdfs://{server.web}/{uuid.uuid4().hex}"))
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate"))
        store = store_of(f"swebhdfs://{server.web}/{uuid.uuid4().hex}")
        check_store(store)
        store.write("x", DATA)
        assert store.read("x") == DATA


@pytest.mark.parametrize(
    "status, body, said",
    [
        (401, {}, "asks for a login, such as Kerberos"),
        (404, {"not": "WebHDFS"}, "answers 404 without WebHDFS"),
        (200, {}, "names no datanode"),
        (302, {}, "names no datanode"),
    ],
)
def test_the_error_of_an_unusable_server_names_the_requirement(status: int, body: dict[str, str], said: str) -> None:
    with answering(status, **body) as (web, _), pytest.raises(CheckpointError, match=said):
        check_store(new_store(web))


def test_a_redirect_to_a_login_is_an_error() -> None:
    with answering(302) as (web, _), pytest.raises(OSError, match=f"{web} answers 302 without WebHDFS"):
        new_store(web).delete(["x"])


def test_a_worker_that_reaches_no_namenode_is_refused(hdfs: Hdfs, monkeypatch: pytest.MonkeyPatch) -> None:
    store = new_store(hdfs.web)
    probe.announce(store)
    proof = probe.prove(store, probe.run_of(store))
    probe.check_proofs(store, [proof])
    assert names(store, "probe/") == ["probe/driver"]
    with pytest.raises(probe.NotSeen, match="does not see the checkpoint of the driver"):
        probe.prove(new_store(hdfs.web), probe.run_of(store))
    monkeypatch.setattr("freshviews.spark.state.stores.hdfs.PATIENCE", 0.0)
    with pytest.raises(probe.NotSeen, match=r"cannot use the checkpoint webhdfs://127\.0\.0\.1:9/.*does not answer"):
        probe.prove(new_store("127.0.0.1:9"), "run")


def test_a_server_that_ignores_the_options_of_rename_is_refused(hdfs: Hdfs, monkeypatch: pytest.MonkeyPatch) -> None:
    """As HttpFS does: it renames if the target does not exist, and returns false otherwise."""
    true_ask = _Web.ask

    def ask(self: _Web, *words: str, renameoptions: str = "", **parameters: str) -> bytes:
        return true_ask(self, *words, **parameters)

    store = new_store(hdfs.web)
    store.write("x", b"before")
    monkeypatch.setattr(_Web, "ask", ask)
    for write in (store.write, store.write_if_absent):
        with pytest.raises(OSError, match="does not support the options of a rename; use a namenode"):
            write("x", b"after")
    assert store.read("x") == b"before" and names(store, "aside/") == []
