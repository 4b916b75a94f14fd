"""A program as readable Python source, compiled by Numba and cached on disk.

Stages: ``compiled_block`` takes the program of a block and puts its module together. ``writing`` writes the triggers, a
function each; ``reading`` writes the functions that read the result. ``scalars`` writes expressions over codes in both,
and ``conditions`` those of traced joins. Everything is written through ``writer``: lines, local names, imports.
``layout`` defines places in memory, ``narrowing`` chooses sums of doubles with few words. ``module`` loads the source
and compiles its functions.
"""

__all__ = ["compiled_block", "conditions", "layout", "module", "narrowing", "reading"]
