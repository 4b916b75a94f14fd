"""The cost of an update under a program, computed from degrees: assumed ones, or those that the engine measures.

``cost`` walks the triggers, ``origins`` says from which relation each value in a view comes, ``degrees`` what is asked
of the data, and ``comparison`` has the cost of each strategy for a block.
"""

__all__ = ["comparison", "cost", "degrees"]
