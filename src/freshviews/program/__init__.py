"""The trigger language, between strategies and back ends.

``statements``, ``payload`` and ``views`` are its nodes; a ``program`` puts them together, with how the result is kept
(``results``), how views are maintained beside the triggers (``upkeep``), and heavy and light ``parts``. ``printer`` and
``rewrite`` work on every program, ``structure`` walks over it by the ``roles`` of fields; ``reference`` is the
executable specification.
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
