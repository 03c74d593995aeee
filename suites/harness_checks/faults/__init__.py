"""Checks that each fault bites and heals on real brokers, and hits nothing else."""
