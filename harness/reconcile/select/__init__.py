"""Rows in doubt: found by what screening saw, picked by passes of kernels, and handed to the finders by subject."""
