"""Second stage: one pass over all rows counts what was compared and marks the blocks in doubt."""
