"""A process that appends rows to a store: `python -m tests.trends.writers FOLDER NAME ROWS`."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from harness.trends.store import StoreFile
from tests.trends.histories import run_of


def main() -> None:
    folder, name, rows = sys.argv[1:]
    file = StoreFile(Path(folder))
    for number in range(int(rows)):
        file.append(replace(run_of(0, number), session=name, run=f"{name}/{number}"))


if __name__ == "__main__":
    main()
