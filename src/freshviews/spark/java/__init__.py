"""Finds and starts Java for Spark, and archives Spark's classes so that later starts are faster."""

from freshviews.spark.java.program import ACCEPTED, JavaError, JavaOutput, java_home, java_process, stand_in, version_of

__all__ = [
    "ACCEPTED",
    "JavaError",
    "JavaOutput",
    "class_archive",
    "java_home",
    "java_process",
    "stand_in",
    "version_of",
]
