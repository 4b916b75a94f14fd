"""Finds the folder of compiled code: ``FRESHVIEWS_CACHE_DIR`` if it is set, else a folder in the user's cache folder.

A folder is used only if no other user can write to it.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import re
import shutil
import stat
import sys
import tempfile
import time
import warnings
from functools import cache
from pathlib import Path
from types import ModuleType

from freshviews.errors import FreshviewsError

KEPT = 90
"""Days for which the code of other versions stays after its last use."""


@cache
def cache_folder() -> Path:
    """The folder for generated modules and compiled code of this version; created if missing.

    Warns if another folder than the requested one is used.

    The cache folder is ``FRESHVIEWS_CACHE_DIR``, else ``freshviews`` in the user's cache folder. Its files are
    executed, so the folder is used only if no other user can put files there. Otherwise a private folder is used
    instead, and a warning says why. A container image may have a filled cache folder that this process cannot change.
    Then the private folder links to its files.

    The subfolders are named by a hash of everything that compiled code depends on: the source of every kernel, Numba,
    Python. A process that makes a subfolder deletes subfolders that no process has opened for ``KEPT`` days. No module
    here imports Numba: the import takes longer than the rest of the start of a process.
    """
    base = os.environ.get("FRESHVIEWS_CACHE_DIR")
    wish = Path(base) if base else Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "freshviews"
    folder, fault = _open_version_folder(wish)
    if folder is not None:
        return folder
    try:
        # One folder per user, so that the next process finds the code of this one.
        instead, _ = _open_version_folder(Path(tempfile.gettempdir()) / f"freshviews-{os.geteuid()}")
        found = instead or Path(tempfile.mkdtemp(prefix="freshviews-"))
    except OSError as error:
        raise FreshviewsError(
            f"compiled code cannot be stored: {fault}; {error.strerror or error}; set FRESHVIEWS_CACHE_DIR to a folder "
            "that this user can write"
        ) from None
    if _link_prepared(wish, found):
        return found
    warnings.warn(
        f"compiled code is kept in {found.parent if instead else found}, not in {wish}: {fault}; "
        "set FRESHVIEWS_CACHE_DIR to name another folder",
        stacklevel=2,
    )
    return found


def _open_version_folder(base: Path) -> tuple[Path | None, str]:
    """The subfolder of this version, made if missing; or None and the fault of the folder."""
    try:
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = base.resolve() / _version()
        new = not folder.exists()
        folder.mkdir(mode=0o700, exist_ok=True)
        for path in (folder, *folder.parents):
            fault = _fault(path, path.stat(), os.geteuid(), folder in (path, path / folder.name))
            if fault:
                return None, fault
        with tempfile.TemporaryFile(dir=folder):
            os.utime(folder)
            if new:
                _delete_unused(folder.parent, time.time() - KEPT * 24 * 60 * 60)
            # It stays open until the process ends, so that no other process deletes the folder.
            fcntl.flock(os.open(folder, os.O_RDONLY), fcntl.LOCK_SH)
            return folder, ""
    except OSError as error:
        return None, f"{error.strerror or error}: {base}"


def _link_prepared(base: Path, own: Path) -> bool:
    """Link an own folder to the files of a folder of this version that root or this user prepared, and that cannot be
    written to. Returns False if there is none, or another user could put files there."""
    owners = {0, os.geteuid()}
    try:
        prepared = base.resolve() / _version()
        for path in (prepared, *prepared.parents):
            found = path.stat()
            if found.st_uid not in owners or _is_open(found, path in (prepared, prepared.parent)):
                return False
        for place, _, names in os.walk(prepared):
            within = own / Path(place).relative_to(prepared)
            within.mkdir(mode=0o700, exist_ok=True)
            for name in names:
                path = Path(place, name)
                if path.lstat().st_uid in owners and path.is_file() and not (within / name).exists():
                    os.symlink(path, within / name)
    except OSError:
        return False
    return True


def _is_open(found: os.stat_result, own: bool) -> bool:
    """Whether other users can put files into a folder, or rename those of others there; ``own`` as of ``_fault``."""
    return bool(found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)) and (own or not found.st_mode & stat.S_ISVTX)


def _delete_unused(base: Path, before: float) -> None:
    """Delete the subfolders of versions that were last used before a time, in seconds since the epoch.

    A subfolder that a process has open, or that cannot be deleted, stays.
    """
    for folder in base.iterdir():
        if not re.fullmatch(r"v[0-9a-f]{16}", folder.name) or folder.lstat().st_mtime >= before:
            continue
        try:
            held = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder)
            finally:
                os.close(held)
        except OSError:
            continue


def _fault(path: Path, found: os.stat_result, user: int, own: bool) -> str:
    """Why another user could put a file into a folder, or replace a folder on its path; empty if none can.

    ``own``: whether the folder holds compiled code. Folders above it may be the system's and, like ``/tmp``, writable
    by all if nobody can rename another user's files there.
    """
    if found.st_uid != user and (own or found.st_uid != 0):
        return f"{path} belongs to another user"
    if _is_open(found, own):
        return f"other users can write to {path}"
    return ""


def _version() -> str:
    digest = hashlib.sha256()
    kernels = Path(__file__).parents[1]
    for path in sorted(kernels.rglob("*.py")):
        digest.update(path.relative_to(kernels).as_posix().encode())
        digest.update(path.read_bytes())
    for package in ("numba", "llvmlite"):
        spec = importlib.util.find_spec(package)
        assert spec is not None and spec.origin is not None
        # Not imported: the file with its version identifies an installed package.
        digest.update(Path(spec.origin).with_name("_version.py").read_bytes())
    digest.update(sys.version.encode())
    return f"v{digest.hexdigest()[:16]}"


COMPILED = ".nbi"
"""End of the name of the file that Numba writes for each function that it has compiled."""

GENERATED = "freshviews_generated_"
"""Prefix of the names of generated modules; the hash of their source follows."""


def load_generated(digest: str) -> ModuleType:
    """The generated module with a hash of its source, loaded from the cache folder if needed."""
    known = sys.modules.get(GENERATED + digest)
    if known is not None:
        return known
    spec = importlib.util.spec_from_file_location(GENERATED + digest, cache_folder() / f"p{digest}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[spec.name] = module
    return module
