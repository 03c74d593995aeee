"""Third stage: the rows in doubt, picked by passes of kernels and handed to the finders by subject."""
