"""Defines the parts of a block: what it stores besides tables, such as the threshold between heavy and light values.

Each kind of part has a module. ``KINDS`` lists the functions that make the parts of a block.
"""

from collections.abc import Callable

from freshviews.engine.blocks.parts.balance import balance_of
from freshviews.engine.blocks.parts.part import Owner, Part
from freshviews.engine.blocks.parts.tracing import tracing_of

__all__ = ["KINDS", "balance", "exponent", "part", "tracing"]

KINDS: list[Callable[[Owner], Part | None]] = [balance_of, tracing_of]
"""Functions that make the part of one kind for a state whose tables exist; None if its program needs none. States run
their parts in this order."""
