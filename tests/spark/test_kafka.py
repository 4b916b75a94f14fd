"""Kafka as a source and a sink, from SQL alone, with a real broker."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")

from demo.shop.packages import KAFKA_CONNECTOR
from freshviews.spark import Pipeline
from freshviews.spark.connectors.message_format import Written
from freshviews.spark.definition import ViewSpec
from freshviews.spark.driver.version import PipelineError
from freshviews.spark.io import delivery
from freshviews.spark.io.sink_kinds.message_sink import messages
from freshviews.spark.io.sinks import Due, SinkError, deliver
from freshviews.spark.reading.contents import contents, latest, status
from freshviews.spark.script import read_script
from freshviews.spark.state.stores.addresses import store_of
from tests.spark.faults import Fault, environment
from tests.spark.jars import AVRO, has, spark_jars
from tests.spark.topics import Topic, headers_of

pytestmark = pytest.mark.spark


def once(spark: Any, folder: Path, script: str, cells: int | None = None, name: str = "shop") -> None:
    (folder / f"{name}.sql").write_text(script)
    Pipeline.from_script(spark, folder / f"{name}.sql", cells=cells).start(once=True).awaitTermination()


def rows(folder: Path, view: str, name: str = "shop") -> Counter[tuple[Any, ...]]:
    store = store_of(folder / f"{name}.checkpoint")
    return Counter(tuple(row.values()) for row in contents(store, latest(store), view).to_pylist())


def text(**value: Any) -> bytes:
    return json.dumps(value).encode()


def source(kafka: str, topic: Topic, options: str) -> str:
    return f"USING kafka OPTIONS ('kafka.bootstrap.servers' '{kafka}', subscribe '{topic.name}', {options})"


@pytest.mark.long("its fixtures start Spark and a broker, and two runs follow")
def test_columns_are_read_from_keys_headers_and_json_paths(spark: Any, kafka: str, tmp_path: Path) -> None:
    topic = Topic(kafka)
    options = """values 'json', changes 'upsert', from.id 'key', from.cust 'value.customer.name',
        from.first_tag 'value.tags[0]', from.trace 'headers.trace-id', from.part 'partition', from.at 'timestamp',
        bad_rows 'bad'"""
    script = f"""
    CREATE STREAMING TABLE lines (id BIGINT PRIMARY KEY, cust STRING, price DECIMAL(18, 4), day DATE, first_tag STRING,
      trace STRING, part INT, at TIMESTAMP) {source(kafka, topic, options)};
    CREATE MATERIALIZED VIEW v AS SELECT id, cust, price, CAST(day AS STRING) AS day, first_tag, trace, part FROM lines;
    CREATE MATERIALIZED VIEW n AS SELECT COUNT(*) AS n, COUNT(at) AS at FROM lines;
    """
    # More digits than a double has.
    exact = '{"customer": {"name": "Ann"}, "price": 12345678901234.5678, "day": "2026-01-05"}'
    topic.send(
        {"key": "1", "value": exact, "headers": [("trace-id", b"\xff"), ("trace-id", b"b")], "partition": 1},
        {"key": "2", "value": text(customer={"name": "Bob"}, tags=["x", "y"]), "partition": 0},
        {"key": "3", "value": text(customer={"name": "Cid"}), "partition": 1},
        {"key": "3", "value": None, "partition": 1},
        {"key": "2", "value": text(customer={"name": "Bea"}, price="1.50"), "partition": 0},
    )
    topic.send({"key": "9", "value": text(customer={"name": "aborted"}), "partition": 0}, transaction="abort")
    bad = ('{"a": 1} {"a": 2}', "nonsense", "[1]", '{"price": 1.23456}', '{"day": "5.1."}')
    topic.send(*({"key": "4", "value": value, "partition": 1} for value in bad))
    topic.send({"key": "five", "value": "{}", "partition": 1}, {"key": b"\xff", "value": "{}", "partition": 1})
    once(spark, tmp_path, script, cells=2)
    ann = (1, "Ann", Decimal("12345678901234.5678"), "2026-01-05", None, "b", 1)
    assert rows(tmp_path, "v") == Counter([ann, (2, "Bea", Decimal("1.5"), None, None, None, 0)])
    assert rows(tmp_path, "n") == Counter([(2, 2)])
    (file,) = (tmp_path / "bad").iterdir()
    bad = [json.loads(line) for line in file.read_text().splitlines()]
    places = [(one["topic"], one["partition"], one["offset"]) for one in bad]
    assert places == [(topic.name, 1, offset) for offset in range(3, 10)]
    whole = "the value must be one JSON object, the key must be text in UTF-8, headers must be text in UTF-8"
    assert [one["reason"] for one in bad[:3]] == [whole] * 3 and bad[6]["reason"] == whole
    assert [one["column"] for one in bad] == [None, None, None, "price", "day", "id", None]

    # The next run begins where this one ended; keys of both versions belong to the same row.
    topic.send({"key": "1", "value": None, "partition": 1}, {"key": "2", "value": "{}", "partition": 0})
    once(spark, tmp_path, script)
    assert rows(tmp_path, "v") == Counter([(2, None, None, None, None, None, 0)])


def test_a_bad_message_stops_the_run_at_its_place(spark: Any, kafka: str, tmp_path: Path) -> None:
    topic = Topic(kafka)
    script = f"""CREATE STREAMING TABLE t (a INT) {source(kafka, topic, "values 'json'")};
    CREATE MATERIALIZED VIEW v AS SELECT a FROM t;"""
    topic.send({"value": text(a=1), "partition": 1}, {"value": text(a="x"), "partition": 1})
    place = rf"\(topic {topic.name}, partition 1, offset 1\)"
    with pytest.raises(PipelineError, match=rf"column a: 'x': .*{place}"):
        once(spark, tmp_path, script)
    assert rows(tmp_path, "v") == Counter()
    other = Topic(kafka)
    other.send({"key": "1", "value": None, "partition": 0})
    script = script.replace(topic.name, other.name)
    with pytest.raises(PipelineError, match=rf"deletes its key, which only changes 'upsert' takes.*{other.name}"):
        once(spark, tmp_path, script, name="tombstone")


def test_messages_are_read_in_every_format(spark: Any, kafka: str, tmp_path: Path) -> None:
    csv, debezium, signed, plain = (Topic(kafka) for _ in range(4))
    script = f"""
    CREATE STREAMING TABLE a (id INT, name STRING)
      {source(kafka, csv, "values 'csv', values.fields 'op, id, name', values.sep ';', changes 'op'")};
    CREATE STREAMING TABLE b (id INT PRIMARY KEY, qty INT) {source(kafka, debezium, "changes 'debezium-upsert'")};
    CREATE STREAMING TABLE c (id INT, qty INT) {source(kafka, signed, "values 'json', changes 'signed'")};
    CREATE STREAMING TABLE d (line STRING, topic STRING, "offset" BIGINT)
      {source(kafka, plain, "from.line 'value'")};
    CREATE STREAMING TABLE e (b INT) USING text OPTIONS (path 'in', values 'json', from.b 'value.a.b', bad_rows 'bad');
    CREATE MATERIALIZED VIEW ve AS SELECT b FROM e;
    CREATE MATERIALIZED VIEW va AS SELECT id, name FROM a;
    CREATE MATERIALIZED VIEW vb AS SELECT id, qty FROM b;
    CREATE MATERIALIZED VIEW vc AS SELECT id, qty FROM c;
    CREATE MATERIALIZED VIEW vd AS SELECT line, topic, "offset" FROM d;
    """
    csv.send(*({"value": line, "partition": 0} for line in ("insert;1;x", 'insert;2;"y;z"', "delete;1;x")))
    debezium.send(
        {"key": "1", "value": text(op="c", before=None, after={"id": 1, "qty": 5})},
        {"key": "1", "value": text(op="u", before=None, after={"id": 1, "qty": 6})},
        {"key": "2", "value": text(op="c", before=None, after={"id": 2, "qty": 7})},
        {"key": "2", "value": text(op="d", before={"id": 2}, after=None)},
        {"key": "2", "value": None},
    )
    signed.send(*({"value": text(id=1, qty=2, _multiplicity=n), "partition": 0} for n in (3, -1)))
    plain.send({"value": "a line", "partition": 1})
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "lines.txt").write_text('{"a": {"b": 1}}\n{"a": {"b": "x"}}\n')
    once(spark, tmp_path, script.replace('"', "`"))
    assert rows(tmp_path, "va") == Counter([(2, "y;z")])
    assert rows(tmp_path, "vb") == Counter([(1, 6)])
    assert rows(tmp_path, "vc") == Counter({(1, 2): 2})
    assert rows(tmp_path, "vd") == Counter([("a line", plain.name, 0)])
    assert rows(tmp_path, "ve") == Counter([(1,)])
    row = json.loads(next((tmp_path / "bad").iterdir()).read_text())
    assert (Path(row["file"]).name, row["row"], row["column"], row["value"]) == ("lines.txt", 2, "b", "x")


FIELDS = '[{"name": "id", "type": "long"}, {"name": "name", "type": "string"}]'
SCHEMA = f'{{"type": "record", "name": "r", "fields": {FIELDS}}}'


def test_avro_messages_are_read_and_written(spark: Any, kafka: str, tmp_path: Path) -> None:
    if not has(AVRO):
        pytest.skip(f"{AVRO} cannot be fetched from Maven")
    topic = Topic(kafka)
    (tmp_path / "r.avsc").write_text(SCHEMA)
    options = "values 'avro', values.schema 'r.avsc', bad_rows 'bad'"
    script = f"""CREATE STREAMING TABLE t (id BIGINT, name STRING) {source(kafka, topic, options)};
    CREATE MATERIALIZED VIEW v AS SELECT id, name FROM t;"""
    topic.send(*({"value": value, "partition": 0} for value in (b"\x02\x06Ann", b"\x02", b"\x02\x06Ann\x02")))
    once(spark, tmp_path, script)
    assert rows(tmp_path, "v") == Counter([(1, "Ann")])
    bad = [json.loads(line) for line in next((tmp_path / "bad").iterdir()).read_text().splitlines()]
    assert [one["offset"] for one in bad] == [1, 2]
    assert {one["reason"] for one in bad} == {"the value must be Avro of values.schema"}


SINKS = """
CREATE STREAMING TABLE items (part STRING, qty INT, price DECIMAL(9, 2))
  USING json OPTIONS (path 'in', changes 'signed');
CREATE MATERIALIZED VIEW all_changes USING kafka OPTIONS ('kafka.bootstrap.servers' '{kafka}', topic '{one}')
  AS SELECT part, qty FROM items WHERE qty > 1;
CREATE MATERIALIZED VIEW by_part
  USING kafka OPTIONS ('kafka.bootstrap.servers' '{kafka}', topic '{two}', output 'upsert')
  AS SELECT part, SUM(qty) AS qty, SUM(price) AS price FROM items GROUP BY part;
"""


def put(folder: Path, number: int, *items: dict[str, Any]) -> None:
    lines = "".join(json.dumps({"_multiplicity": 1, **item}) + "\n" for item in items)
    (folder / "in").mkdir(exist_ok=True)
    (folder / "in" / f"{number}.json").write_text(lines)


def test_changes_and_upserts_are_delivered_once(spark: Any, kafka: str, tmp_path: Path) -> None:
    one, two = Topic(kafka), Topic(kafka)
    script = SINKS.format(kafka=kafka, one=one.name, two=two.name)
    many = [{"part": f"p{n}", "qty": n, "price": "0.10"} for n in range(40)]
    put(tmp_path, 1, *many, {"part": None, "qty": 1, "price": "0.25"}, {"part": "p2", "qty": 2, "price": "1.10"})
    once(spark, tmp_path, script)
    put(tmp_path, 2, {"part": "p1", "qty": 1, "price": "0.10", "_multiplicity": -1}, {"part": "p3", "qty": 5})
    once(spark, tmp_path, script)

    signed: Counter[tuple[str, int]] = Counter()
    for message in one.messages():
        value = json.loads(message.value())
        assert json.loads(message.key()) == {"part": value["part"], "qty": value["qty"]}
        signed[value["part"], value["qty"]] += value["_multiplicity"]
        assert headers_of(message)["_version"] == str(value["_version"])
    assert signed == rows(tmp_path, "all_changes")
    assert signed["p2", 2] == 2

    state = {message.key(): message.value() for message in two.messages()}
    assert state.pop(text(part="p1")) is None  # a tombstone: all its rows are gone
    assert {tuple(json.loads(value).values()) for value in state.values()} == {
        (part, qty, None if price is None else str(price)) for part, qty, price in rows(tmp_path, "by_part")
    }
    assert json.loads(state[text(part="p2")]) == {"part": "p2", "qty": 4, "price": "1.20"}
    assert json.loads(state[text(part=None)]) == {"part": None, "qty": 1, "price": "0.25"}
    last = [headers_of(message) for message in two.messages() if headers_of(message)["_version"] == "3"]
    assert sorted(last, key=lambda one: one["_row"]) == [
        {"_view": "by_part", "_version": "3", "_row": str(number), "_rows": "2"} for number in range(2)
    ]

    # One pipeline's output topic is the input of another.
    other = f"""CREATE STREAMING TABLE t (part STRING, qty BIGINT, price DECIMAL(9, 2), PRIMARY KEY (part))
      {source(kafka, two, "values 'json', keys 'json', from.part 'key.part', changes 'upsert', bad_rows 'bad'")};
    CREATE MATERIALIZED VIEW v AS SELECT part, qty, price FROM t;"""
    once(spark, tmp_path, other, name="other")
    assert rows(tmp_path, "v", "other") == Counter(row for row in rows(tmp_path, "by_part") if row[0] is not None)

    # Another SELECT with other columns and the same key: vanished keys are withdrawn, all others get new rows.
    again = script.replace("SUM(qty) AS qty, SUM(price) AS price FROM items", "COUNT(*) AS n FROM items WHERE qty > 2")
    once(spark, tmp_path, again)
    state = {message.key(): message.value() for message in two.messages()}
    there = {key: json.loads(value) for key, value in state.items() if value is not None}
    assert state[text(part="p2")] is None and there[text(part="p3")] == {"part": "p3", "n": 2}
    assert {(row["part"], row["n"]) for row in there.values()} == set(rows(tmp_path, "by_part"))


def test_a_partly_sent_version_is_completed(spark: Any, kafka: str) -> None:
    topic = Topic(kafka)
    options = {"kafka.bootstrap.servers": kafka, "topic": topic.name}
    view = ViewSpec("v", "", "kafka", options, "changes", Written(("a",)))
    change = pa.table({"a": list(range(50)), "_multiplicity": [1] * 50})
    committed = time.time()
    whole = messages(view, change, 7)
    for one in whole.to_pylist()[:30]:
        # The messages of a task that was killed, some of a partition, and of another view and version.
        if one["key"] != '{"a": 3}':
            headers = [(header["key"], header["value"]) for header in one["headers"]]
            topic.send({"key": one["key"], "value": one["value"], "headers": headers})
    topic.send({"key": "x", "headers": [("_view", b"v"), ("_version", b"6"), ("_row", b"40")]})
    topic.send({"key": "x", "headers": [("_view", b"w"), ("_version", b"7"), ("_row", b"41")]}, {"key": "no headers"})
    for _ in range(2):
        deliver(spark, view, change, Due(7, True, committed), None)
        found = [message for message in topic.messages() if message.key() not in (b"x", b"no headers")]
        assert sorted(json.loads(message.value())["a"] for message in found) == list(range(50))
        assert {headers_of(message)["_row"] for message in found} == set(map(str, range(50)))


def test_the_error_of_a_failed_sink_names_the_cause(spark: Any, kafka: str) -> None:
    topic = Topic(kafka)
    options = {"kafka.bootstrap.servers": kafka, "topic": "no topic", "kafka.max.block.ms": "3000"}
    view = ViewSpec("v", "", "kafka", options, "upsert", Written(("a",), text=True))
    change = pa.table({"a": ["x"], "_multiplicity": [1]})
    with pytest.raises(SinkError, match=r"view v, version 3: no topic did not take it: .*[Tt]opic"):
        deliver(spark, view, change, Due(3), None)
    good = ViewSpec("v", "", "kafka", {**options, "topic": topic.name}, "upsert", Written(("a",), text=True))
    twice = pa.table({"a": ["x", "x"], "b": [1, 2], "_multiplicity": [1, 1]})
    with pytest.raises(SinkError, match=r"several rows have the key \{'a': 'x'\}; set output 'changes'"):
        deliver(spark, good, twice, Due(3), None)
    with pytest.raises(SinkError, match="NULL in its key a, which cannot be written as text; set keys 'json'"):
        deliver(spark, good, pa.table({"a": pa.array([None], pa.string()), "_multiplicity": [1]}), Due(3), None)
    assert topic.messages() == []
    deliver(spark, good, change, Due(3), None)
    (message,) = topic.messages()
    assert (message.key(), message.value()) == (b"x", b'{"a": "x"}')


def test_a_refusing_sink_delays_no_other_sink(
    spark: Any, kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    one, two = Topic(kafka), Topic(kafka)
    monkeypatch.setattr(delivery, "WAITS", (0.1,))
    script = SINKS.format(kafka=kafka, one="no topic', kafka.max.block.ms '2000", two=two.name)
    put(tmp_path, 1, {"part": "p", "qty": 5}, {"part": "q", "qty": 6})
    with pytest.raises(SinkError, match=r"view all_changes, version 2: no topic did not take it: .*[Ii]nvalid topic"):
        once(spark, tmp_path, script)
    assert len(two.messages()) == 2
    assert [record.getMessage() for record in caplog.records if "trying again" in record.getMessage()]
    found = status(store_of(tmp_path / "shop.checkpoint"), read_script(script, tmp_path))
    assert found.sinks["all_changes"] == {"backlog": 1, "failures": 2}
    assert found.sinks["by_part"] == {"backlog": 0, "failures": 0}
    assert list(found.refused) == ["all_changes"] and "nvalid topic" in found.refused["all_changes"]
    once(spark, tmp_path, SINKS.format(kafka=kafka, one=one.name, two=two.name))
    assert (len(one.messages()), len(two.messages())) == (2, 2)
    assert status(store_of(tmp_path / "shop.checkpoint")).refused == {}


PAGE = Path(__file__).parents[2] / "docs" / "connectors" / "kafka.md"


@pytest.mark.full
@pytest.mark.long("two pipelines in processes of their own, of which one asks Maven for its connector")
@pytest.mark.kills
def test_the_kafka_example_survives_a_kill_between_sinks(kafka: str, tmp_path: Path) -> None:
    """Script, commands and reader of the page. It is killed when only one of two sinks has its version."""
    blocks = dict(re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL))
    orders, by_cust, dear = (Topic(kafka) for _ in range(3))
    script = blocks["sql"]
    for name, topic in (("subscribe 'orders'", orders), ("topic 'by_cust'", by_cust), ("topic 'dear'", dear)):
        assert name in script
        script = script.replace(name, f"{name.partition(' ')[0]} '{topic.name}'")
    (tmp_path / "shop.sql").write_text(script)
    run, query = blocks["sh"].splitlines()
    assert run.endswith(KAFKA_CONNECTOR) and shlex.split(run)[0] == shlex.split(query)[0] == "freshviews"

    def freshviews(line: str, fault: Fault | None = None) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-m", "freshviews.cli", *shlex.split(line)[1:]]
        given = environment(fault) | {"KAFKA": kafka}
        return subprocess.run(words, cwd=tmp_path, env=given, capture_output=True, text=True, timeout=300)

    values = [text(customer={"id": f"c{n % 7}"}, total=f"{n}.50") for n in range(140)]
    orders.send(*({"key": str(n), "value": value} for n, value in enumerate(values)))
    orders.send({"key": "139", "value": None}, {"key": "140", "value": "nonsense"})
    fault = Fault(tmp_path / "fault")
    fault.plan("sink written", "kill", "driver")
    killed = freshviews(run, fault)
    assert (killed.returncode, fault.met) == (-signal.SIGKILL, True), killed.stderr
    assert (len(by_cust.messages()), len(dear.messages())) == (7, 0)
    # Without asking Maven a second time, which takes long.
    done = freshviews(f"{run.partition(' --packages')[0]} --conf {shlex.quote('='.join(*spark_jars().items()))}")
    assert done.returncode == 0, done.stderr
    assert (len(by_cust.messages()), len(dear.messages())) == (7, 39)
    assert {headers_of(message)["_rows"] for message in dear.messages()} == {"39"}

    shown = freshviews(query)
    assert [line.split() for line in shown.stdout.splitlines()[1:]] == [
        [f"c{n}", str(len(range(n, 139, 7))), f"{sum(range(n, 139, 7)) + len(range(n, 139, 7)) * Decimal('0.5'):.2f}"]
        for n in range(7)
    ]
    (bad,) = [json.loads(line) for file in (tmp_path / "bad").iterdir() for line in file.read_text().splitlines()]
    assert (bad["topic"], bad["input"]["o_id"]) == (orders.name, "140")

    reader = blocks["python"].replace("localhost:9092", kafka).replace("poll(10)", "poll(5)")
    scope: dict[str, Any] = {}
    # Messages of a version are repeated, as after a repeated task.
    again = [message for message in dear.messages() if message.partition() == 1]
    dear.send(*({"key": m.key(), "value": m.value(), "headers": m.headers(), "partition": 1} for m in again))
    exec(reader.replace('"dear"', f'"{dear.name}"'), scope)
    assert scope["contents"] == Counter({(n, f"c{n % 7}", f"{n}.50"): 1 for n in range(100, 139)})
