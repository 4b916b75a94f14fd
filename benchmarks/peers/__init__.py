"""The peers, one per file; ``benchmarks.measuring.strategies`` lists them by name."""
