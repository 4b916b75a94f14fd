"""SQL text to trees: parsing, places in the text, type names, and clauses that are refused."""

__all__ = ["parse", "refuse", "terms", "typenames"]
