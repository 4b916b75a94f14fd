"""The object stores of Azure and Google on this machine: Azurite, with npm, and fake-gcs-server, with Go."""

from __future__ import annotations

import base64
import fcntl
import os
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError

from demo.servers import Missing, free_port
from freshviews.kernel.machine.cache import cache_folder

AZURITE = "azurite@3.35.0"
FAKE_GCS = "github.com/fsouza/fake-gcs-server@v1.56.1"
ACCOUNT = "freshviewstest"
SECONDS = 600
"""Seconds to fetch and build a server."""


@contextmanager
def azurite(folder: Path, container: str) -> Iterator[dict[str, str]]:
    """A server with an empty container; yields the environment by which clients find it. Raises Missing."""
    from azure.storage.blob import BlobServiceClient

    program = _azurite() / "node_modules" / ".bin" / "azurite-blob"
    port, key = free_port(), base64.b64encode(os.urandom(32)).decode()
    command = [str(program), "--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", str(folder), "--silent"]
    command += ["--skipApiVersionCheck", "--disableTelemetry"]
    text = (
        f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={key};"
        f"BlobEndpoint=http://127.0.0.1:{port}/{ACCOUNT};"
    )
    with _running(command, f"http://127.0.0.1:{port}/", {"AZURITE_ACCOUNTS": f"{ACCOUNT}:{key}"}):
        BlobServiceClient.from_connection_string(text).create_container(container)
        yield {"AZURE_STORAGE_CONNECTION_STRING": text}


@contextmanager
def fake_gcs(folder: Path, bucket: str) -> Iterator[dict[str, str]]:
    """A server with an empty bucket; yields the environment by which clients find it. Raises Missing."""
    port = free_port()
    (folder / bucket).mkdir(parents=True)
    url = f"http://127.0.0.1:{port}"
    command = [str(_fake_gcs() / "fake-gcs-server"), "-scheme", "http", "-host", "127.0.0.1", "-port", str(port)]
    command += ["-data", str(folder), "-filesystem-root", str(folder.parent / f"{folder.name}-kept")]
    command += ["-external-url", url, "-log-level", "error"]
    with _running(command, f"{url}/storage/v1/b", {}):
        yield {"STORAGE_EMULATOR_HOST": url}


@contextmanager
def _running(command: list[str], url: str, environment: dict[str, str]) -> Iterator[None]:
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **environment}
    ) as server:
        try:
            until = time.monotonic() + 60
            while not _answers(url):
                assert time.monotonic() < until and server.poll() is None, f"{command[0]} does not start"
                time.sleep(0.1)
            yield
        finally:
            server.terminate()


def _answers(url: str) -> bool:
    try:
        urllib.request.urlopen(url, timeout=5).close()
    except HTTPError:
        return True
    except OSError:
        return False
    return True


def _azurite() -> Path:
    def install(folder: Path) -> list[str]:
        return ["npm", "install", "--silent", "--no-fund", "--no-audit", "--prefix", str(folder), AZURITE]

    return _installed(AZURITE, "npm", install)


def _fake_gcs() -> Path:
    return _installed(FAKE_GCS, "go", lambda folder: ["env", f"GOBIN={folder}", "go", "install", FAKE_GCS])


def _installed(name: str, needs: str, command: Callable[[Path], list[str]]) -> Path:
    """The folder with a server, which is installed once."""
    folder = cache_folder().parent / "servers" / name.replace("/", "_")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.exists():
            return folder
        if shutil.which(needs) is None:
            raise Missing(f"{name} needs {needs}, which is missing")
        aside = folder.with_name(f"{folder.name}.part")
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir()
        try:
            done = subprocess.run(command(aside), capture_output=True, text=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            raise Missing(f"{name} was not installed within {SECONDS} s") from None
        if done.returncode != 0:
            raise Missing(f"{name} cannot be installed: {done.stderr.strip()[-300:]}")
        aside.rename(folder)
    return folder
