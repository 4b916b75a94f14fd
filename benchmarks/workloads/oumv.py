"""Streams on which, by the OuMv conjecture, no system has constant time for both updates and answers.

A matrix M of n x n bits is a table s. Each of n rounds replaces a vector u (table r) and a vector v (table t), and
reads the number of pairs in u, M and v: u M v over the integers. A view over r, s and t with less than n ** (1/2 - a)
of
N = n * n per update and answer would multiply vectors with matrices faster than any known algorithm (Henzinger,
Krinninger, Nanongkai, Saranurak, STOC 2015; Berkholz, Keppeler, Schweikardt, PODS 2017). A round is two batches: the
deletes and the inserts of both vectors.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.measuring.stream import MULTIPLICITY, Relation, Step, Stream, spread_over

TITLE = "oumv"
UNIT = "updates/s"
VIEW = "SELECT COUNT(*) AS n FROM r JOIN s ON r.a = s.a JOIN t ON s.b = t.b"
DENSITY = 0.5
RELATIONS = (
    Relation("r", "a BIGINT", ("a",)),
    Relation("s", "a BIGINT, b BIGINT", ("a", "b")),
    Relation("t", "b BIGINT", ("b",)),
)


def stream(case: str) -> Stream:
    """The stream of a case, ``n = number``; the matrix comes first, in batches of 1000."""
    n = int(case.split()[-1])
    random = np.random.default_rng(1)
    a, b = np.nonzero(random.random((n, n)) < DENSITY)
    steps = [Step(1, "s", batch) for batch in pa.table({"a": a, "b": b}).to_batches(max_chunksize=1000)]
    there: dict[str, set[int]] = {"r": set(), "t": set()}
    for _ in range(n):
        for table, column in (("r", "a"), ("t", "b")):
            new = set(np.nonzero(random.random(n) < DENSITY)[0].tolist())
            gone, come = sorted(there[table] - new), sorted(new - there[table])
            there[table] = new
            signs = np.repeat([-1, 1], [len(gone), len(come)])
            if len(signs):
                rows = {column: np.array([*gone, *come], np.int64), MULTIPLICITY: signs}
                steps.append(Step(0, table, pa.record_batch(rows)))
    return Stream(RELATIONS, VIEW, tuple(steps), spread_over(len(steps), 10))
