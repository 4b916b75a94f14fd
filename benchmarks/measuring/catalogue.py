"""The modules of all workloads, by the names that results, options and pages use."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

WORKLOADS = {
    **{
        name: f"workloads.{name}"
        for name in (
            "cofactor", "compiled", "eps", "flights", "graph", "kept_listing", "large_book", "orderbook", "oumv", "snb",
            "star", "tpch", "triangle",
        )
    },
    **{
        name: f"timing.{name}"
        for name in (
            "choice", "cofactor_ready", "cores", "enclosure", "first_use", "memory", "ridge", "single_edits",
            "single_rows", "tree_load", "trie", "windowed_graph",
        )
    },
    **{name: f"counting.{name}" for name in ("eps_steps", "moves", "steps")},
    **{
        f"pipeline_{name}": f"pipeline.{name}"
        for name in ("fixed", "freshness", "graph", "restart", "star", "upserts", "workers")
    },
}  # fmt: skip
"""The module of each workload, below ``benchmarks``."""


def module_of(workload: str) -> ModuleType:
    """The module of a workload, imported on demand: the environment of a peer lacks what other workloads need.

    Raises KeyError for a name that is not in ``WORKLOADS``.
    """
    return import_module(f"benchmarks.{WORKLOADS[workload]}")
