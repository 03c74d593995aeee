"""The example of the README, taken from it."""

from __future__ import annotations

import re
from pathlib import Path

README = Path(__file__).resolve().parents[2] / "README.md"


def example() -> str:
    """The first Python block below "In pytest"."""
    section = README.read_text(encoding="utf-8").partition("\n## In pytest\n")[2].partition("\n## ")[0]
    found = re.search(r"^```python\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    assert found, "README.md has no Python block below 'In pytest'"
    return found[1]
