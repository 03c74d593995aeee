"""Searches for defects that were reported and not shown here yet, one per file."""
