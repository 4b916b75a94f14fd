"""Chooses which columns of a stored row share a word of 64 bits. ``kernel.hash.packing`` writes and reads the rows.

A column with few possible values, such as a BOOLEAN or a DATE, needs only a part of a word.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from freshviews.catalog.definitions import ColumnDef
from freshviews.engine.codes.code_batch import Codes, address_of
from freshviews.engine.codes.words import words_in
from freshviews.kernel.codes.string_heap import LAST_CODE
from freshviews.kernel.hash.packing import BASE, COLUMN_WORDS, MASK, NULLABLE, SHIFT, WORD
from freshviews.records import dataclass
from freshviews.types import NULL, SqlType

_WORD_BITS = 64


@dataclass(frozen=True)
class Packing:
    """The layout of a stored row: ``places`` has shape (columns, COLUMN_WORDS), ``key_words`` is the number of words of
    the primary key, ``words`` of all."""

    places: Codes
    key_words: int
    words: int

    @property
    def address(self) -> int:
        """The address of ``places`` for compiled code."""
        return address_of(self.places.reshape(-1))[0]

    def codes_at(self, row: int, columns: int) -> tuple[int, ...]:
        """The codes of the first columns of the packed row at an address."""
        rows = words_in(row, 1, self.words)
        return tuple(int(self.codes(rows, column)[0]) for column in range(columns))

    def codes(self, rows: Codes, column: int) -> Codes:
        """The codes of a column of packed rows, shape (n, at least ``words``)."""
        place: list[int] = self.places[column].tolist()
        if place[MASK] == -1:
            return rows[:, place[WORD]]
        parts = rows[:, place[WORD]].view(np.uint64) >> np.uint64(place[SHIFT]) & np.uint64(place[MASK])
        codes: Codes = parts.view(np.int64) + place[BASE]
        if place[NULLABLE]:
            codes[parts == 0] = NULL
        return codes


def packing_of(columns: Sequence[ColumnDef], key: int) -> Packing:
    """The packing of the columns of a stored row. The first ``key`` columns, the primary key, have words of their
    own."""
    places = np.zeros((len(columns), COLUMN_WORDS), np.int64)
    words = 0
    key_words = 0
    for first, end in ((0, key), (key, len(columns))):
        key_words = words
        words += _pack(columns[first:end], places[first:end], words)
    return Packing(places, key_words, words)


def unpacked(columns: int) -> Packing:
    """The packing in which each column has a word."""
    places = np.zeros((columns, COLUMN_WORDS), np.int64)
    places[:, WORD] = np.arange(columns)
    places[:, MASK] = -1
    return Packing(places, 0, columns)


def _pack(columns: Sequence[ColumnDef], places: Codes, word: int) -> int:
    """Place columns in words from ``word`` on, the widest first, each in the first word with room; returns the number
    of words. In a word they keep their order, so that the first one can be written without reading the others."""
    ranges = [_range(column) for column in columns]
    words: list[list[int]] = []
    room: dict[int, int] = {}
    """Free bits, by word with free bits."""
    for i in sorted(range(len(columns)), key=lambda i: -ranges[i][1]):
        bits = ranges[i][1]
        found = next((number for number, free in room.items() if free >= bits), None)
        if found is None:
            found = len(words)
            words.append([])
        words[found].append(i)
        room[found] = room.get(found, _WORD_BITS) - bits
        if not room[found]:
            del room[found]
    for number, inside in enumerate(words, word):
        shift = 0
        for i in sorted(inside):
            base, bits = ranges[i]
            whole = bits == _WORD_BITS
            places[i, WORD] = number
            places[i, SHIFT] = shift
            places[i, MASK] = -1 if whole else (1 << bits) - 1
            places[i, BASE] = base
            places[i, NULLABLE] = 0 if whole else columns[i].nullable
            shift += bits
    return len(words)


def _range(column: ColumnDef) -> tuple[int, int]:
    """The code that is stored as 0, and the bits that all codes of a column need; 64 for a whole word."""
    found = _bounds(column.type)
    if found is None:
        return 0, _WORD_BITS
    least, greatest = found
    base = least - 1 if column.nullable else least
    bits = max((greatest - base).bit_length(), 1)
    return (base, bits) if bits < _WORD_BITS else (0, _WORD_BITS)


def _bounds(kind: SqlType) -> tuple[int, int] | None:
    """The least and the greatest code of a type that needs less than a word; else None."""
    if kind.name == "BOOLEAN":
        return 0, 1
    if kind.name == "DATE":
        return -(2**31), 2**31 - 1
    if kind.is_text:
        return 0, LAST_CODE
    return kind.bounds if kind.is_integer or kind.is_decimal or kind.is_interval else None
