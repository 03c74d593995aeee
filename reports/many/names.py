"""Names of scenarios without the beginning that all of them share: `night-7-004-exactly_once-kill` reads 004-exactly_once-kill."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import takewhile

_LEAST = 6  # characters: a shorter beginning is no burden
_FEWEST = 3  # different names


@dataclass(frozen=True)
class ShortNames:
    """Shortens names; `shared` is what it leaves out, empty if names share nothing long."""

    shared: str = ""

    @classmethod
    def of(cls, names: Iterable[str]) -> ShortNames:
        different = set(names)
        columns = zip(*(name.split("-") for name in different), strict=False)
        same = takewhile(lambda words: len(set(words)) == 1, columns)  # no part of a word is cut
        whole = "".join(f"{words[0]}-" for words in same)
        return cls(whole) if len(different) >= _FEWEST and len(whole) >= _LEAST else cls()

    def __call__(self, name: str) -> str:
        return name.removeprefix(self.shared) or name
