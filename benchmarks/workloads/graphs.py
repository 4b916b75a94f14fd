"""Graphs: random ones with power-law degrees, and the trust network of Epinions if its file is there."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.csv as pc

from benchmarks.measuring.machine import ROOT

Edges = npt.NDArray[np.int64]


def chung_lu(nodes: int, edges: int, skew: float) -> Edges:
    """Distinct edges without loops, shape (edges, 2), always the same ones, in the order in which they were drawn.

    The ends of an edge are drawn with weight ``i ** (-1 / (skew - 1))`` (Chung and Lu), so that the
    degrees follow a power law with the exponent ``skew``: a smaller one gives the largest nodes more edges.
    """
    random = np.random.default_rng(1)
    weights = np.cumsum(np.arange(1, nodes + 1) ** (-1 / (skew - 1)))
    found = np.empty(0, np.int64)
    while len(found) < edges:
        ends = np.searchsorted(weights, random.random((2, edges)) * weights[-1])
        drawn = ends[0] * nodes + ends[1]
        found = np.concatenate([found, drawn[ends[0] != ends[1]]])
        _, first = np.unique(found, return_index=True)
        found = found[np.sort(first)]
    names = random.permutation(nodes)
    return np.column_stack([names[found[:edges] // nodes], names[found[:edges] % nodes]])


def epinions() -> Edges | None:
    """SNAP's soc-Epinions1 as ``src,dst`` in the file that EPINIONS names, or benchmarks/data/epinions.csv, in order
    of arrival; None if there is no file."""
    file = Path(os.environ.get("EPINIONS") or ROOT / "benchmarks" / "data" / "epinions.csv")
    if not file.exists():
        return None
    table = pc.read_csv(file, pc.ReadOptions(column_names=["src", "dst"]))
    return np.column_stack([column.to_numpy() for column in table.columns])


def windowed(count: int, window: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The changes of ``count`` edges that pass through a window: the edge and 1 or -1. At the end the window is
    drained."""
    number = np.arange(count)
    # Before an edge is inserted, the one ``window`` edges earlier is deleted.
    moments = np.concatenate([2 * number + 1, 2 * (number + window)])
    order = np.argsort(moments)
    return np.concatenate([number, number])[order], np.repeat([1, -1], count)[order]


def window_of(count: int) -> int:
    """A fifth of the edges, rounded up to an even number."""
    return 2 * -(-count // 10)
