"""The social-network queries of the CROWN paper, over a window of 180 days, against DuckDB at every tenth; the sum
of all changes is the result, at the third tenth and at the end.

The data are LDBC's SNB test files (``|``-separated) in the folder that SNB names, or benchmarks/data/snb. Messages are
posts and comments, knows goes in both directions, and a message's tags come and go with it. Tags are there from the
start. Rows come in the order of their time; each is deleted 180 days later.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.csv
import pytest

from freshviews import Database

FOLDER = Path(os.environ.get("SNB", Path(__file__).parents[2] / "benchmarks" / "data" / "snb"))
WINDOW = datetime.timedelta(days=180)

TABLES = {
    "tag": "t_tagid BIGINT NOT NULL, t_name STRING NOT NULL",
    "person": "p_personid BIGINT NOT NULL, p_firstname STRING NOT NULL",
    "message": "m_messageid BIGINT NOT NULL, m_creatorid BIGINT NOT NULL, m_length BIGINT NOT NULL",
    "message_tag": "mt_messageid BIGINT NOT NULL, mt_tagid BIGINT NOT NULL",
    "knows": "k_person1id BIGINT NOT NULL, k_person2id BIGINT NOT NULL",
}
QUERIES = {
    "q1": """SELECT p_personid, p_firstname, m_messageid, k_person1id FROM person, message, knows
        WHERE p_personid = m_creatorid AND k_person2id = p_personid""",
    "q2": """SELECT t_name, m_messageid, k1.k_person2id AS p1, k2.k_person2id AS p2
        FROM tag, message, message_tag, knows k1, knows k2
        WHERE t_tagid = mt_tagid AND mt_messageid = m_messageid
        AND m_creatorid = k1.k_person1id AND k1.k_person2id = k2.k_person1id""",
    "q3": """SELECT p_personid, p_firstname, m_messageid, k1.k_person1id AS p1, k1.k_person2id AS p2
        FROM person, message, knows k1, knows k2
        WHERE p_personid = m_creatorid AND k2.k_person2id = p_personid AND k1.k_person2id = k2.k_person1id
        AND k2.k_person2id <> k1.k_person1id""",
    "q4": """SELECT t_name, t_tagid, COUNT(DISTINCT m_messageid) AS messages FROM tag, message, message_tag, knows
        WHERE m_messageid = mt_messageid AND mt_tagid = t_tagid AND m_creatorid = k_person2id
        GROUP BY t_name, t_tagid""",
}

Event = tuple[datetime.datetime, int, str, tuple[object, ...]]


def read(name: str, *columns: str) -> Iterator[tuple[object, ...]]:
    """Columns of a file; the second of two columns with the same name gets a suffix."""
    path = FOLDER / f"{name}_0_0.csv"
    header = path.read_text(encoding="utf-8").partition("\n")[0].split("|")
    names = [f"{one}#2" if one in header[:i] else one for i, one in enumerate(header)]
    options = pa.csv.ReadOptions(column_names=names, skip_rows=1)
    texts = pa.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()))
    parse = pa.csv.ParseOptions(delimiter="|", quote_char=False)
    table = pa.csv.read_csv(path, options, parse, texts)
    return zip(*(table[column].to_pylist() for column in columns), strict=True)


def time_of(text: object) -> datetime.datetime:
    return datetime.datetime.strptime(str(text), "%Y-%m-%dT%H:%M:%S.%f%z")


def number(text: object) -> int:
    return int(str(text))


def events() -> list[Event]:
    """Every insertion, and the deletion 180 days later, in order of time."""
    born: list[tuple[datetime.datetime, str, tuple[object, ...]]] = []
    when: dict[int, datetime.datetime] = {}
    for key, name, at in read("person", "id", "firstName", "creationDate"):
        born.append((time_of(at), "person", (number(key), name)))
    for kind in ("post", "comment"):
        for key, at, creator, length in read(kind, "id", "creationDate", "creator", "length"):
            when[number(key)] = time_of(at)
            born.append((time_of(at), "message", (number(key), number(creator), number(length))))
        for key, tag in read(f"{kind}_hasTag_tag", "Post.id" if kind == "post" else "Comment.id", "Tag.id"):
            born.append((when[number(key)], "message_tag", (number(key), number(tag))))
    for one, other, at in read("person_knows_person", "Person.id", "Person.id#2", "creationDate"):
        born.append((time_of(at), "knows", (number(one), number(other))))
        born.append((time_of(at), "knows", (number(other), number(one))))
    both = [(at, 1, table, row) for at, table, row in born]
    both += [(at + WINDOW, -1, table, row) for at, table, row in born]
    return sorted(both, key=lambda event: event[:2])


def ddl() -> str:
    return "".join(f"CREATE TABLE {name} ({columns});" for name, columns in TABLES.items())


@pytest.mark.skipif(not FOLDER.exists(), reason=f"no SNB data at {FOLDER}; SNB names their folder")
@pytest.mark.parametrize("name", QUERIES)
def test_a_query_over_the_window_equals_duckdb_after_every_tenth_of_the_stream(name: str) -> None:
    stream = events()
    peer = duckdb.connect()
    with Database() as db:
        db.execute(ddl())
        peer.execute(ddl().replace("STRING", "VARCHAR"))
        tags = [(number(key), str(text)) for key, text in read("tag", "id", "name")]
        db.insert("tag", tags)
        peer.register("tags", pa.table({"t_tagid": [t for t, _ in tags], "t_name": [n for _, n in tags]}))
        peer.execute("INSERT INTO tag SELECT * FROM tags")
        strategy = "TBLPROPERTIES ('freshviews.strategy' = 'crown')"
        db.execute(f"CREATE MATERIALIZED VIEW v {strategy} AS {QUERIES[name]}")
        view = db.view("v")
        changes: list[pa.Table] = []
        view.subscribe(lambda change: changes.append(change.to_arrow()))
        there: dict[str, dict[tuple[object, ...], int]] = {table: {} for table in TABLES}
        size = -(-len(stream) // 10)
        read_rows = 0
        for start in range(0, len(stream), size):
            for at in range(start, min(start + size, len(stream)), 200):
                with db.batch() as batch:
                    for _, m, table, row in stream[at : min(at + 200, start + size)]:
                        (batch.insert if m > 0 else batch.delete)(table, [row])
                        there[table][row] = there[table].get(row, 0) + m
            for table, rows in there.items():
                if table != "tag":
                    kept = [row for row, m in rows.items() for _ in range(m)]
                    names = [column.split()[0] for column in TABLES[table].split(", ")]
                    columns = list(zip(*kept, strict=True)) if kept else [()] * len(names)
                    types = [pa.string() if "name" in n else pa.int64() for n in names]
                    arrays = [pa.array(c, t) for c, t in zip(columns, types, strict=True)]
                    peer.register("kept", pa.table(arrays, names=names))
                    peer.execute(f"DELETE FROM {table}; INSERT INTO {table} SELECT * FROM kept")
            ours = view.to_arrow()
            read_rows += ours.num_rows
            summed = pa.concat_tables(changes) if changes else None
            peer.register("ours", ours)
            assert _difference(peer, QUERIES[name]) == 0
            if summed is not None and start // size in (2, 9):
                peer.register("changes", summed)
                names = ", ".join(ours.column_names)
                total = f"SELECT {names}, SUM(_multiplicity) AS n FROM changes GROUP BY {names} HAVING n <> 0"
                assert _count(peer, f"SELECT COUNT(*) FROM ({total}) WHERE n < 0") == 0
                assert _count(peer, f"SELECT COALESCE(SUM(n), 0) FROM ({total})") == ours.num_rows
                both = f"SELECT {names} FROM ({total}) EXCEPT SELECT {names} FROM ours"
                assert _count(peer, f"SELECT COUNT(*) FROM ({both})") == 0
        assert read_rows > 0, "the data have no result"
        assert len(view) == 0


def _difference(peer: duckdb.DuckDBPyConnection, sql: str) -> int:
    apart = f"(FROM ours EXCEPT ALL ({sql})) UNION ALL (({sql}) EXCEPT ALL FROM ours)"
    return _count(peer, f"SELECT COUNT(*) FROM ({apart})")


def _count(peer: duckdb.DuckDBPyConnection, sql: str) -> int:
    ((found,),) = peer.execute(sql).fetchall()
    return int(found)
