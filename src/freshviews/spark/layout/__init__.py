"""How a pipeline is split: its cells, the merge, and the measured sizes they are chosen by."""

__all__ = ["cell_count", "layout", "measure", "one_cell"]
