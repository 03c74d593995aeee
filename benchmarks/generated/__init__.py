"""Generated run folders: their history, what is planted in it, their group, journals and sound or doubtful rows."""
