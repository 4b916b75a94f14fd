"""State outside Spark: images and logs of cells, manifests, the checkpoint folder."""

__all__ = ["bundle", "cell", "cell_image", "checkpoint", "image_files", "manifest", "runs", "spark_files", "stores"]
