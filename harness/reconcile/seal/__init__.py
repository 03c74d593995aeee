"""First stage: the journals of a run become checked tables, without Spark."""
