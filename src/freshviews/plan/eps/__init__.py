"""IVM^eps: strategies that treat values with many rows (heavy) and with few rows (light) apart.

``program.heavy_light`` defines heavy, light, the threshold N^eps and rebalancing.

- ``triangle``, ``triangle_linear``: counts and sums over three relations; ``four_relations``: over four;
  ``triangle_listing``: rows of a triangle join. These are tables of cases, and ``cases`` writes the programs;
- ``hierarchical``: rows of hierarchical queries over a variable order (``tree``).

``ivm_eps`` makes the strategies ``ivm_eps`` and ``ivm_eps_linear`` of them. ``cycle`` finds the order of three
relations.
"""

__all__ = ["four_relations", "hierarchical", "ivm_eps", "triangle", "triangle_linear", "triangle_listing"]
