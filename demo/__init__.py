"""A year of flights out of New York through the pipeline on Spark, month by month, with late corrections."""
