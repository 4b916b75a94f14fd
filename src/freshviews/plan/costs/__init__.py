"""The cost of an update under a program, computed from degrees: assumed ones, or those that the engine measures.

``cost`` walks the triggers, ``origins`` says from which relation each value in a view comes, ``degrees`` what is asked
of the data, and ``comparison`` has the cost of each strategy for a block. ``lanes`` divides a trigger into parts that
may run at the same time.
"""

__all__ = ["comparison", "cost", "degrees", "lanes"]
