"""Compiles kernels and generated functions with Numba, and stores their machine code on disk.

- ``primitives`` and ``arithmetic`` write the machine code of functions that are not compiled from their Python bodies.
- ``dispatch`` compiles all other functions.
- ``entries`` writes the functions through which Python calls machine code.
"""

from freshviews.kernel.compiler.dispatch import compile_and_store, type_of

__all__ = ["arithmetic", "compile_and_store", "dispatch", "entries", "primitives", "type_of"]
