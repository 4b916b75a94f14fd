"""The Java that Spark runs on: finding and starting it, and an archive by which it starts sooner."""

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
