"""Shows how N cells would share the rows of a pipeline, for ``freshviews explain --cells N``.

A sample of the input is routed, to count the rows that each cell would get.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from freshviews.cells import describe, plan_cells
from freshviews.spark.definition import Definition
from freshviews.spark.driver.routing import routed
from freshviews.spark.io.envelope_keys import routable
from freshviews.spark.io.sources import one_frame, open_sources, source_of
from freshviews.spark.layout.measure import measure, sample_of
from freshviews.spark.layout.one_cell import check_cells
from freshviews.spark.worker.rows import TABLE, cell_of


def explain_cells(spark: SparkSession, definition: Definition, cells: int) -> str:
    """Describe the plan for this many cells, by declared or measured sizes, and the rows of a sample per cell.

    Raises SourceError; PlanError if the script does not allow as many cells.
    """
    catalog = definition.catalog
    check_cells(definition, catalog, cells)
    sources = open_sources(spark, definition, {})
    measured = measure(spark, catalog, sources, cells)
    plan = plan_cells(catalog, cells, measured.sizes, measured.heavy)
    text = describe(plan, catalog, measured.sizes)
    sampled = []
    for source in sources:
        sample = sample_of(spark, source)
        if sample is not None:
            sampled.append(source_of(sample[0], source.spec, source.table, source.from_files))
    if cells == 1 or not sampled:
        return text
    sampled = routable(sampled, cells)
    frame, slots = one_frame(sampled)
    roles = [plan.roles_of(source.table.name) for source in sampled]
    frame = frame.persist()
    try:
        rows = frame.groupBy(TABLE).count().collect()
        feeds = sum(map(len, roles))
        cell = f"{cell_of(feeds)} AS cell"
        found = routed(frame, slots, roles, cells).selectExpr(cell).groupBy("cell").count().collect()
    finally:
        frame.unpersist()
    total = sum(row["count"] for row in rows)
    loads = [0] * cells
    for row in found:
        loads[row["cell"]] = row["count"]
    mean = sum(loads) / cells
    return text + (
        f"\na sample of {total:,} rows becomes {sum(loads):,} in the cells, {mean:,.0f} in each on average and "
        f"{max(loads):,} in the largest\n"
    )
