"""Writes the programs that maintain views as readable Python source. Numba compiles it; machine code is cached on disk.

- ``compiled_block`` writes the Python module of a block. ``module`` loads and compiles such a module.
- ``layout`` defines where the words of rows and payloads lie in memory.
- ``writing`` writes a function per trigger. ``reading`` writes functions that read the result.
- ``scalars`` writes expressions, and ``conditions`` writes the conditions of traced joins. ``writer`` makes the lines.
"""

__all__ = ["compiled_block", "conditions", "layout", "module", "narrowing", "reading"]
