"""The incremental leapfrog triejoin: its steps, sensitivity indices, change oracle and maintenance."""

__all__ = ["filters", "intervals", "leapfrog", "maintain", "oracle", "sensitivity"]
