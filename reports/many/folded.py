"""Details of runs, compressed in the page when there are many runs: the script unpacks a block when one of its runs is opened."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

MANY = 50  # runs; with fewer the page has all details as they are
_IN_A_BLOCK = 16  # runs; deflate looks back 32 KiB, so larger blocks would not be much smaller
_RAW = -15  # no header: `deflate-raw` in browsers


@dataclass
class Folded:
    """The details that a page with so many runs compresses; `details` is called by the template of a run."""

    runs: int
    _blocks: list[list[str]] = field(default_factory=list)

    @property
    def is_used(self) -> bool:
        return self.runs > MANY

    def details(self, shown: Mapping[str, Any], caller: Callable[[], str]) -> Markup:
        """Return the element with the details of a run, or an empty one that names its place in a block."""
        html = str(caller())  # from the template: escaped already
        if not self.is_used or shown["open"]:
            return Markup(f'<div class="body">{html}</div>')
        if not self._blocks or len(self._blocks[-1]) == _IN_A_BLOCK:
            self._blocks.append([])
        self._blocks[-1].append(html)
        place = f"{len(self._blocks) - 1}.{len(self._blocks[-1]) - 1}"
        return Markup(f'<div class="body" data-folded="{place}"></div>')

    def blocks(self) -> list[str]:
        """Return the blocks so far as base64, each a compressed JSON list of HTML texts."""
        return [_packed(json.dumps(block, ensure_ascii=False)) for block in self._blocks]


def _packed(text: str) -> str:
    squeezer = zlib.compressobj(9, zlib.DEFLATED, _RAW)
    return base64.b64encode(
        squeezer.compress(text.encode("utf-8", "backslashreplace")) + squeezer.flush()
    ).decode("ascii")
