"""Checks that a power over a node has its effect and is undone: one function per power, in `checks` of its file."""
