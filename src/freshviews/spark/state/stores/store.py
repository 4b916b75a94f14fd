"""Defines the interface of a store. A store holds a checkpoint as a map from names to bytes.

Names are relative paths, with ``/`` between their parts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Protocol, TypeAlias

import pyarrow as pa

from freshviews.errors import StoreError
from freshviews.records import dataclass

Data: TypeAlias = bytes | pa.Buffer
REQUESTS = 16
"""Maximum number of parallel requests of a process to a store that answers each in milliseconds."""


class AddressError(StoreError):
    """No store serves an address; the message names those that are served."""


@dataclass(frozen=True)
class Found:
    """An object of a store. ``modified``: seconds since 1970, by the clock of the store."""

    name: str
    size: int
    modified: float


class Writer(Protocol):
    """A new object, which readers cannot see before ``wait`` has returned."""

    def write(self, data: Data) -> None:
        """Append bytes."""

    def finish(self) -> None:
        """End of the data: begin to make the object durable."""

    def wait(self) -> None:
        """Wait until the object is durable. Raises OSError."""

    def discard(self) -> None:
        """Discard it."""


class Objects(Protocol):
    """Objects by name. All methods raise OSError if they cannot be read or written."""

    @property
    def address(self) -> str:
        """The address as a user writes it."""

    def read(self, name: str) -> bytes:
        """The bytes of an object. Raises FileNotFoundError."""

    def read_range(self, name: str, start: int, length: int) -> Data:
        """Some bytes of an object, at least one but in a ``Store``. Raises FileNotFoundError."""

    def write(self, name: str, data: bytes) -> None:
        """Write an object whole or not at all, also over another one; it is durable when this returns."""

    def write_if_absent(self, name: str, data: bytes) -> None:
        """As ``write``, but raise FileExistsError if the object exists; of two that write at once, one succeeds."""

    def list(self, prefix: str) -> list[Found]:
        """The objects whose names begin with a prefix that ends with ``/``, or whose last part begins with the rest."""

    def delete(self, names: Collection[str]) -> None:
        """Delete objects; missing ones are ignored."""


class Store(Objects, Protocol):
    """Objects by name, and a folder on this machine's disk.

    Names are relative, with ``/`` between their parts. Large objects are immutable and have fresh names, so they can be
    cached without a check. Objects that no manifest names are ignored. ``write_if_absent`` lets only one of two runs
    commit a version. A store without it cannot hold a checkpoint.
    """

    def writer(self, name: str) -> Writer:
        """Write a new object piece by piece."""

    @property
    def local(self) -> Path:
        """A folder that has objects as files under their names: all of them, or a cache."""

    @property
    def is_local(self) -> bool:
        """True if ``local`` is the store itself, so that files put there count."""


class Gathered:
    """A new object whose bytes are gathered in memory, and put in one request, in parallel with others."""

    def __init__(self, put: Callable[[bytes], None]) -> None:
        self._put = put
        self._data = bytearray()
        self._done: Future[None] | None = None

    def write(self, data: Data) -> None:
        self._data += data

    def finish(self) -> None:
        self._done = requests().submit(self._put, bytes(self._data))
        self._data.clear()

    def wait(self) -> None:
        assert self._done is not None
        self._done.result()

    def discard(self) -> None:
        self._data.clear()


@contextmanager
def repeated(read: Callable[[], bytes], data: bytes) -> Iterator[None]:
    """Ignore a FileExistsError if the object has this data: clients repeat a request whose answer was lost."""
    try:
        yield
    except FileExistsError:
        if read() != data:
            raise


@cache
def requests() -> ThreadPoolExecutor:
    """Threads for requests to a store, of this process."""
    return ThreadPoolExecutor(REQUESTS, thread_name_prefix="freshviews-store")


def read_ranges(store: Store, wanted: Iterable[tuple[str, int, int]]) -> list[Data]:
    """Ranges of objects, each a name, a start and a length; read in parallel if a request takes long."""
    ranges = list(wanted)
    if store.is_local or len(ranges) < 2:
        return [store.read_range(*one) for one in ranges]
    return list(requests().map(lambda one: store.read_range(*one), ranges))
