"""IVM^eps: strategies that treat heavy values (many rows) and light values (few rows) differently.

- ``ivm_eps`` makes the strategies; ``program.heavy_light`` defines heavy and light.
- ``triangle``, ``triangle_linear``: counts and sums over three relations; ``four_relations``: over four.
- ``triangle_listing``: the rows of a triangle join; ``hierarchical``: the rows of hierarchical queries.
- ``cases`` writes programs from tables of cases; ``cycle`` finds the cycle that three relations form.
"""

__all__ = ["four_relations", "hierarchical", "ivm_eps", "triangle", "triangle_linear", "triangle_listing"]
