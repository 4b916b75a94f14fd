"""Words of memory by address: loads and stores, mapped files, sorting, and functions that compiled code calls."""

__all__ = ["mapping", "mem", "outside", "row_sort"]
