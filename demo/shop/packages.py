"""The packages that Spark needs for the demo. docs/connectors/README.md names the releases of Spark that were
tested."""

KAFKA_CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.1"
POSTGRES = "org.postgresql:postgresql:42.7.14"
DELTA = "io.delta:delta-spark_4.1_2.13:4.4.0"
