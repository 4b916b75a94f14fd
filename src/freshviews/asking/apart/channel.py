"""Sends messages between two processes over a socket.

Arrow tables are sent as a file in memory. The receiver maps the file, so large tables are not copied.
"""

from __future__ import annotations

import mmap
import os
import socket
import struct
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from freshviews.asking.relations import Asked, Names, UnknownRelation
from freshviews.records import dataclass

_HEAD = struct.Struct(">Q?")
_PIECE = 1 << 20
_MAPPED = 1 << 20
"""Fewest bytes of a file that is mapped, so that one descriptor stays open; a smaller one is copied."""


Relations = Asked | UnknownRelation
_MOST_TOLD = 256


class Told(dict[Names, Asked]):
    """The relations that the parent gave last, by their names; both processes hold them."""

    def tell(self, names: Names, relations: Relations) -> None:
        """Hold relations, or that there are none."""
        self.pop(names, None)
        if len(self) >= _MOST_TOLD:
            self.clear()
        if not isinstance(relations, UnknownRelation):
            self[names] = relations


@dataclass(frozen=True)
class Given:
    """The columns that a SELECT reads. ``numbers``: those of its columns, by the name of the relation in the SELECT.
    ``sent``: those of each table of the file. ``forgotten``: those that no later SELECT needs."""

    numbers: Mapping[str, Sequence[int]]
    sent: Sequence[Sequence[int]]
    forgotten: Sequence[int]


class Lost(Exception):
    """The other process has ended."""


class Late(Exception):
    """The other process did not send or take a message in time."""


class Channel:
    """One end of a connection. A message is bytes, perhaps with a file. Methods raise Lost, and Late after the moment
    ``until``."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    def send(self, content: bytes, file: int | None = None, until: float | None = None) -> None:
        """Send a message; closes its file."""
        head = _HEAD.pack(len(content), file is not None)
        try:
            with self._within(until):
                socket.send_fds(self._end, [head], () if file is None else (file,))
                self._end.sendall(content)
        finally:
            if file is not None:
                os.close(file)

    def receive(self, until: float | None = None) -> tuple[bytes, int | None]:
        """The next message and its file, which the caller closes."""
        with self._within(until):
            head, files, _, _ = socket.recv_fds(self._end, _HEAD.size, 1)
        try:
            length, has_file = _HEAD.unpack(head + self._rest(_HEAD.size - len(head), until))
            if has_file is not bool(files):
                raise Lost
            return self._rest(length, until), files[0] if files else None
        except BaseException:
            for file in files:
                os.close(file)
            raise

    def _rest(self, length: int, until: float | None) -> bytes:
        found = bytearray()
        while len(found) < length:
            with self._within(until):
                piece = self._end.recv(min(length - len(found), _PIECE))
            if not piece:
                raise Lost
            found += piece
        return bytes(found)

    @contextmanager
    def _within(self, until: float | None) -> Iterator[None]:
        left = None if until is None else until - time.monotonic()
        try:
            if left is not None and left <= 0:
                raise TimeoutError
            self._end.settimeout(left)
            yield
        except TimeoutError:
            raise Late from None
        except OSError:
            raise Lost from None


def file_of(write: Callable[[Any], None]) -> int:
    """A file without a name, in memory where the system has such, with what ``write`` writes to it."""
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("freshviews")
    else:
        with tempfile.TemporaryFile() as made:
            file = os.dup(made.fileno())
    try:
        with open(file, "wb", closefd=False) as opened:
            write(opened)
    except BaseException:
        os.close(file)
        raise
    return file


def file_of_tables(tables: Iterable[pa.Table]) -> int:
    """A file with some tables."""

    def write(file: Any) -> None:
        for table in tables:
            with pa.ipc.new_stream(file, table.schema) as stream:
                stream.write_table(table)

    return file_of(write)


def tables_in(file: int, count: int) -> list[pa.Table]:
    """The tables of a file, which is closed. The rows of a large one stay in its memory."""
    try:
        size = os.fstat(file).st_size
        content = os.pread(file, size, 0) if size < _MAPPED else mmap.mmap(file, 0, access=mmap.ACCESS_READ)
    finally:
        os.close(file)
    source = pa.BufferReader(pa.py_buffer(content))
    options = pa.ipc.IpcReadOptions(ensure_alignment=pa.ipc.Alignment.DataTypeSpecific)
    return [pa.ipc.open_stream(source, options=options).read_all() for _ in range(count)]
