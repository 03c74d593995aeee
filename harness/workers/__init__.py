"""One client process, and how the harness starts, watches and stops it; never loads Spark."""
