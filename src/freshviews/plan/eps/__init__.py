"""IVM^eps: strategies that treat heavy values (many rows) and light values (few rows) differently.

``program.heavy_light`` defines heavy, light, the threshold N^eps and rebalancing.

- ``triangle``, ``triangle_linear``: counts and sums over three relations; ``four_relations``: over four;
  ``triangle_listing``: rows of a triangle join. These modules are tables of cases, from which ``cases`` writes
  programs;
- ``hierarchical``: rows of hierarchical queries over a variable order (``tree``).

``ivm_eps`` makes the strategies ``ivm_eps`` and ``ivm_eps_linear`` from these modules. ``cycle`` finds the cycle that
three relations form.
"""

__all__ = ["four_relations", "hierarchical", "ivm_eps", "triangle", "triangle_linear", "triangle_listing"]
