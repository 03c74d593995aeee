"""Links from a report to files beside it."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from reports.sections.runs import relative_to


def folder_link(beside: Path, runs: Path, name: str) -> str:
    """Return the link from a page in `beside` to a folder below that of the runs; empty if the name leads out of it.

    It is relative, and begins with a dot: no name can become a script or another place.
    """
    if not name or Path(name).is_absolute() or ".." in Path(name).parts:
        return ""
    return "./" + quote(relative_to(beside, runs.resolve() / name)) + "/"
