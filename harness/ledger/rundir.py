"""Every path inside a run folder, in one place: runs/<scenario>/<run_id>/."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import LedgerError, UsageError
from harness.ledger.json_text import dump_json, parse_json

MOST_JSON = 1 << 28  # bytes of a JSON file; results of the largest runs have some megabytes


@dataclass(frozen=True)
class RunDir:
    path: Path
    unpacked: Path | None = field(default=None, kw_only=True)  # of a packed run: where its journals are

    @classmethod
    def create(cls, root: Path, scenario: str) -> RunDir:
        """Make a new run folder, named by the time of its start; two runs in one second get two folders."""
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
        raise LedgerError(f"{root / scenario}: a thousand runs began in this second; wait a second")

    @property
    def run_id(self) -> str:
        return f"{self.path.parent.name}/{self.path.name}"

    @property
    def manifest(self) -> Path:
        return self.path / "manifest.json"

    @property
    def scenario(self) -> Path:
        """The scenario as data: `./onceproof replay` runs it again."""
        return self.path / "scenario.json"

    @property
    def ledger(self) -> Path:
        """Journals as the workers write them; they survive the death of their writer."""
        return self.unpacked or self.path / "ledger"

    @property
    def packed_ledger(self) -> Path:
        """The journals of a packed run (harness.ledger.packing)."""
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
        """The results of reconciliation: counts, the worst findings in full, coverage, timeline."""
        return self.path / "reconciled.json"

    @property
    def verdict(self) -> Path:
        return self.path / "verdict.json"

    @property
    def pictures(self) -> Path:
        """The data of its pictures in the report; no verdict depends on it."""
        return self.path / "pictures.json"

    def read_manifest(self) -> dict[str, Any]:
        """Return the manifest, with all values that are used checked."""
        from harness.ledger.manifest import read_manifest  # it needs this module

        return read_manifest(self)

    def keeps_results_only(self) -> bool:
        """True if the ledger was left out on purpose (`--keep least`)."""
        return self.read_manifest().get("kept") == "least"

    def need_own_files(self) -> None:
        """Raise unless everything that is read or replaced here lies in this folder itself.

        A run folder may come from a stranger: a symbolic link in it would be read, or deleted, elsewhere, and a pipe
        would be waited for.
        """
        need_file(self.manifest, "is this a run folder?")
        if os.path.lexists(self.packed_ledger):
            need_file(self.packed_ledger, "is this a whole run folder?")
        elif not self.keeps_results_only():
            need_folder(self.ledger, "is this a whole run folder?")
        for folder in (self.tables, self.findings):
            if os.path.lexists(folder):
                need_folder(folder, "remove it, reconciling makes it again")
        for file in (self.reconciled, self.verdict, self.pictures):
            if os.path.lexists(file):
                need_file(file, "remove it, reconciling makes it again")

    def journals(self, pattern: str) -> list[Path]:
        """Return the files of the ledger with such a name, sorted; raise unless each is a plain file of this folder."""
        found = sorted(self.ledger.glob(pattern))
        for path in found:
            if not re.fullmatch(r"[A-Za-z0-9._-]+", path.name):
                raise LedgerError(
                    f"{path}: not the name of a journal: letters, digits, '.', '_' and '-' only"
                )
            need_file(path, "a ledger has plain files only")
        return found


def need_file(path: Path, hint: str) -> None:
    """Raise unless a plain file is there: no symbolic link, pipe or folder."""
    _need(path, stat.S_ISREG, "file", hint)


def need_folder(path: Path, hint: str) -> None:
    _need(path, stat.S_ISDIR, "folder", hint)


def _need(path: Path, is_kind: Callable[[int], bool], kind: str, hint: str) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        raise LedgerError(f"{path}: there is no such {kind} ({hint})") from None
    except OSError as error:
        raise LedgerError(f"{path}: cannot be read: {error.strerror} ({hint})") from error
    if stat.S_ISLNK(mode):
        raise LedgerError(f"{path}: a symbolic link, which is not followed; a {kind} is expected ({hint})")
    if not is_kind(mode):
        raise LedgerError(f"{path}: not a {kind} ({hint})")


def write_json(path: Path, value: Mapping[str, Any], indent: int | None = 1) -> None:
    """Write the file whole or not at all: a reader never sees half a file."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    try:
        # "x": never write to something that is already there, a link for example.
        with draft.open("x", encoding="utf-8") as file:
            file.write(dump_json(value, indent=indent) + "\n")
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def read_json(path: Path, hint: str) -> dict[str, Any]:
    """Return the object in a plain JSON file; harness.ledger.value_checks.parse_json says what is refused."""
    need_file(path, hint)
    try:
        if path.stat().st_size > MOST_JSON:
            raise LedgerError(f"{path}: larger than {MOST_JSON} bytes ({hint})")
        value = parse_json(path.read_bytes())
    except OSError as error:
        raise LedgerError(f"{path}: cannot be read: {error.strerror} ({hint})") from error
    except ValueError as error:
        raise LedgerError(f"{path}: not JSON: {error} ({hint})") from error
    if not isinstance(value, dict):
        raise LedgerError(f"{path}: a JSON object is expected ({hint})")
    return value


def find_runs(paths: Sequence[Path]) -> list[RunDir]:
    """Return every run folder at or beneath the paths, each once, in the order given, then by start."""
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
    if os.path.lexists(path / "manifest.json"):  # also a broken link: reading it reports the error
        yield path / "manifest.json"
    else:
        yield from path.rglob("manifest.json")
