"""Roles of worker processes: one role a file, `role_class` at its end."""
