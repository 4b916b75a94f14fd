"""Pages and charts of docs/, and the table of README.md, generated from benchmarks/results.

``pages`` writes them. ``figures`` computes medians and ratios, ``tables`` and ``verdicts`` write Markdown,
``comparison`` and ``curves`` choose what ``charts`` draws, ``headlines`` are the ratios of README.md.
"""

__all__ = ["charts", "comparison", "curves", "figures", "headlines", "pages", "tables", "verdicts"]
