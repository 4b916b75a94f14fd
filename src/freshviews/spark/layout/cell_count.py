"""Decides how many cells a pipeline has: the requested number, one per core, or only one.

Without a requested number, there is only one if a table has a window or watermark, or if the script allows no more.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from freshviews.catalog.catalog import Catalog
from freshviews.catalog.watermark import takes_whole_versions
from freshviews.cells import CellPlan, plan_cells
from freshviews.errors import PlanError
from freshviews.spark.definition import Definition
from freshviews.spark.io.sources import Source
from freshviews.spark.layout.layout import Layout
from freshviews.spark.layout.measure import measure
from freshviews.spark.layout.one_cell import check_cells, in_one_cell


def first_layout(spark: SparkSession, definition: Definition, sources: Sequence[Source], cells: int | None) -> Layout:
    """The cells of a pipeline that begins or changes its number of cells: the requested number, else one per core if
    the script allows it. ``sources`` have the rows by which sizes are measured.

    Raises PlanError if the script does not allow the requested number.
    """
    catalog = definition.catalog
    check_cells(definition, catalog, cells or 1)
    if cells is None:
        # In several cells, windows and watermarks cost a stage of their own, so the user decides.
        alone = in_one_cell(definition, catalog) or any(map(takes_whole_versions, catalog.tables.values()))
        cells = 1 if alone else int(spark.sparkContext.defaultParallelism)
        try:
            return Layout(_planned(spark, catalog, sources, cells), catalog)
        except PlanError:
            cells = 1
    return Layout(_planned(spark, catalog, sources, cells), catalog)


def _planned(spark: SparkSession, catalog: Catalog, sources: Sequence[Source], cells: int) -> CellPlan:
    if cells == 1:
        return plan_cells(catalog, 1, {})
    measured = measure(spark, catalog, sources, cells)
    return plan_cells(catalog, cells, measured.sizes, measured.heavy)
