"""Maintains a leapfrog triejoin in plain Python, as the executable specification of the compiled one.

Source: Veldhuizen, Incremental Maintenance for Leapfrog Triejoin (2013).

- ``versions``: ordered rows, and the difference of two versions; ``leapfrog``: the join.
- ``sensitivity``: the intervals of codes that a join depends on.
- ``surgery``, ``oracle``: the bindings at which changes of rows matter; ``maintenance``: joins again at these bindings.
"""

__all__ = ["maintenance"]
