"""Stage 4: a bound SELECT to a block. Predicates placed, variables made, sums as products of lifts."""

__all__ = ["block_of_select", "narrowing", "text_parts", "variables"]
