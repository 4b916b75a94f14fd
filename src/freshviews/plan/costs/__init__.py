"""The cost of an update under a program, computed from assumed degrees or from degrees that the engine measures.

``cost`` walks the triggers. ``origins`` finds the relation from which each value in a view comes. ``degrees`` defines
the statistics of the data. ``comparison`` computes the cost of each strategy for a block. ``lanes`` divides a trigger
into parts that may run at the same time.
"""

__all__ = ["comparison", "cost", "degrees", "lanes"]
