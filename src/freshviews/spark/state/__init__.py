"""Stores the state of a pipeline outside Spark, in a folder or an object store.

The state of a cell is an image of its engine and a log of later changes. A manifest names all files of a version.
"""

__all__ = [
    "begun", "bundle", "calls", "cell", "cell_image", "checkpoint", "delivered", "growth", "identity",
    "image_files", "manifest", "probe", "runs", "spark_files", "stores",
]  # fmt: skip
