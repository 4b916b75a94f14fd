"""The trigger language, in which strategies write programs for back ends.

``statements``, ``payload`` and ``views`` define its nodes. A ``program`` also has the form of the result (``results``),
the maintenance of views outside of triggers (``upkeep``), and heavy and light parts (``heavy_light``). ``printer`` and
``rewrite`` work on every program. ``structure`` walks over a program; ``roles`` says what each field of a statement
means. ``reference`` is the executable specification.
"""

__all__ = [
    "comparison",
    "heavy_light",
    "intersections",
    "payload",
    "printer",
    "program",
    "reference",
    "results",
    "rewrite",
    "roles",
    "rule",
    "statements",
    "structure",
    "traced",
    "upkeep",
    "views",
]
