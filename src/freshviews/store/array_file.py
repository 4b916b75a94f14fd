"""Writes and reads files of arrays. A written file never changes; its large arrays are mapped into memory.

A file has three parts; the numbers are sizes in bytes::

    preamble    magic 8 | format 4 | crc32 of the footer 4 | offset of the footer 8 |
                length of the footer 8 | crc32 of the preamble up to here 4
    arrays      words of 64 bits, little-endian, one array after the other
    footer      JSON: "about" has a description by the writer; "arrays" has, for each array, its offset, its number
                of words, the number of words to allocate when it is read, and its crc32
"""

from __future__ import annotations

import ctypes
import json
import os
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from freshviews.errors import StoreError
from freshviews.kernel.image import Array, Mapping
from freshviews.kernel.memory.mapping import map_file, reserve, unmap
from freshviews.records import dataclass
from freshviews.store.files import TEMPORARY, json_of, open_regular, sync_directory

MAGIC = b"\xf5fvarr\r\n"
FORMAT = 2
"""Must be increased when the layout of this file, or of the arrays of tables and indexes, changes."""
READ = (1, 2)
"""Formats that can be read. In format 1, tables had no deferred inserts."""

ALIGN = 1 << 16
"""A multiple of every page size in use."""
MAPPED = 1 << 18
"""Least bytes of an array that is mapped."""

_PREAMBLE = struct.Struct("<8sIIQQ")
_CHECK = struct.Struct("<I")
_PREAMBLE_BYTES = _PREAMBLE.size + _CHECK.size
_SMALL_ALIGN = 64
_CHUNK = 1 << 20
_SYNCED = 64 << 20
"""Bytes between syncs, so that syncing a small file need not wait for all of a large one."""


@dataclass(frozen=True)
class _ArrayPlace:
    """Where an array is in the file; the offset in bytes."""

    offset: int
    words: int
    room: int
    crc: int

    @property
    def mapped(self) -> bool:
        return 8 * self.words >= MAPPED


def write_arrays(path: Path, about: dict[str, Any], arrays: Iterable[Array], sync: bool) -> None:
    """Write a file of arrays, completely or not at all; ``about`` is any JSON value.

    With ``sync``, the file is on disk when this returns. Raises StoreError.
    """
    temporary = path.with_name(path.name + TEMPORARY)
    try:
        with temporary.open("wb") as file:
            file.write(bytes(_PREAMBLE_BYTES))
            places = [_write(file, array, sync) for array in arrays]
            footer_fields = {"about": about, "arrays": [[p.offset, p.words, p.room, p.crc] for p in places]}
            footer = json.dumps(footer_fields, separators=(",", ":")).encode()
            offset = file.tell()
            file.write(footer)
            preamble = _PREAMBLE.pack(MAGIC, FORMAT, zlib.crc32(footer), offset, len(footer))
            file.seek(0)
            file.write(preamble + _CHECK.pack(zlib.crc32(preamble)))
            if sync:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
        if sync:
            sync_directory(path.parent)
    except (OSError, MemoryError) as error:
        temporary.unlink(missing_ok=True)
        raise StoreError(f"{path} could not be written: {error}") from error
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _write(file: BinaryIO, array: Array, sync: bool) -> _ArrayPlace:
    mapped = 8 * array.words >= MAPPED
    offset = _pad(file, ALIGN if mapped else _SMALL_ALIGN)
    crc = unsynced = 0
    for piece in array.pieces():
        # Chunks stay in the processor's cache from the checksum to the write.
        for start in range(0, len(piece), _CHUNK):
            chunk = piece[start : start + _CHUNK]
            crc = zlib.crc32(chunk, crc)
            file.write(chunk)
            unsynced += len(chunk)
            if sync and unsynced >= _SYNCED:
                file.flush()
                os.fsync(file.fileno())
                unsynced = 0
    assert file.tell() == offset + 8 * array.words
    if mapped:
        _pad(file, ALIGN)
    return _ArrayPlace(offset, array.words, array.room, crc)


def _pad(file: BinaryIO, align: int) -> int:
    """Write zeros up to a multiple of ``align``; returns the position."""
    position = file.tell()
    file.write(bytes(-position % align))
    return position + -position % align


class ArrayFile:
    """An open file of arrays; a context. Raises StoreError if unreadable, damaged, or of another format.

    A large array is mapped, so its pages are read when they are used. It begins at a multiple of ``ALIGN``, and shares
    no page with other data. Small arrays are copied into memory. A file with its final name is complete. A mapped file
    must not change, but may be deleted.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = open_regular(path)
        except OSError as error:
            raise StoreError(f"{path} could not be opened: {error.strerror}") from error
        try:
            footer_fields = self._footer()
        except BaseException:
            self._file.close()
            raise
        self.about: dict[str, Any] = footer_fields["about"]
        """The description by the writer."""
        self._places = [_ArrayPlace(*place) for place in footer_fields["arrays"]]

    def _footer(self) -> dict[str, Any]:
        head = self._file.read(_PREAMBLE_BYTES)
        if head[: len(MAGIC)] != MAGIC:
            raise StoreError(f"{self.path} is not an array file of freshviews")
        if len(head) < _PREAMBLE_BYTES or _CHECK.unpack(head[_PREAMBLE.size :])[0] != zlib.crc32(
            head[: _PREAMBLE.size]
        ):
            raise self.damaged(0)
        _, written_as, crc, offset, length = _PREAMBLE.unpack(head[: _PREAMBLE.size])
        if written_as not in READ:
            raise StoreError(
                f"{self.path} is of format {written_as}; this release of freshviews reads formats {READ[0]} to "
                f"{READ[-1]}: open it with the release that wrote it"
            )
        if os.fstat(self._file.fileno()).st_size != offset + length:
            raise self.damaged(offset)
        self._file.seek(offset)
        footer = self._file.read(length)
        if zlib.crc32(footer) != crc:
            raise self.damaged(offset)
        try:
            footer_fields: dict[str, Any] = json_of(footer)
            _ = footer_fields["about"], [_ArrayPlace(*place) for place in footer_fields["arrays"]]
        except (ValueError, KeyError, TypeError):
            raise self.damaged(offset) from None
        return footer_fields

    def damaged(self, offset: int) -> StoreError:
        """The error for damage at an offset."""
        return StoreError(f"{self.path}, offset {offset}: the file is damaged; restore it from a copy")

    def __len__(self) -> int:
        return len(self._places)

    def map(self, first: int, count: int, verify: bool) -> Mapping:
        """Map arrays ``first`` to ``first + count`` into new memory, each with its room.

        Writes do not reach the file. With ``verify``, large arrays are read completely too, to check them. The caller
        releases the memory with ``unmap``. Raises StoreError.
        """
        chosen = self._places[first : first + count]
        starts = []
        size = 0
        for place in chosen:
            align = ALIGN if place.mapped else _SMALL_ALIGN
            size += -size % align
            starts.append(size)
            size += 8 * max(place.words, place.room, 1)
            size += -size % align
        try:
            low = reserve(max(size, 1))
        except OSError as error:
            raise StoreError(f"{self.path} could not be mapped: {error.strerror}") from error
        try:
            for place, start in zip(chosen, starts, strict=True):
                self._bring(place, low + start, verify)
        except OSError as error:
            unmap(low, max(size, 1))
            raise StoreError(f"{self.path} could not be mapped: {error.strerror}") from error
        except BaseException:
            unmap(low, max(size, 1))
            raise
        return Mapping(low, low + max(size, 1), tuple(low + start for start in starts))

    def _bring(self, place: _ArrayPlace, address: int, verify: bool) -> None:
        if place.words == 0:
            return
        memory = memoryview((ctypes.c_char * (8 * place.words)).from_address(address)).cast("B")
        if place.mapped:
            map_file(address, 8 * place.words, self._file.fileno(), place.offset)
            verified = not verify or zlib.crc32(memory) == place.crc
        else:
            self._file.seek(place.offset)
            verified = self._file.readinto(memory) == len(memory) and zlib.crc32(memory) == place.crc
        if not verified:
            raise self.damaged(place.offset)

    def close(self) -> None:
        """Close the file; mappings stay."""
        self._file.close()

    def __enter__(self) -> ArrayFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
