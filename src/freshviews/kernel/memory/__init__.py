"""Reads and writes memory by address, maps files, and sorts rows.

Also lets compiled code call functions by name or by address.
"""

__all__ = ["collection", "mapping", "mem", "outside", "row_sort", "triggers"]
