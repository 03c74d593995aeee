"""Every path inside a run folder, in one place: runs/<scenario>/<run_id>/."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import LedgerError, UsageError


@dataclass(frozen=True)
class RunDir:
    path: Path
    journals: Path | None = field(default=None, kw_only=True)  # of a packed run: where they were unpacked

    @classmethod
    def create(cls, root: Path, scenario: str) -> RunDir:
        """A new run folder, named by the time of its start; two runs in one second get two folders."""
        stamp = time.strftime("%Y%m%d-%H%M%S")
        for number in range(1000):
            path = root / scenario / (stamp if number == 0 else f"{stamp}-{number}")
            try:
                path.mkdir(parents=True)
            except FileExistsError:
                continue
            made = cls(path.resolve())
            made.ledger.mkdir()
            made.logs.mkdir()
            return made
        raise LedgerError(f"{root / scenario}: a thousand runs began in this second")

    @property
    def run_id(self) -> str:
        return f"{self.path.parent.name}/{self.path.name}"

    @property
    def manifest(self) -> Path:
        return self.path / "manifest.json"

    @property
    def ledger(self) -> Path:
        """Journals as the workers write them; they survive the death of their writer."""
        return self.journals or self.path / "ledger"

    @property
    def packed_ledger(self) -> Path:
        """The journals of a packed run (harness.packed)."""
        return self.path / "ledger.tar.gz"

    @property
    def tables(self) -> Path:
        """The ledger as Parquet, one folder a table: what Spark reads."""
        return self.path / "tables"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def packed_logs(self) -> Path:
        return self.path / "logs.tar.gz"

    @property
    def findings(self) -> Path:
        """All findings as Parquet."""
        return self.path / "findings.parquet"

    @property
    def reconciled(self) -> Path:
        """What reconciliation found: counts, the worst findings in full, coverage, timeline."""
        return self.path / "reconciled.json"

    @property
    def verdict(self) -> Path:
        return self.path / "verdict.json"

    def read_manifest(self) -> dict[str, Any]:
        return read_json(self.manifest, "is this a run folder?")


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Whole or not at all: a reader never sees half a file."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(json.dumps(value, indent=1, sort_keys=False, default=str) + "\n", encoding="utf-8")
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def read_json(path: Path, hint: str) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise LedgerError(f"{path}: there is no such file ({hint})") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise LedgerError(f"{path}: not JSON: {error} ({hint})") from error
    if not isinstance(value, dict):
        raise LedgerError(f"{path}: a JSON object is expected ({hint})")
    return value


def find_runs(paths: Sequence[Path]) -> list[RunDir]:
    """Every run folder at or beneath the paths, each once, in the order given, then by start."""
    found: dict[Path, RunDir] = {}
    for path in paths:
        manifests = sorted(_manifests(path), key=lambda p: (p.parent.name, p.parent.parent.name))
        if not manifests:
            reason = (
                "no run folder is in it: none has a manifest.json"
                if path.exists()
                else "there is no such folder"
            )
            raise UsageError(f"{path}: {reason}")
        for manifest in manifests:
            folder = manifest.parent.resolve()
            found.setdefault(folder, RunDir(folder))
    return list(found.values())


def _manifests(path: Path) -> Iterator[Path]:
    if (path / "manifest.json").exists():
        yield path / "manifest.json"
    else:
        yield from path.rglob("manifest.json")
