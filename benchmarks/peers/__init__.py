"""What runs beside freshviews, one peer per file; ``benchmarks.measuring.strategies`` lists them by name."""
