"""Incremental leapfrog triejoin as its meaning: the algorithm in plain Python, which compiled code must agree with.

Veldhuizen, Incremental Maintenance for Leapfrog Triejoin (2013). ``rule`` says what is kept, ``versions`` how rows are
ordered and how two versions differ, ``leapfrog`` walks, ``sensitivity`` holds what the walks depended on, ``surgery``
and ``oracle`` tell where changes matter, ``maintenance`` walks there again, ``heads`` take what has changed.
"""

__all__ = ["describe", "maintenance"]
