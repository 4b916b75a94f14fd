"""Settings of Spark: those of the user override ours."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from freshviews.spark.connectors.declarations import connector_of, with_given
from freshviews.spark.settings import FIXED, OURS, SettingError, defaults_of, merge_settings, packages_with, settings_of

PARTITIONS = "spark.sql.shuffle.partitions"
DEFAULTS = """# of this machine
spark.ui.enabled   true
spark.sql.shuffle.partitions=7
spark.executor.extraJavaOptions: -Da=b -Dc

! no setting
spark.empty
"""


def test_settings_of_the_user_override_the_settings_of_freshviews(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text(DEFAULTS)
    (tmp_path / "other").mkdir()
    nothing = tmp_path / "nothing"
    assert merge_settings({}, defaults_of({}, nothing)) == OURS | FIXED
    # Spark reads its file by itself: its settings are not passed again.
    kept = {name: value for name, value in OURS.items() if name not in ("spark.ui.enabled", PARTITIONS)}
    assert merge_settings({}, defaults_of({}, tmp_path)) == kept | FIXED
    assert merge_settings({}, defaults_of({"SPARK_HOME": str(tmp_path)}, nothing)) == kept | FIXED
    assert merge_settings({}, defaults_of({"SPARK_CONF_DIR": str(tmp_path / "conf")}, nothing)) == kept | FIXED
    assert merge_settings({}, defaults_of({"SPARK_CONF_DIR": str(tmp_path / "other")}, tmp_path)) == OURS | FIXED
    given = {PARTITIONS: "3", "spark.x": "y"}
    assert merge_settings(given, defaults_of({}, tmp_path)) == kept | FIXED | given
    # --master, which SET and --conf overrode.
    assert merge_settings({"spark.master": "yarn"}, {}, "local[2]")["spark.master"] == "local[2]"
    assert merge_settings({"spark.master": "yarn"}, {})["spark.master"] == "yarn"


def test_options_of_kafka_pass_through_except_the_isolation_level() -> None:
    given = {"subscribe": "orders", "KAFKA.fetch.max.wait.ms": "700", "startingOffsets": "latest"}
    passed = with_given(connector_of("kafka"), given)
    assert passed == {**given, "kafka.isolation.level": "read_committed"}
    assert with_given(connector_of("Kafka"), {})["kafka.fetch.max.wait.ms"] == "10"
    assert with_given(connector_of("rate"), {"rowsPerSecond": "1"}) == {"rowsPerSecond": "1"}


def test_unsupported_settings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="timeZone is Europe/Vienna; it must be UTC"):
        merge_settings({"spark.sql.session.timeZone": "Europe/Vienna"}, {})
    ignored = "spark.sql.files.ignoreCorruptFiles"
    with pytest.raises(SettingError, match=r"ignoreCorruptFiles is True; it must be false: .* mend the file"):
        merge_settings({ignored: "True"}, {})
    assert merge_settings({ignored: "FALSE"}, {ignored: "true"})[ignored] == "false"
    (tmp_path / "spark-defaults.conf").mkdir()
    with pytest.raises(SettingError, match=r"spark-defaults\.conf cannot be read: Is a directory"):
        defaults_of({"SPARK_CONF_DIR": str(tmp_path)}, tmp_path)
    for words, message in (
        (["spark.ui.enabled"], "--conf spark.ui.enabled: NAME=VALUE is accepted"),
        (["=3"], "--conf =3: NAME=VALUE"),
        (["spark.a=1", "spark.a=2"], "gives spark.a two values, 1 and 2"),
    ):
        with pytest.raises(SettingError, match=message):
            settings_of(words)
    with pytest.raises(SettingError, match="--packages spark-avro: write GROUP:NAME:VERSION"):
        packages_with({}, "spark-avro")


@pytest.mark.spark
@pytest.mark.full
def test_invalid_values_of_spark_settings_are_refused(spark: Any) -> None:
    from freshviews.spark.session import check_values

    check_values({PARTITIONS: "3", "spark.sql.catalog.lake": "x", "spark.ui.enabled": "maybe"})
    with pytest.raises(SettingError, match=r"spark.sql.shuffle.partitions is abc: .*'int' value"):
        check_values({PARTITIONS: "abc"})


def test_the_conf_and_packages_options_become_settings() -> None:
    assert settings_of(["a=b=c", " d = e "]) == {"a": "b=c", "d": "e"}
    assert packages_with({"a": "b"}, None) == {"a": "b"}
    more = packages_with({"spark.jars.packages": "g:n:1"}, "g:m:2, g:o:3")
    assert more == {"spark.jars.packages": "g:n:1,g:m:2,g:o:3"}


SCRIPT = """SET spark.jars.repositories = ${REPOSITORY};
SET spark.sql.shuffle.partitions = 5;
CREATE STREAMING TABLE t (a INT) USING json OPTIONS (path 'in');
CREATE MATERIALIZED VIEW v USING json OPTIONS (path 'out') AS SELECT a, COUNT(*) AS n FROM t GROUP BY a
"""
SEEN = """
import sys
from freshviews.cli.main import app
from freshviews.spark import pipeline

start = pipeline.Pipeline.start

def record(self, **options):
    conf, jars = self._spark.conf, self._spark.sparkContext._jsc.sc().listJars().mkString(" ")
    names = ("spark.sql.shuffle.partitions", "spark.ui.enabled", "spark.jars.packages", "spark.from.file")
    print([conf.get(name, None) for name in names], "one-1.0.jar" in jars, file=sys.stderr)
    return start(self, **options)

pipeline.Pipeline.start = record
app()
"""


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.long("Spark starts, and a worker compiles a view with nothing in the cache")
def test_a_run_uses_settings_and_packages(tmp_path: Path) -> None:
    """A Maven package is loaded; settings come from Spark's file, the script and the command."""
    pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")
    from tests.spark.faults import environment

    place = tmp_path / "maven" / "org" / "example" / "one" / "1.0"
    place.mkdir(parents=True)
    coordinates = "<groupId>org.example</groupId><artifactId>one</artifactId><version>1.0</version>"
    (place / "one-1.0.pom").write_text(f"<project><modelVersion>4.0.0</modelVersion>{coordinates}</project>")
    with zipfile.ZipFile(place / "one-1.0.jar", "w") as jar:
        jar.writestr("one.txt", "1")
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("spark.ui.enabled true\nspark.from.file yes\n")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"a": 1}\n{"a": 1}\n')
    (tmp_path / "v.sql").write_text(SCRIPT)
    given = environment() | {
        "REPOSITORY": (tmp_path / "maven").as_uri(),
        "SPARK_CONF_DIR": str(tmp_path / "conf"),
    }
    words = ["run", "v.sql", "--once", "--master", "local[2]", "--packages", "org.example:one:1.0"]
    words += ["--conf", "spark.master=yarn", "--conf", "spark.ui.port=0"]
    words += ["--conf", f"spark.jars.ivy={tmp_path / 'ivy'}"]
    done = subprocess.run(
        [sys.executable, "-c", SEEN, *words], cwd=tmp_path, env=given, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "['5', 'true', 'org.example:one:1.0', 'yes'] True" in done.stderr
    rows = [json.loads(line) for file in (tmp_path / "out").glob("*.json") for line in file.read_text().splitlines()]
    assert [(row["a"], row["n"]) for row in rows] == [(1, 2)]
