"""Writes the source of triggers; each kind of statement has a module.

- ``triggers``, ``rebalancing_functions``: whole functions; ``bodies`` calls the writer of each statement.
- ``loops``, ``additions``, ``sums``, ``subsets``, ``ordered``, ``leapfrog_loops``, ``rebalancing``: statements.
- ``context``: the names in scope; ``payloads``: ring elements; ``parts``: long bodies as functions of their own.
- ``ahead``: memory to prefetch; ``appending``: inserts to defer.
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
