"""The archive of Spark's classes: created once, used by every session, and never incomplete."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")

from freshviews.spark.java import JavaError, class_archive

pytestmark = pytest.mark.spark

SESSION = """
from pathlib import Path
from freshviews.spark.java import java_process
from freshviews.spark.session import start_session

session = start_session("local[1]", quiet=True)
assert session.range(3).count() == 3
print("/classes/" in Path(f"/proc/{java_process().pid}/maps").read_text())
session.stop()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(class_archive, "_folder", lambda: tmp_path)
    return tmp_path


def named(folder: Path, content: bytes, size: int) -> Path:
    path = folder / f"{class_archive._key()}.{size}.jsa"
    path.write_bytes(content)
    return path


def test_only_a_complete_class_archive_is_used(folder: Path) -> None:
    assert class_archive.option() == ""
    named(folder, b"half", 8)
    (folder / "0123456789abcdef.4.jsa").write_bytes(b"of another Java")
    assert class_archive.option() == ""
    path = named(folder, b"whole", 5)
    assert class_archive.option().startswith(f"-XX:SharedArchiveFile={path} ")


def archived(folder: Path, monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    """As ``making``, with a program that writes at its end instead of Java."""
    with class_archive.making() as options:
        part = options.split()[0].partition("=")[2]
        write = f"import sys; sys.stdin.read(); open({part!r}, 'wb').write({content!r})"
        program = subprocess.Popen([sys.executable, "-c", write], stdin=subprocess.PIPE)
        monkeypatch.setattr(class_archive, "java_process", lambda: program)


def test_a_new_class_archive_replaces_the_old_class_archive(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if it has the same size, and so the same name."""
    left = folder / "0123456789abcdef.1.part"
    left.write_bytes(b"half")
    os.utime(left, (0, 0))
    for content in (b"one", b"two", b"other"):
        archived(folder, monkeypatch, content)
        assert [path.read_bytes() for path in folder.iterdir()] == [content]
        assert class_archive.option() != ""


def test_an_error_ends_java_before_java_writes_an_archive(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KeyboardInterrupt), class_archive.making() as options:
        part = options.split()[0].partition("=")[2]
        write = f"import sys; sys.stdin.read(); open({part!r}, 'wb').write(b'late')"
        program = subprocess.Popen([sys.executable, "-c", write], stdin=subprocess.PIPE)
        monkeypatch.setattr(class_archive, "java_process", lambda: program)
        raise KeyboardInterrupt
    assert program.returncode == -signal.SIGKILL and list(folder.iterdir()) == []


def test_the_class_archive_is_in_the_folder_of_compiled_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_archive, "cache_folder", lambda: tmp_path / "own")
    assert class_archive._folder() == tmp_path / "own" / "classes"


def test_no_class_archive_is_left_if_the_java_process_is_not_found(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(class_archive, "java_process", lambda: None)
    with pytest.raises(JavaError, match="only the process that started Spark"), class_archive.making() as options:
        part = Path(options.split()[0].partition("=")[2])
        part.write_bytes(b"half")
    assert list(folder.iterdir()) == []


@pytest.mark.full
@pytest.mark.large(0)
@pytest.mark.long("kernels are compiled, and a session starts twice")
@pytest.mark.parametrize("odd", ["with space", "plain"])
def test_a_spark_session_maps_the_class_archive_that_the_warm_command_wrote(odd: str, tmp_path: Path) -> None:
    cache = tmp_path / odd
    given = {**os.environ, "FRESHVIEWS_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", SESSION]
    cold = subprocess.run(command, env=given, capture_output=True, text=True, timeout=300)
    assert cold.stdout == "False\n", cold.stderr
    done = subprocess.run(
        [sys.executable, "-m", "freshviews.cli", "warm"], env=given, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done
    (version,) = cache.glob("v*")
    compiled, archived = done.stdout.splitlines()
    assert compiled.endswith(f" MB, are in {version}") and archived == "the classes of Spark are there as well"
    assert [path.suffix for path in (version / "classes").iterdir()] == [".jsa"]
    warm = subprocess.run(command, env=given, capture_output=True, text=True, timeout=300)
    assert warm.stdout == "True\n", warm.stderr
