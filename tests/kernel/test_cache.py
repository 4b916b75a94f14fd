"""The folder of compiled code: no other user can put a file there that this user then executes."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from freshviews.errors import FreshviewsError
from freshviews.kernel.machine import cache

ASK = "from freshviews.kernel.machine.cache import cache_folder; print(cache_folder())"


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    """Find the folder again in each test, and in the tests after these."""
    cache.cache_folder.cache_clear()
    yield
    cache.cache_folder.cache_clear()


def folder_for(base: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FRESHVIEWS_CACHE_DIR", str(base))
    return cache.cache_folder()


def test_a_new_cache_folder_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = os.umask(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = folder_for(tmp_path / "cache", monkeypatch)
    finally:
        os.umask(before)
    assert found.parent == tmp_path / "cache"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (found, found.parent)] == [0o700, 0o700]


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o775])
def test_a_cache_folder_writable_by_others_is_not_used(
    mode: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(mode)
    with pytest.warns(UserWarning, match=f"not in {shared}: other users can write to {shared}"):
        found = folder_for(shared, monkeypatch)
    assert shared not in found.parents
    assert stat.S_IMODE(found.stat().st_mode) == 0o700


def test_a_cache_folder_replaceable_by_others_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    above = tmp_path / "open"
    above.mkdir()
    above.chmod(0o777)
    with pytest.warns(UserWarning, match=f"other users can write to {above}"):
        assert above not in folder_for(above / "cache", monkeypatch).parents


def test_folders_of_other_users_are_not_used_as_cache() -> None:
    """Folders of root above the folder itself are accepted."""
    mine, roots = os.stat("."), os.stat("/")
    assert roots.st_uid == 0
    path = Path("/somewhere")
    other = mine.st_uid + 1
    assert "another user" in cache._fault(path, mine, other, own=True)
    assert cache._fault(path, roots, other, own=False) == ""
    assert "another user" in cache._fault(path, roots, other, own=True)


def test_the_error_names_a_file_in_place_of_the_cache_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.warns(UserWarning, match=f"File exists: {file}"):
        assert folder_for(file, monkeypatch).is_dir()


def test_the_private_cache_folder_is_used_again_by_the_next_process(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    environment = os.environ | {"FRESHVIEWS_CACHE_DIR": str(shared), "TMPDIR": str(tmp_path)}
    done = [
        subprocess.run([sys.executable, "-c", ASK], env=environment, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert done[0].stdout == done[1].stdout
    assert f"compiled code is kept in {tmp_path}/freshviews-{os.geteuid()}, not in {shared}" in done[0].stderr


@pytest.fixture
def prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of this version that this process cannot write to, as in a container image."""
    base = tmp_path / "prepared"
    folder = base / cache._version()
    (folder / "classes").mkdir(parents=True)
    for name in ("p1.py", "find-1.code", "classes/spark.jsa"):
        (folder / name).write_text(name)
    for path in (base, folder, folder / "classes"):
        path.chmod(0o755)
    found = cache._open_version_folder

    def refuse(place: Path) -> tuple[Path | None, str]:
        return (None, f"Read-only file system: {place}") if place == base else found(place)

    monkeypatch.setattr(cache, "_open_version_folder", refuse)
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    return folder


def test_prepared_code_in_a_read_only_folder_is_linked(
    prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = folder_for(prepared.parent, monkeypatch)
    assert found == tmp_path / "tmp" / f"freshviews-{os.geteuid()}" / prepared.name
    for name in ("p1.py", "find-1.code", "classes/spark.jsa"):
        assert (found / name).resolve() == prepared / name and (found / name).read_text() == name
    # What the process writes takes the place of a link, and leaves the prepared file as it is.
    (found / "new").write_text("new")
    os.replace(found / "new", found / "p1.py")
    cache.cache_folder.cache_clear()
    assert cache.cache_folder() == found and (found / "p1.py").read_text() == "new"
    assert (prepared / "p1.py").read_text() == "p1.py"


@pytest.mark.parametrize("open_", ["", ".."])
def test_prepared_code_writable_by_others_is_not_used(
    open_: str, prepared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (prepared / open_).chmod(0o1777)
    with pytest.warns(UserWarning, match=f"not in {prepared.parent}: Read-only file system"):
        found = folder_for(prepared.parent, monkeypatch)
    assert list(found.iterdir()) == []


def test_prepared_code_of_another_version_is_not_used(prepared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared.rename(prepared.with_name("v" + "0" * 16))
    with pytest.warns(UserWarning, match="compiled code is kept in"):
        assert list(folder_for(prepared.parent, monkeypatch).iterdir()) == []


def test_without_a_writable_cache_folder_the_error_names_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> str:
        raise OSError(errno.EROFS, "Read-only file system")

    (tmp_path / "file").touch()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "file"))
    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    with pytest.raises(FreshviewsError, match=r"compiled code cannot be stored: .*; set FRESHVIEWS_CACHE_"):
        folder_for(tmp_path / "file", monkeypatch)


CODE = """
import os, sys, warnings
warnings.simplefilter("error")
if sys.argv[1:]:
    sys.modules["freshviews.kernel.compiler"] = None
    os.geteuid = lambda: 65534
import freshviews
with freshviews.Database() as db:
    db.execute("CREATE TABLE t (a BIGINT)")
    db.insert("t", [(i,) for i in range(2000)])
    assert len(db.table("t")) == 2000
from freshviews.cli.warm import share
from freshviews.kernel.machine.cache import cache_folder
if not sys.argv[1:]:
    share(cache_folder())
print(cache_folder())
"""


@pytest.mark.full
@pytest.mark.large(0)
@pytest.mark.long("compiles the functions of a table")
@pytest.mark.skipif(os.geteuid() != 0, reason="the code must be root's")
def test_another_user_can_run_code_that_root_compiled() -> None:
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        environment = {name: value for name, value in os.environ.items() if name != "FRESHVIEWS_PURE_PYTHON"}
        environment |= {"FRESHVIEWS_CACHE_DIR": f"{place}/code", "FRESHVIEWS_COMPILE": "ahead", "HOME": "/nonexistent"}
        command = [sys.executable, "-c", CODE]
        subprocess.run(command, env=environment, check=True)
        done = subprocess.run([*command, "as nobody"], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        own = Path(done.stdout.strip())
        assert not own.is_relative_to(place) and any(path.is_symlink() for path in own.iterdir())
        shutil.rmtree(own)


def test_old_cached_code_of_other_versions_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").mkdir(mode=0o700)
    names = ("v" + "0" * 16, "v" + "1" * 16, "v" + "2" * 16, "mine")
    old, held, recent, others = (tmp_path / "cache" / name for name in names)
    for folder in (old, held, recent, others):
        folder.mkdir()
        (folder / "p1.py").touch()
    long_ago = time.time() - (cache.KEPT + 1) * 24 * 60 * 60
    for folder in (old, held, others):
        os.utime(folder, (long_ago, long_ago))
    monkeypatch.setattr(cache, "_version", lambda: held.name)
    # A process uses it, and the folder of the next version too.
    assert folder_for(tmp_path / "cache", monkeypatch) == held
    assert old.exists()
    os.utime(held, (long_ago, long_ago))
    cache.cache_folder.cache_clear()
    monkeypatch.setattr(cache, "_version", lambda: "v" + "3" * 16)
    found = cache.cache_folder()
    assert sorted(path.name for path in found.parent.iterdir()) == ["mine", held.name, recent.name, found.name]
    assert list(held.iterdir()) == [held / "p1.py"]


def test_using_a_cache_folder_updates_its_modification_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = folder_for(tmp_path / "cache", monkeypatch)
    os.utime(found, (0, 0))
    cache.cache_folder.cache_clear()
    assert cache.cache_folder() == found
    assert found.stat().st_mtime > time.time() - 60
