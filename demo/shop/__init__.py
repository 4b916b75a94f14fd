"""An online shop: from Kafka through views on Spark to PostgreSQL and Kafka, with servers that the demo starts."""
