"""onceproof: proves whether messages are lost, duplicated or reordered while things break."""

import sys

__version__ = "0.1.0"

OLDEST_PYTHON = (3, 11)

# Here, since nothing else of this package can even be imported by an older one. 2: see harness.runtime.exits.
if sys.version_info[:2] < OLDEST_PYTHON:
    print(
        f"onceproof: Python {sys.version.split()[0]} is too old; start ./onceproof, or use Python 3.11 to 3.13",
        file=sys.stderr,
    )
    sys.exit(2)
