"""Answers about a stored run in sentences, from its files alone."""
