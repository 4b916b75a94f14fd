"""State outside Spark: images and logs of cells, manifests, and the stores of checkpoints."""

__all__ = [
    "begun", "bundle", "calls", "cell", "cell_image", "checkpoint", "delivered", "growth", "identity",
    "image_files", "manifest", "probe", "runs", "spark_files", "stores",
]  # fmt: skip
