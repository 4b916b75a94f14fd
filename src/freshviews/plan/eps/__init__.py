"""IVM^eps: values with many rows (heavy) and few rows (light) are maintained apart."""

__all__ = ["four", "hierarchical", "linear", "listing", "three"]
