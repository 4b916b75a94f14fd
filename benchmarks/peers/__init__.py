"""What runs beside freshviews, one peer per file; ``benchmarks.strategies`` lists them by name."""
