"""Measures the sizes of tables, to decide how cells share the rows of a pipeline and which results are merged."""

__all__ = ["cell_count", "layout", "measure", "one_cell"]
