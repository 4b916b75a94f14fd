"""Decides how a pipeline is divided into cells and a merge, by measured sizes."""

__all__ = ["cell_count", "layout", "measure", "one_cell"]
