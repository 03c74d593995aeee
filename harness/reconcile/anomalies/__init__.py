"""One finder a file, named as its anomaly; a finder asks tables and reads nothing else."""
