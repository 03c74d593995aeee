"""Fourth stage: questions about rows in doubt, from tables to a table of findings, without Spark."""
