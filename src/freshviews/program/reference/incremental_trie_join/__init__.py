"""The executable specification of incremental leapfrog triejoin, in plain Python. Compiled code must agree with it.

Source: Veldhuizen, Incremental Maintenance for Leapfrog Triejoin (2013). ``versions`` orders rows and compares two
versions of them. ``leapfrog`` joins rows. ``sensitivity`` records the intervals that a join depends on. ``surgery`` and
``oracle`` find the bindings at which changes of rows matter. ``maintenance`` joins again at these bindings, and returns
the change of the result.
"""

__all__ = ["maintenance"]
