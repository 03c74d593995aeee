"""Operation histories that other tools recorded, judged by the same finders."""
