"""One section of the page a file."""
