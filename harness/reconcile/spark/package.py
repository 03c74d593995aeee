"""The zip that executors and spark-submit get: this project's packages that a job needs."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[3]
PACKAGES = ("harness", "reports")
_STAMP = (2020, 1, 1, 0, 0, 0)  # the same sources make the same zip


def make_package(into: Path) -> Path:
    """Write the zip, whole or not at all."""
    draft = into.with_name(f".{into.name}.{os.getpid()}")
    with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as package:
        for path in sorted(p for name in PACKAGES for p in (ROOT / name).rglob("*.py")):
            entry = zipfile.ZipInfo(path.relative_to(ROOT).as_posix(), _STAMP)
            package.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
    draft.replace(into)
    return into
