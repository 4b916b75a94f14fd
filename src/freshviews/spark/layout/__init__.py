"""Decides, by the sizes of tables, how cells share the rows of a pipeline and which results of cells are merged."""

__all__ = ["cell_count", "layout", "measure", "one_cell"]
