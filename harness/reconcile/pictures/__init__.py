"""Data for the pictures of a run in the report: small, bounded, and computed while the tables are at hand."""
