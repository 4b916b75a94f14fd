"""The trigger language, in which strategies write programs for back ends.

``statements``, ``payload`` and ``views`` define its nodes. A ``program`` combines these with the form of the result
(``results``), the maintenance of views outside of triggers (``upkeep``), and the parts of heavy and light values
(``heavy_light``). ``printer`` and ``rewrite`` work on every program. ``structure`` walks over a program by the
``roles`` of fields. ``reference`` is the executable specification.
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
