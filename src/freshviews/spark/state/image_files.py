"""Writes and reads images in a store. An image is a folder of files with the state of an engine.

A process maps the files from its own disk. If the store is an object store, the process uploads and downloads the files
in parts.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from freshviews.errors import StoreError
from freshviews.spark.state.stores.store import Store
from freshviews.store.files import TEMPORARY, json_of, open_regular

PART = 16 << 20
"""Bytes of a part."""
UPLOADS = 4
"""Parts under way at a time, few enough that a version can be written meanwhile."""
SIGN_EVERY = 15.0
"""Seconds between two signs of life; ``cell_image.STALLED`` is four times as much."""
_SIGN = ".begun"
_WHOLE = "whole"


class Writing:
    """An image that this process, or a child of it, writes to ``folder``; other processes see that it is begun.

    In a folder store, the files are written in the store itself, and the last step is a rename of the folder. For other
    stores, files are written to the cache and uploaded in parts. The last object, ``whole``, names the files. A process
    that loads the image downloads the parts into its cache.

    The object ``<name>.begun`` shows that an image is being written. Outside a folder store, this object is rewritten
    repeatedly, as a sign of life.
    """

    def __init__(self, store: Store, name: str) -> None:
        self.folder = store.local / name
        self._store = store
        self._name = name
        self._ended = threading.Event()
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        self._sign()
        if not store.is_local:
            threading.Thread(target=self._signs, daemon=True).start()

    def finish(self) -> None:
        """Make the image whole, after all files are in the folder. Raises OSError."""
        if not self._store.is_local:
            _upload(self._store, self._name, self.folder)

    def end(self) -> None:
        """Stop the signs of life."""
        self._ended.set()

    def _sign(self) -> None:
        self._store.write(f"{self._name}{_SIGN}", b"")

    def _signs(self) -> None:
        while not self._ended.wait(SIGN_EVERY):
            with suppress(OSError):  # the next one may get through
                self._sign()
            with suppress(OSError):  # the cache keeps it until it is uploaded
                os.utime(self.folder)


def image_of(name: str) -> str:
    """The image to which a file, by its folder's name, or a sign belongs."""
    return name.removesuffix(TEMPORARY).removesuffix(_SIGN)


def is_whole(store: Store, name: str) -> bool:
    """True if an image is complete."""
    if store.is_local:
        return (store.local / name).exists()
    return bool(store.list(f"{name}/{_WHOLE}"))


def image_folder(store: Store, name: str) -> Path:
    """The folder with the files of an image, which are downloaded if they are not on this machine.

    Raises StoreError if the store does not have all of them.
    """
    folder = store.local / name
    if not store.is_local:
        try:
            os.utime(folder)
        except FileNotFoundError:
            _download(store, name, folder)
    return folder


def _for_parts(sizes: Mapping[str, int], do: Callable[[str, int, int], None]) -> None:
    """Call ``do`` with the file, the number and the first byte of each part of files, several at a time."""
    with ThreadPoolExecutor(UPLOADS) as threads:
        made = [
            threads.submit(do, file, number, start)
            for file, size in sizes.items()
            for number, start in enumerate(range(0, size, PART))
        ]
        for one in made:
            one.result()


def _part(name: str, file: str, number: int) -> str:
    return f"{name}/{file}.{number:05d}"


def _upload(store: Store, name: str, folder: Path) -> None:
    sizes = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}

    def put(file: str, number: int, start: int) -> None:
        with open_regular(folder / file) as opened:
            opened.seek(start)
            store.write(_part(name, file, number), opened.read(PART))

    _for_parts(sizes, put)
    store.write(f"{name}/{_WHOLE}", json.dumps(sizes).encode())


def _download(store: Store, name: str, folder: Path) -> None:
    aside = folder.with_name(f"{folder.name}{TEMPORARY}-{uuid.uuid4().hex}")
    aside.mkdir(parents=True)

    def get(file: str, number: int, start: int) -> None:
        with (aside / file).open("r+b") as opened:
            opened.seek(start)
            opened.write(store.read(_part(name, file, number)))

    try:
        sizes = json_of(store.read(f"{name}/{_WHOLE}"))
        for file, size in sizes.items():
            with (aside / file).open("wb") as opened:
                opened.truncate(size)
        _for_parts(sizes, get)
    except OSError as error:
        shutil.rmtree(aside, ignore_errors=True)
        raise StoreError(f"the image {name} of {store.address} cannot be read: {error}") from error
    try:
        os.rename(aside, folder)
    except OSError:
        # Another process of this executor has written it.
        shutil.rmtree(aside, ignore_errors=True)
