"""onceproof: proves whether messages are lost, duplicated or reordered while things break."""

__version__ = "0.1.0"
