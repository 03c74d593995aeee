"""The example of docs/claims.md: a file with claims of a team."""

from __future__ import annotations

from pathlib import Path

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "claims.md"


def text() -> str:
    """Return the TOML of the document."""
    found = DOCUMENT.read_text(encoding="utf-8").partition("```toml\n")[2].partition("```")[0]
    assert found, f"{DOCUMENT.name} has no TOML block"
    return found
