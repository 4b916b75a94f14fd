"""IVM^eps: strategies that treat heavy values (many rows) and light values (few rows) differently.

- ``ivm_eps`` defines the strategies. ``program.heavy_light`` defines heavy and light.
- ``triangle`` and ``triangle_linear`` maintain counts and sums over three relations, ``four_relations`` over four.
- ``triangle_listing`` lists the rows of a triangle join, ``hierarchical`` the rows of hierarchical queries.
- ``cases`` writes programs from tables of cases. ``cycle`` does so for three relations that form a cycle.
"""

__all__ = ["four_relations", "hierarchical", "ivm_eps", "triangle", "triangle_linear", "triangle_listing"]
