"""Source of triggers: the context of a statement, a module per family of statements, and the functions around them.

``context`` describes the surroundings of a statement. ``bodies`` has a writer for each kind of statement. The
modules below it (``loops``, ``additions``, ``sums``, ``subsets``, ``ordered``, ``leapfrog_loops``, ``rebalancing``,
``payloads``) write nested bodies through the context. ``triggers`` and ``procedures`` write whole functions. ``ahead``,
``appending`` and ``parts`` decide what is prefetched, deferred, and written as a function of its own.
"""

__all__ = [
    "appending",
    "bodies",
    "context",
    "leapfrog_loops",
    "loops",
    "parts",
    "payloads",
    "prologue",
    "rebalancing_functions",
    "sums",
    "triggers",
]
