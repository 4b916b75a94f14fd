"""A stream on which counting triangles is as hard as online matrix-vector multiplication.

Olteanu's lecture, Part 3: the n x n matrix M is S. In every round R and T become the vectors u and v, joined through
one value: R(0, i) where u has i, T(j, 0) where v has j. The number of triangles is u M v. A matrix of few rows and many
columns makes the slices that first-order maintenance intersects as long as the relations.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

Update = tuple[str, tuple[int, int], int]


def oumv_stream(
    rows: int, columns: int, rounds: int, seed: int = 1, density: float = 0.5
) -> Iterator[list[Update]]:
    """Updates by phase: the matrix, then for every round the deletes and inserts of both vectors."""
    rng = random.Random(seed)
    sizes = {"R": rows, "T": columns}
    matrix = [("S", (i, j), 1) for i in range(rows) for j in range(columns) if rng.random() < density]
    rng.shuffle(matrix)
    yield matrix
    vectors: dict[str, set[int]] = {"R": set(), "T": set()}
    for _ in range(rounds):
        phase: list[Update] = []
        for name, old in vectors.items():
            new = {i for i in range(sizes[name]) if rng.random() < density}
            for values, m in ((old - new, -1), (new - old, 1)):
                phase += [(name, (0, i) if name == "R" else (i, 0), m) for i in sorted(values)]
            vectors[name] = new
        yield phase
