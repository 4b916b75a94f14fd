"""One measurement: a stream of changes, how a strategy goes through it, and the process it runs in.

``stream`` is what a workload yields. ``course`` times a strategy over it, ``answers`` compares views, ``ours`` runs
freshviews. ``strategies`` lists our strategies and the peers by name, ``catalogue`` the workloads. ``processes`` starts
and ends a measurement; ``worker`` is its other side. ``environments`` installs peers that need their own packages,
``programs`` builds those that are compiled. ``machine`` has statistics, memory in use and the description of the
machine.
"""

__all__ = [
    "answers",
    "catalogue",
    "course",
    "environments",
    "machine",
    "ours",
    "processes",
    "programs",
    "strategies",
    "stream",
    "worker",
]
