"""IVM^eps: values with many rows (heavy) and few rows (light) are maintained apart."""

__all__ = ["four_relations", "hierarchical", "triangle", "triangle_linear", "triangle_listing"]
