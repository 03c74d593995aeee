"""Known ways to lose, duplicate or reorder messages, one per file: each is provoked and caught, and has a safe way."""
