"""Source of triggers: one function per kind of statement."""

__all__ = [
    "appending",
    "conditions",
    "leapfrog",
    "outlined",
    "prologue",
    "rebalancing",
    "repeated",
    "statements",
    "tabulated",
    "triggers",
]
