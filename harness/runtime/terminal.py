"""Make text from files safe for a terminal. Everything that is printed passes through `printable`."""

from __future__ import annotations

import re

# C0 and C1 with DEL (escape sequences begin with one of them), line and paragraph separators, marks and overrides of
# writing direction (they make a line read differently from what it says), and halves of surrogate pairs.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff\ufff9-\ufffb]"
)


def printable(text: object) -> str:
    """Return the text on one line, with control characters escaped: `\\x1b`, `\\n`, `\\u202e`."""
    return _UNSAFE.sub(_escape, str(text))


def _escape(found: re.Match[str]) -> str:
    code = ord(found.group())
    named = {9: "\\t", 10: "\\n", 13: "\\r"}.get(code)
    return named or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
