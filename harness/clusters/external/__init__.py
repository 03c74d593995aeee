"""A cluster that belongs to its user: powers are commands, and what is created or held there is recorded first."""
