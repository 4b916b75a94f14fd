"""Runs projects of Spark's declarative pipelines (``spark-pipeline.yml``), and maintains their materialized views.

The modules work in this order::

    spec ─> registry ─> graph ──────────────> views ──────────────────> project
            Python      Spark's own classes   script of the views        runs Spark's part,
            and SQL     parse and resolve      that can be maintained    then the pipeline
"""

__all__ = ["example", "graph", "lost_rows", "project", "registry", "spec", "state", "views"]
