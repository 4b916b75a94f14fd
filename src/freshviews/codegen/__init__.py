"""Turns programs into readable Python source, compiled by Numba and cached on disk.

``compiled_block`` makes the module of a block's program. ``writing`` writes a function per trigger; ``reading`` writes
the functions that read the result. Both use ``scalars`` for expressions, and ``writer`` for lines, local names and
imports. ``conditions`` writes the conditions of traced joins. ``layout`` defines places in memory; ``narrowing`` makes
sums of doubles short: 4 words instead of 37. ``module`` loads the source and compiles its functions.
"""

__all__ = ["compiled_block", "conditions", "layout", "module", "narrowing", "reading"]
