"""Parts: what programs need beside their tables, a module for each kind. ``part`` says what a part is.

A new kind of part is a module here and a line in ``KINDS``.
"""

from collections.abc import Callable

from freshviews.engine.blocks.parts.balance import balance_of
from freshviews.engine.blocks.parts.part import Owner, Part
from freshviews.engine.blocks.parts.tracing import tracing_of

__all__ = ["KINDS", "balance", "exponent", "part", "tracing"]

KINDS: list[Callable[[Owner], Part | None]] = [balance_of, tracing_of]
"""Each makes the part of its kind that the program of a state needs, once the tables are there; None where it needs
none. States run their parts in this order."""
