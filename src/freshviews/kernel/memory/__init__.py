"""Words of memory: load and store by address, mapped files, radix sort, kernels that are called by name."""

__all__ = ["collection", "mapping", "mem", "outside", "row_sort", "triggers"]
