"""The log of what onceproof did on a user's cluster: a line for each action, without secrets."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path


class ActionLog:
    def __init__(self, path: Path, secrets: Sequence[str]) -> None:
        self.path, self._secrets = path, secrets

    def write(self, text: str) -> None:
        for secret in self._secrets:
            text = text.replace(secret, "…")
        with self.path.open("a", encoding="utf-8") as log:
            log.write(f"{time.strftime('%H:%M:%S')} {text}\n")

    def write_each(self, what: str, names: Sequence[str]) -> None:
        for name in names:
            self.write(f"{what} {name}")
