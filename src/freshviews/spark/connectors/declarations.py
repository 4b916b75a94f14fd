"""Describes each source and sink of Spark that freshviews knows: its options, its columns, the package to install.

The options of any other source or sink are passed to Spark unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field

from freshviews.errors import short
from freshviews.records import dataclass
from freshviews.spark.connectors.secrets import server_of, without_secrets

FILES, MESSAGES, TABLES, MERGES, OTHER = "files", "messages", "tables", "merges", "other"
"""The kinds of connectors."""
SECONDS = 5
"""Seconds in which a server must answer a probe."""

CHANGES, COMPLETE, UPSERT = "changes", "complete", "upsert"
OUTPUTS = (CHANGES, COMPLETE, UPSERT)
"""How a view is delivered: its changes, its contents, or each change as the new row of its key."""


@dataclass(frozen=True)
class Merging:
    """How a table with MERGE is named, and how it records its version.

    ``target``: its name in SQL, of its path. ``commits``: settings of a session under which its commits carry a note;
    ``{note}``, ``{owner}`` and ``{version}`` stand for values. ``notes``: a query of the notes that the commits of
    ``{target}`` carry, the latest first, and the column that they are in.
    """

    target: str
    commits: Mapping[str, str]
    notes: tuple[str, str]


@dataclass(frozen=True)
class Connector:
    """A source and sink of Spark.

    ``path``: it needs an option of this name. ``files``: its rows name their file. ``text``: rows are parsed from text.
    ``messages``: its rows are messages with a key and a value. ``tables``: it is a table of a database: its rows are
    read as they are when a run begins, and written in transactions. ``merging``: it is a table with MERGE. ``named``:
    its path is the name of a table, not a place. ``outputs``: the outputs that its sink accepts. ``reading``,
    ``writing``: needed options, one of each group. ``given``: options of reading that are passed unless the user names
    them. ``refused``: values of options under which rows would be lost, with the reason and the remedy. ``place`` and
    ``at``: the columns that give the origin of a row; the last one is its number there. ``package``: the Maven package
    to load, without its version; ``{spark}`` stands for the release of Spark. ``settings``: of a session, unless the
    user gives others.
    """

    path: bool = False
    files: bool = False
    text: bool = False
    messages: bool = False
    tables: bool = False
    merging: Merging | None = None
    named: bool = False
    outputs: tuple[str, ...] = (CHANGES, COMPLETE)
    reading: tuple[tuple[str, ...], ...] = ()
    writing: tuple[tuple[str, ...], ...] = ()
    given: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[tuple[str, str], str] = field(default_factory=dict)
    place: tuple[str, ...] = ()
    at: str | None = None
    package: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def keeps(self) -> bool:
        """True if its sink keeps a table, which has to have every version of its view."""
        return self.tables or self.merging is not None

    @property
    def kind(self) -> str:
        """Files of a folder, messages of a broker, tables of a database, a table with MERGE, or another one."""
        merges = self.merging is not None
        kinds = ((self.messages, MESSAGES), (self.tables, TABLES), (merges, MERGES), (self.path, FILES))
        return next((kind for holds, kind in kinds if holds), OTHER)


_OF_FILES = {
    ("ignoreCorruptFiles", "true"): (
        "the rows of a file that cannot be read would be lost unnoticed; leave it out, and mend the file"
    ),
    ("ignoreMissingFiles", "true"): (
        "the rows of a file that was deleted before it was read would be lost unnoticed; leave it out, and keep files "
        "until a version has them"
    ),
    ("mode", "dropmalformed"): (
        "bad rows would be lost unnoticed; leave it out, and set them aside with bad_rows 'folder'"
    ),
}

_SKIPPED = "changes of rows would be lost unnoticed; leave it out, and {}"
_OF_DELTA = _SKIPPED.format("read the change feed of the table (readChangeFeed 'true', changes 'delta')")
_OF_ICEBERG = _SKIPPED.format("read the table with changes 'snapshot'")

CONNECTORS: Mapping[str, Connector] = {
    "csv": Connector(path=True, files=True, text=True, refused=_OF_FILES),
    "json": Connector(path=True, files=True, text=True, refused=_OF_FILES),
    "parquet": Connector(path=True, files=True, refused=_OF_FILES),
    "orc": Connector(path=True, files=True, refused=_OF_FILES),
    "text": Connector(path=True, files=True, refused=_OF_FILES),
    "avro": Connector(path=True, package="org.apache.spark:spark-avro_2.13"),
    "jdbc": Connector(
        tables=True,
        outputs=OUTPUTS,
        reading=(("url",), ("dbtable", "query")),
        writing=(("url",), ("dbtable",)),
        # Without it, times without a zone are read in the zone of Java, others in UTC.
        given={"preferTimestampNTZ": "true"},
    ),
    "delta": Connector(
        path=True,
        merging=Merging(
            "delta.`{}`",
            {
                "spark.databricks.delta.commitInfo.userMetadata": "{note}",
                # A version that another process commits meanwhile is not committed a second time.
                "spark.databricks.delta.write.txnAppId": "{owner}",
                "spark.databricks.delta.write.txnVersion": "{version}",
            },
            ("DESCRIBE HISTORY {target}", "userMetadata"),
        ),
        outputs=OUTPUTS,
        refused={
            ("ignoreChanges", "true"): _OF_DELTA,
            ("ignoreDeletes", "true"): _OF_DELTA,
            ("skipChangeCommits", "true"): _OF_DELTA,
            ("failOnDataLoss", "false"): (
                "commits that were deleted before they were read would be lost unnoticed; leave it out, and keep the "
                "log of the table for longer than the pipeline may stand still"
            ),
        },
        package="io.delta:delta-spark_{spark}_2.13",
        settings={
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            # Of 50 partitions most are empty for a table of usual size, and each is a task whenever the table is read.
            "spark.databricks.delta.snapshotPartitions": "2",
        },
    ),
    "iceberg": Connector(
        merging=Merging(
            "{}",
            {"spark.sql.iceberg.snapshot-property.freshviews": "{note}"},
            ("SELECT summary['freshviews'] AS note FROM {target}.snapshots ORDER BY committed_at DESC", "note"),
        ),
        named=True,
        outputs=OUTPUTS,
        reading=(("path",),),
        writing=(("path",),),
        refused={
            ("streaming-skip-overwrite-snapshots", "true"): _OF_ICEBERG,
            ("streaming-skip-delete-snapshots", "true"): _OF_ICEBERG,
        },
        package="org.apache.iceberg:iceberg-spark-runtime-{spark}_2.13",
    ),
    "kafka": Connector(
        messages=True,
        outputs=(CHANGES, UPSERT),
        reading=(("kafka.bootstrap.servers",), ("subscribe", "subscribePattern", "assign")),
        writing=(("kafka.bootstrap.servers",), ("topic",)),
        # By default Spark begins with the messages after the start, and reads those of aborted transactions, too. It
        # reads up to existing offsets; the client then asks for later messages, and its next request waits for that
        # answer: half a second per partition, unless the broker waits less.
        given={
            "startingOffsets": "earliest",
            "kafka.isolation.level": "read_committed",
            "kafka.fetch.max.wait.ms": "10",
        },
        refused={
            ("failOnDataLoss", "false"): (
                "messages that Kafka deleted before they were read would be lost unnoticed; leave it out, and keep "
                "messages in the topic for longer than the pipeline may stand still"
            )
        },
        place=("topic", "partition"),
        at="offset",
        package="org.apache.spark:spark-sql-kafka-0-10_2.13",
    ),
}

_OTHER = Connector()


def connector_of(provider: str | None) -> Connector:
    """The declaration of a source or sink; an empty one if there is none."""
    return CONNECTORS.get((provider or "").lower(), _OTHER)


def remedy(message: str, providers: Iterable[str | None]) -> str:
    """The remedy, if a message of Spark reports missing classes of one of these; otherwise empty."""
    driver = next((package for name, package in DRIVERS.values() if message.split()[-1:] == [name]), None)
    if driver is not None:
        return f", the driver, is not loaded; start with --packages {driver}:VERSION"
    catalog = "PLUGIN_CLASS_NOT_FOUND" in message
    if catalog or "DATA_SOURCE_NOT_FOUND" in message or "DATA_SOURCE_NOT_ENABLED" in message:
        for connector in map(connector_of, providers):
            if connector.package is not None and (connector.merging is not None or not catalog):
                package = connector.package.format(spark=_release())
                return f"; start with --packages {package}:VERSION, if there is one"
    return ""


def _release() -> str:
    """The release of Spark that runs, as in the names of packages."""
    import pyspark

    return ".".join(pyspark.__version__.split(".")[:2])


def value_of(options: Mapping[str, str], name: str) -> str:
    """The value of an option, whose name is written in any case; empty if it is not given."""
    return next((value for known, value in options.items() if known.lower() == name.lower()), "")


_WHAT = ("path", "topic", "dbtable", "query", "subscribe", "subscribePattern", "assign")
"""Options that name the object that is read or written, at a server or on a disk."""


def place_of(provider: str | None, options: Mapping[str, str]) -> str:
    """The place that a source or sink reads or writes, without secrets: ``jdbc items at localhost:5432/shop``."""
    what = next((value for value in (value_of(options, name) for name in _WHAT) if value), "")
    url = value_of(options, "url")
    server = server_of(url) if url else without_secrets(value_of(options, "kafka.bootstrap.servers"), options)
    words = [str(provider), short(without_secrets(what, options)), f"at {server}" if server else ""]
    return " ".join(word for word in words if word)


def is_folder(path: str) -> bool:
    """True if a path names a folder or a file of this machine, without wildcards."""
    return "://" not in path and not any(char in path for char in "*?[{")


def lacking(options: Mapping[str, str], needed: tuple[tuple[str, ...], ...]) -> tuple[str, ...] | None:
    """A group of needed options of which none is given; None if there is no such group."""
    given = {name.lower() for name in options}
    return next((group for group in needed if given.isdisjoint(name.lower() for name in group)), None)


def refusal(connector: Connector, options: Mapping[str, str]) -> tuple[str, str] | None:
    """The name of an option with a refused value, as written, and the reason; None if all are accepted."""
    refused = {(name.lower(), value): reason for (name, value), reason in connector.refused.items()}
    for name, value in options.items():
        reason = refused.get((name.lower(), value.strip().lower()))
        if reason is not None:
            return name, reason
    return None


def with_given(connector: Connector, options: Mapping[str, str]) -> dict[str, str]:
    """The options of reading, with the connector's defaults for options that the user does not name."""
    named = {name.lower() for name in options}
    return {**{name: value for name, value in connector.given.items() if name.lower() not in named}, **options}


DRIVERS = {
    "jdbc:postgresql:": ("org.postgresql.Driver", "org.postgresql:postgresql"),
    "jdbc:mysql:": ("com.mysql.cj.jdbc.Driver", "com.mysql:mysql-connector-j"),
    "jdbc:mariadb:": ("org.mariadb.jdbc.Driver", "org.mariadb.jdbc:mariadb-java-client"),
    "jdbc:h2:": ("org.h2.Driver", "com.h2database:h2"),
}
"""The driver of an address, and its package of Maven. Java needs the name if --packages loads it."""


def with_driver(options: Mapping[str, str]) -> dict[str, str]:
    """The options of a database, with the driver of its address unless the user names one. Names stay as they are
    written: options that Spark does not know go to the driver."""
    known = [driver for start, (driver, _) in DRIVERS.items() if value_of(options, "url").startswith(start)]
    return {**options, **({"driver": known[0]} if known and not value_of(options, "driver") else {})}


_TIMEOUTS = {
    "jdbc:postgresql:": ("loginTimeout", "socketTimeout", 1),
    "jdbc:mysql:": ("connectTimeout", "socketTimeout", 1000),
    "jdbc:mariadb:": ("connectTimeout", "socketTimeout", 1000),
}
"""By the address: the properties of a driver that limit the time for a connection and for an answer, and their units in
a second."""


def with_timeouts(options: Mapping[str, str], login: int, answer: int) -> dict[str, str]:
    """The options of a database, with timeouts of ``login`` seconds for a connection and ``answer`` seconds for each
    answer, if the driver is known and neither the options nor the address set these properties."""
    url = value_of(options, "url")
    found = next((own for start, own in _TIMEOUTS.items() if url.startswith(start)), None)
    if found is None:
        return dict(options)
    named = {found[0]: login * found[2], found[1]: answer * found[2]}
    free = [name for name in named if not value_of(options, name) and f"{name}=".lower() not in url.lower()]
    return {**options, **{name: str(named[name]) for name in free}}
