"""Whether each fault bites and heals on real brokers, and hits nothing else."""
