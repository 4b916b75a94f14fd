"""The executable specification of incremental leapfrog triejoin, in plain Python. Compiled code must agree with it.

Veldhuizen, Incremental Maintenance for Leapfrog Triejoin (2013). ``versions`` orders rows and compares two versions of
them; ``leapfrog`` joins; ``sensitivity`` records the intervals that a join depends on; ``surgery`` and ``oracle`` find
where changes of rows matter; ``maintenance`` joins again there, and returns what changes in the result.
"""

__all__ = ["maintenance"]
