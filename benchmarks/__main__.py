"""`python -m benchmarks NAME`: run one benchmark. Use a machine that does nothing else."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import benchmarks

NAMES = sorted(m.name for m in pkgutil.iter_modules(benchmarks.__path__) if not m.name.startswith("_"))


def main(argv: list[str]) -> int:
    if not argv or argv[0] not in NAMES:
        print(f"usage: python -m benchmarks NAME; there are: {', '.join(NAMES)}", file=sys.stderr)
        return 2
    return int(importlib.import_module(f"benchmarks.{argv[0]}").main(argv[1:]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
