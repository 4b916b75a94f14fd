"""Steps counted in compiled programs, instead of seconds: they are the same on every machine."""

__all__ = ["cyclic_steps", "eps_steps", "moves", "slice_intersections", "steps", "worst_cases"]
