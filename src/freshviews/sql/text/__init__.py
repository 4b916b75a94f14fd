"""SQL text to trees: parsing, places in the text, type names, and clauses that are refused."""

__all__ = ["fields", "parse", "refuse", "terms", "typenames"]
