"""The output of a step of GitHub Actions: annotations, and Markdown in the summary of the step."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from harness.runtime.terminal import printable

LONGEST = 4000  # characters of an annotation
_MOST_SUMMARY = 900_000  # bytes; a step may have 1 MiB
_MARKDOWN = re.compile(r"([\\`*|\[\]~])")


def in_actions() -> bool:
    """Return True in a step of GitHub Actions."""
    return bool(os.environ.get("GITHUB_ACTIONS"))


def annotation(text: str, **properties: object) -> str:
    """Return the workflow command that shows an error; properties: file, line, title."""
    place = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
    return f"::error {place}::{_data(text[:LONGEST])}"


def cell(text: object) -> str:
    """Return a text as Markdown that shows it on one line and does nothing else."""
    return _MARKDOWN.sub(r"\\\1", html.escape(printable(text), quote=False))


def code(text: object) -> str:
    """Return a text as one line of code, whatever it contains."""
    shown = printable(text)
    longest = max(map(len, re.findall("`+", shown)), default=0)
    ticks = "`" * (longest + 1)
    return f"{ticks} {shown} {ticks}" if longest else f"`{shown}`"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Return the lines of a Markdown table."""
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    return lines + [f"| {' | '.join(map(cell, row))} |" for row in rows]


def add_to_summary(markdown: str) -> bool:
    """Append to the summary of the step, cut to what a step may have; return False outside of a step."""
    if not (place := os.environ.get("GITHUB_STEP_SUMMARY")):
        return False
    content = markdown.encode("utf-8", "replace")
    if len(content) > _MOST_SUMMARY:
        content = content[:_MOST_SUMMARY].rpartition(b"\n")[0] + b"\n\n(cut: too long for a summary)\n"
    with Path(place).open("ab") as file:
        file.write(content)
    return True


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
