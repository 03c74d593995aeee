"""Processes and folders that belong to one harness: they end with it, or the next start finds them."""
