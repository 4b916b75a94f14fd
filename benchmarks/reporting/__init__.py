"""Pages and pictures of docs/, generated from benchmarks/results."""

__all__ = ["curves", "eps_curves", "plots", "report"]
