"""Decides how a pipeline is split: its cells and its merge, chosen by measured sizes."""

__all__ = ["cell_count", "layout", "measure", "one_cell"]
