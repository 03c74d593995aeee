"""Known ways to lose, duplicate or reorder: each provoked, each caught, each with its clean control."""
