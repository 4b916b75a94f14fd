"""What is measured of tables and views: the cost of updates, and which plan would be cheaper.

``samples`` draws rows, ``degrees`` counts among them what ``plan.costs`` asks for, ``replanning`` weighs join trees and
strategies.
"""

__all__ = ["degrees", "replanning", "samples"]
