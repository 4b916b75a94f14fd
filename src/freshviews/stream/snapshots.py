"""Computes the signed rows that lead from one state of a table to another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Numbers = npt.NDArray[np.int64]


def difference(
    before: Sequence[pa.Array], after: Sequence[pa.Array], positions: Numbers
) -> tuple[list[pa.Array], Numbers, Numbers]:
    """Columns, multiplicities and positions of the rows whose count changed, each once.

    Rows are compared by value, NULL equal to NULL; both contents are bags. ``positions``: rows of ``after``; an
    inserted row has its last position, a deleted row that is not in ``after`` has -1.
    """
    gone, come = len(before[0]), len(after[0])
    names = [str(i) for i in range(len(before))]
    arrays = [pa.concat_arrays([old, new]) for old, new in zip(before, after, strict=True)]
    signs = np.repeat(np.array([-1, 1], np.int64), [gone, come])
    places = np.concatenate([np.full(gone, -1, np.int64), positions])
    table = pa.table([*arrays, pa.array(signs), pa.array(places)], names=[*names, "sign", "place"])
    # One thread keeps the groups in the order of their first rows, so that every run gives the same order.
    groups = table.group_by(names, use_threads=False).aggregate([("sign", "sum"), ("place", "max")])
    net: Numbers = groups.column("sign_sum").to_numpy()
    changed = np.flatnonzero(net)
    found = groups.take(pa.array(changed))
    columns = [
        pa.concat_arrays(found.column(name).chunks) if changed.size else arrays[i][:0] for i, name in enumerate(names)
    ]
    return columns, net[changed], found.column("place_max").to_numpy()
