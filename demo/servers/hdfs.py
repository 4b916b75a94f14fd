"""HDFS: a namenode and datanodes, each one real process on this machine, with the jars of Maven."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from demo.servers import free_port
from demo.servers.maven import jars, java

HADOOP = "org.apache.hadoop:hadoop-client-minicluster:3.5.0"
"""The package with the servers and all that they need, in few jars."""
_LOG = "org.slf4j:slf4j-simple:1.7.36"
_PAGES = ("webapps/hdfs/", "webapps/datanode/", "webapps/static/")
_NAMENODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
_DATANODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"


@dataclass(frozen=True)
class _Process:
    """A server that can be started again. ``main``: its class."""

    folder: Path
    main: str

    def start(self) -> subprocess.Popen[bytes]:
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(_command(self.folder, self.main), stdout=log, stderr=log)


class Hdfs:
    """A namenode and datanodes, which run after ``start``.

    ``web``: the address of the namenode's web interface, ``rpc`` that of its port for Java.
    """

    def __init__(self, folder: Path, datanodes: int = 1, **settings: str) -> None:
        self.rpc = f"127.0.0.1:{free_port()}"
        self.web = f"127.0.0.1:{free_port()}"
        common = {
            "dfs.replication": "1",
            "dfs.namenode.http-address": self.web,
            # The writer's first pause before it asks whether its file counts as closed; the default is 400.
            "dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "20",
            "dfs.heartbeat.interval": "1",
            **settings,
        }
        self._servers = [_made(folder / "namenode", _NAMENODE, self.rpc, common)]
        for number in range(datanodes):
            self._servers.append(_made(folder / f"datanode{number}", _DATANODE, self.rpc, {**common, **_ports()}))
        self._running: list[subprocess.Popen[bytes] | None] = [None] * len(self._servers)
        format_it = [*_command(self._servers[0].folder, _NAMENODE), "-format", "-force"]
        subprocess.run(format_it, check=True, capture_output=True)

    def start(self) -> None:
        """Start the servers that do not run, and wait until they accept files."""
        for number, server in enumerate(self._servers):
            if self._running[number] is None:
                self._running[number] = server.start()
        until = time.monotonic() + 180
        while not self._is_ready():
            ended = any(one is not None and one.poll() is not None for one in self._running)
            if ended or time.monotonic() > until:
                raise AssertionError("".join((one.folder / "log").read_text(errors="replace") for one in self._servers))
            time.sleep(0.2)

    def kill(self, number: int) -> None:
        """Kill the namenode (0) or a datanode."""
        process = self._running[number]
        if process is not None:
            process.kill()
            process.wait(20)
            self._running[number] = None

    def stop(self) -> None:
        for number in range(len(self._servers)):
            self.kill(number)

    def _is_ready(self) -> bool:
        query = "jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState"
        try:
            with urllib.request.urlopen(f"http://{self.web}/{query}", timeout=5) as answer:
                (found,) = json.load(answer)["beans"]
        except (OSError, ValueError):
            return False
        return bool(found["FSState"] == "Operational" and found["NumLiveDataNodes"] == len(self._servers) - 1)


@contextmanager
def hdfs(folder: Path, datanodes: int = 1, **settings: str) -> Iterator[Hdfs]:
    """A running HDFS with its data in a folder. Raises Missing if its jars cannot be fetched."""
    found = Hdfs(folder, datanodes, **settings)
    try:
        found.start()
        yield found
    finally:
        found.stop()


def _ports() -> dict[str, str]:
    places = {f"dfs.datanode.{name}": f"127.0.0.1:{free_port()}" for name in ("address", "http.address", "ipc.address")}
    return {"dfs.datanode.hostname": "127.0.0.1", **places}


def _made(folder: Path, main: str, rpc: str, settings: dict[str, str]) -> _Process:
    """A server with its configuration and its data in a folder."""
    folder.mkdir(parents=True)
    _unpack_pages(folder)
    _configure(folder / "core-site.xml", {"fs.defaultFS": f"hdfs://{rpc}", "hadoop.tmp.dir": str(folder / "data")})
    _configure(folder / "hdfs-site.xml", settings)
    return _Process(folder, main)


def _unpack_pages(folder: Path) -> None:
    """The pages of the web interface; otherwise a server searches all of a large jar for them."""
    (jar,) = (one for one in jars(HADOOP) if "minicluster" in one.name)
    with zipfile.ZipFile(jar) as opened:
        names = [name for name in opened.namelist() if name.startswith(_PAGES)]
        opened.extractall(folder, names)


def _configure(path: Path, settings: dict[str, str]) -> None:
    lines = [
        f"<property><name>{escape(name)}</name><value>{escape(value)}</value></property>"
        for name, value in settings.items()
    ]
    path.write_text("\n".join(["<configuration>", *lines, "</configuration>"]))


def _command(folder: Path, main: str) -> list[str]:
    path = ":".join(map(str, [folder, *jars(HADOOP), *jars(_LOG)]))
    small = ["-Xmx192m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", f"-Djava.io.tmpdir={folder}"]
    return [java(), *small, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", path, main]
