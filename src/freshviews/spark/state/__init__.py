"""State outside Spark: images and logs of cells, manifests, the checkpoint folder."""

__all__ = ["arrow_files", "cell", "cell_image", "checkpoint", "manifest", "runs"]
