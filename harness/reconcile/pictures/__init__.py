"""What a run looked like, for its pictures in the report: small, bounded, and computed while the tables are at hand."""
