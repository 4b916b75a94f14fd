"""A small social network that grows: people who know each other, forums, posts, comments, tags and likes.

The files are those of LDBC SNB's data generator, in the folder that SNB names or in benchmarks/data/snb. Rows arrive in
the order of creation; at the end the last tenth of all friendships and likes is deleted. Without the folder, a random
network of the same shape is used. The queries are ours, modelled on LDBC's short reads; the figures are not LDBC
results.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.measuring.machine import ROOT
from benchmarks.measuring.stream import Relation, Step, Stream, spread_over

TITLE = "social network"
UNIT = "updates/s"
ROWS = 100

RELATIONS = {
    "knows": Relation("knows", "p1 BIGINT, p2 BIGINT", ("p1", "p2")),
    "post": Relation("post", "post BIGINT, creator BIGINT, forum BIGINT, place BIGINT", ("post",)),
    "comment": Relation("comment", "comment BIGINT, creator BIGINT, reply_of BIGINT", ("comment",)),
    "member": Relation("member", "forum BIGINT, person BIGINT", ("forum", "person")),
    "post_tag": Relation("post_tag", "post BIGINT, tag BIGINT", ("post", "tag")),
    "likes": Relation("likes", "person BIGINT, post BIGINT", ("person", "post")),
    "interest": Relation("interest", "person BIGINT, tag BIGINT", ("person", "tag")),
}
VIEWS = {
    "posts of friends": (
        "knows post",
        "SELECT k.p1 AS person, COUNT(*) AS posts FROM knows k JOIN post m ON m.creator = k.p2 GROUP BY k.p1",
    ),
    "friends of friends": (
        "knows",
        "SELECT a.p1 AS person, b.p2 AS other, COUNT(*) AS ways "
        "FROM knows a JOIN knows b ON a.p2 = b.p1 WHERE a.p1 <> b.p2 GROUP BY a.p1, b.p2",
    ),
    "tags among friends": (
        "knows post post_tag",
        "SELECT k.p1 AS person, g.tag, COUNT(*) AS posts FROM knows k JOIN post m ON m.creator = k.p2 "
        "JOIN post_tag g ON g.post = m.post GROUP BY k.p1, g.tag",
    ),
    "members who reply": (
        "member post comment",
        "SELECT m.forum, COUNT(*) AS replies FROM member m JOIN post p ON p.forum = m.forum "
        "JOIN comment c ON c.reply_of = p.post AND c.creator = m.person GROUP BY m.forum",
    ),
    "friends who like": (
        "knows post likes",
        "SELECT COUNT(*) AS likes FROM knows k JOIN post p ON p.creator = k.p1 "
        "JOIN likes l ON l.post = p.post AND l.person = k.p2",
    ),
}
FILES = {
    "knows": ("person_knows_person_0_0.csv", (0, 1), 2),
    "post": ("post_0_0.csv", (0, 8, 9, 10), 2),
    "comment": ("comment_0_0.csv", (0, 6, 8), 1),
    "member": ("forum_hasMember_person_0_0.csv", (0, 1), 2),
    "post_tag": ("post_hasTag_tag_0_0.csv", (0, 1), None),
    "likes": ("person_likes_post_0_0.csv", (0, 1), 2),
    "interest": ("person_hasInterest_tag_0_0.csv", (0, 1), None),
}
"""File, columns, and the column with the time of creation."""


def stream(case: str) -> Stream:
    """The stream of a view: its tables' rows in the order of creation, and the deletes."""
    names, view = VIEWS[case]
    moments: list[tuple[float, str, tuple[int, ...]]] = []
    for name in names.split():
        rows = _rows(name)
        moments += [(i / len(rows), name, row) for i, row in enumerate(rows)]
    steps: list[Step] = []
    waiting: dict[str, list[tuple[int, ...]]] = {name: [] for name in names.split()}
    for _, name, row in sorted(moments):
        waiting[name].append(row)
        if len(waiting[name]) == ROWS:
            steps.append(_step(1, name, waiting[name]))
            waiting[name] = []
    steps += [_step(1, name, rows) for name, rows in waiting.items() if rows]
    gone = [step for step in steps if step.table in ("knows", "likes")]
    steps += [Step(-1, step.table, step.rows) for step in gone[-max(len(gone) // 10, 1) :]]
    used = tuple(RELATIONS[name] for name in names.split())
    return Stream(used, view, tuple(steps), spread_over(len(steps), 10))


def _step(sign: int, name: str, rows: list[tuple[int, ...]]) -> Step:
    columns = [pa.array(column, pa.int64()) for column in zip(*rows, strict=True)]
    return Step(sign, name, pa.record_batch(columns, list(RELATIONS[name].types())))


def _rows(name: str) -> list[tuple[int, ...]]:
    folder = Path(os.environ.get("SNB") or ROOT / "benchmarks" / "data" / "snb")
    file, columns, time = FILES[name]
    if not (folder / file).exists():
        return _random(name)
    with (folder / file).open(newline="") as lines:
        read = list(csv.reader(lines, delimiter="|", quoting=csv.QUOTE_NONE))[1:]
    if time is not None:
        read.sort(key=lambda row: row[time])
    found = dict.fromkeys(tuple(int(row[column] or 0) for column in columns) for row in read)
    if name == "knows":
        # Friendship is symmetric; the file may have one direction only.
        found = dict.fromkeys(pair for p1, p2 in found for pair in ((p1, p2), (p2, p1)))
    return list(found)


def _random(name: str) -> list[tuple[int, ...]]:
    """A random network of the same size: 220 people, 5,900 posts."""
    random = np.random.default_rng(len(name))
    people, posts, forums, tags = 220, 5_900, 800, 1_000
    sizes = {
        "knows": (1_600, (people, people)),
        "post": (posts, (0, people, forums, 1_000)),
        "comment": (2_200, (0, people, posts)),
        "member": (3_500, (forums, people)),
        "post_tag": (700, (posts, tags)),
        "likes": (750, (people, posts)),
        "interest": (4_700, (people, tags)),
    }
    count, most = sizes[name]
    columns = [np.arange(count) if m == 0 else (m * random.random(count) ** 2).astype(np.int64) for m in most]
    rows = list(dict.fromkeys(zip(*(column.tolist() for column in columns), strict=True)))
    return [row for row in rows if name != "knows" or row[0] != row[1]]
