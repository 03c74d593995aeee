"""One workload a file: the roles that the workers of a run have."""
