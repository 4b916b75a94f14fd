"""Calls compiled triggers. A trigger finds the columns of a batch by the addresses that are passed to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from freshviews.codegen.compiled_block import CompiledTrigger
from freshviews.engine.codes.code_batch import Codes
from freshviews.engine.codes.words import address
from freshviews.records import dataclass


@dataclass(frozen=True)
class Call:
    """A trigger of a relation: its number in the program, its function, its batch block with its address, and the
    columns it reads."""

    number: int
    relation: str
    run: Any
    block: Codes
    place: int
    columns: tuple[str, ...]

    def set_columns(self, columns: Mapping[str, tuple[int, int]], m: tuple[int, int]) -> None:
        """Write columns and multiplicities, as (address, stride in words), into the block."""
        self.block[0], self.block[1] = m
        for i, name in enumerate(self.columns, 1):
            self.block[2 * i], self.block[2 * i + 1] = columns[name]


def call_of(number: int, trigger: CompiledTrigger) -> Call:
    """The call of the trigger with a number, with a block of its own."""
    block = np.zeros(2 + 2 * len(trigger.columns), np.int64)
    return Call(number, trigger.relation, trigger.run, block, address(block), trigger.columns)
