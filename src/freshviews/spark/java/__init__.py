"""Finds and starts the Java that Spark runs on, and archives its classes for faster starts."""

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
