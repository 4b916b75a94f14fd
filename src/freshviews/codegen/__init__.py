"""Writes programs as readable Python source, which Numba compiles; the machine code is cached on disk.

- ``compiled_block``: writes the Python module of a block; ``module``: loads and compiles such a module; ``layout``:
  where the words of rows and payloads lie in memory.
- ``writing``: a function per trigger; ``reading``: functions that read the result.
- ``scalars``: expressions; ``conditions``: the conditions of traced joins; ``writer``: lines and local names.
"""

__all__ = ["compiled_block", "conditions", "layout", "module", "narrowing", "reading"]
