"""A disk that records what was synced, and its contents after the machine is lost."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

BLOCK = 64
"""Bytes that the disk writes at once: less than a page, so a small record has several."""


class Disk:
    """Takes the place of ``os.fsync``. ``fails``: the error of every sync of the log from now on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.synced: dict[int, int] = {}
        """Size at the last sync, by the number of the file."""
        self.fails: OSError | None = None
        self._sync = os.fsync
        monkeypatch.setattr(os, "fsync", self.sync)

    def sync(self, file: int) -> None:
        found = os.fstat(file)
        if self.fails is not None:
            raise self.fails
        self._sync(file)
        self.synced[found.st_ino] = found.st_size

    def size(self, path: Path) -> int:
        return self.synced.get(path.stat().st_ino, 0)

    def lose_machine(self, directory: Path, copy: Path, order: random.Random | None = None) -> Path:
        """Copy a directory as the disk has it: logs end at their last sync.

        With ``order``, some blocks written later are there, too, between zeros.
        """
        shutil.copytree(directory, copy)
        for log in directory.glob("log-*"):
            size = self.size(log)
            data = log.read_bytes()
            rest = bytearray(data[size:])
            if order is None:
                rest.clear()
            for at in range(0, len(rest), BLOCK):
                if order is not None and order.random() < 0.5:
                    rest[at : at + BLOCK] = bytes(len(rest[at : at + BLOCK]))
            (copy / log.name).write_bytes(data[:size] + rest)
        return copy
