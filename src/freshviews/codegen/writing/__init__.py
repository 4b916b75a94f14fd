"""Writes the source of triggers: a module per family of statements.

``context`` describes the surroundings of a statement. ``bodies`` calls the writer for each kind of statement: in
``loops``, ``additions``, ``sums``, ``subsets``, ``ordered``, ``leapfrog_loops``, ``rebalancing`` or ``payloads``. These
modules write nested bodies through the context. ``triggers`` and ``rebalancing_functions`` write whole functions.
``ahead`` decides what memory is prefetched, and ``appending`` which inserts are deferred. ``parts`` moves statements
into functions of their own.
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
