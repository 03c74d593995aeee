"""Questions about rows in doubt: tables in, a table of findings out. Nothing in here knows Spark."""
