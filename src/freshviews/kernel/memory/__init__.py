"""Memory by address: words, mapped files, radix sort, and kernels that are called by name."""

__all__ = ["collection", "mapping", "mem", "outside", "row_sort", "triggers"]
