"""A Docker engine and images for it, found or made on this machine."""
