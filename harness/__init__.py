"""onceproof: proves whether Kafka loses, duplicates or reorders messages during faults."""

import sys

__version__ = "0.1.0"

OLDEST_PYTHON = (3, 11)

# Here, since an older Python cannot import any other module of this package. 2: see harness.runtime.exits.
if sys.version_info[:2] < OLDEST_PYTHON:
    print(
        f"onceproof: Python {sys.version.split()[0]} is too old; start ./onceproof, or use Python 3.11 to 3.13",
        file=sys.stderr,
    )
    sys.exit(2)
