"""What a worker process does: one role a file, `role_class` at its end."""
