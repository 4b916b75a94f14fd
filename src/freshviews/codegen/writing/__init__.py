"""Writes the source of triggers; each kind of statement has a module.

- ``triggers`` and ``rebalancing_functions`` write whole functions. ``bodies`` calls the writer of each statement.
- ``loops``, ``additions``, ``sums``, ``subsets``, ``ordered``, ``leapfrog_loops``, ``rebalancing`` write statements.
- ``context`` has the names in scope. ``payloads`` writes ring elements. ``parts`` moves long bodies into functions.
- ``ahead`` prefetches memory. ``appending`` finds the inserts that may be deferred.
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
