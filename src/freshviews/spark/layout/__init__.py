"""How a pipeline is split: its cells, the merge, and the measured sizes by which both are chosen."""

__all__ = ["cell_count", "layout", "measure", "one_cell"]
