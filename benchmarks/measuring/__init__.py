"""One measurement: a stream of changes, a strategy that processes it, and the process in which it runs.

``stream`` is what a workload yields. ``course`` times a strategy over it, ``answers`` compares views, ``ours`` runs
freshviews. ``strategies`` lists our strategies and the peers by name, ``catalogue`` the workloads. ``processes`` starts
and ends a measurement; ``worker`` is the other side. ``environments`` installs peers that need their own packages,
``programs`` builds compiled ones. ``machine`` has statistics, memory in use and the description of the
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
