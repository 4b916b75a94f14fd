"""IVM^eps: strategies that treat values with many rows (heavy) and with few rows (light) apart.

``program.heavy_light`` defines heavy, light, the threshold N^eps and rebalancing.

- ``triangle``, ``triangle_linear``: counts and sums over three relations. Tables of cases; ``pairs`` writes programs;
- ``four_relations``, ``triangle_listing``: counts over four relations, rows of a triangle join. Tables of cases; the
  module ``cases`` writes programs;
- ``hierarchical``: rows of hierarchical queries over a variable order (``tree``).

``strategy`` makes the strategies ``ivm_eps`` and ``ivm_eps_linear`` of them. ``cycle`` finds the order of three
relations. ``statements`` has the statements that all of them write.
"""

__all__ = ["four_relations", "hierarchical", "strategy", "triangle", "triangle_linear", "triangle_listing"]
