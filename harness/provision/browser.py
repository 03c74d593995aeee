"""A browser for the tests of the report. Nothing else needs one."""

from __future__ import annotations

import shutil
from pathlib import Path

from harness.provision import apt
from harness.runtime.cache import Progress, to_stderr

NAMES = ("chromium", "chromium-browser", "google-chrome")
BY_HAND = "install chromium, or run without the tests marked `browser`"


def find_browser() -> Path | None:
    found = next(filter(None, map(shutil.which, NAMES)), None)
    return Path(found) if found else None


def browser(progress: Progress = to_stderr) -> Path | None:
    """Return a browser, installed by apt if that is permitted; otherwise report a line and return None."""
    if find_browser() is None and apt.may_install():
        apt.install_first(
            ["chromium"], log="chromium", there=find_browser, by_hand=BY_HAND, progress=progress
        )
    if find_browser() is None:
        progress(f"no browser on this machine: the report is not tested in one ({BY_HAND})")
    return find_browser()
