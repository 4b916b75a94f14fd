"""Numba: makes machine code of kernels and of generated functions, and stores it (``kernel.machine.native``).

Nothing else imports Numba. A process that finds its machine code in the cache never imports this package.

- ``primitives`` and ``arithmetic`` are the machine code of functions that have a body of their own.
- ``dispatch`` compiles; Numba has a cache of its own, of what it links into other functions.
- ``entries`` are what Python calls machine code by.
"""

from freshviews.kernel.compiler.dispatch import compile_and_store, type_of

__all__ = ["arithmetic", "compile_and_store", "dispatch", "entries", "primitives", "type_of"]
