"""The store: a folder of files with JSON lines, one line a row. Each writing process has a file of its own.

So two writers never share a file, on any file system. A writer that dies leaves whole lines, and perhaps a torn last one,
which readers ignore. A line may come from a stranger: every value is checked.
"""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Any

from harness.errors import LedgerError, UsageError
from harness.ledger.json_text import dump_json, parse_json
from harness.ledger.manifest import LABEL
from harness.ledger.rundir import MOST_JSON, need_file
from harness.ledger.value_checks import Check, Wrong, boolean, integer, list_of, number, optional, shape, text
from harness.trends.row import SCHEMA, Row

FOLDER = ".trends"  # in the folder of the runs
PATTERN = "*.jsonl"
_MOST_LISTED = 10_000
_NUMBER = number(-1e18, 1e18)
_CHECKS: Mapping[str, Check] = {
    "str": LABEL,
    "bool": boolean,
    "int": integer(),
    "float": number(0, 1 << 35),  # moments
    "int | None": optional(integer(0, 1 << 62)),
    "float | None": optional(_NUMBER),
    "tuple[str, ...]": list_of(LABEL, _MOST_LISTED),
    "tuple[int, ...]": list_of(integer(0, 1 << 62), _MOST_LISTED),
    "tuple[float, ...]": list_of(_NUMBER, _MOST_LISTED),
}
_OWN_CHECKS: Mapping[str, Check] = {
    "schema": integer(SCHEMA, SCHEMA),
    "started": text(20, r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "a moment in UTC: 2026-01-01T12:00:00Z"),
    # Reports link to it, so it never leads out of the folder of the runs.
    "run": text(300, r"[A-Za-z0-9_-][A-Za-z0-9._-]*/[A-Za-z0-9_-][A-Za-z0-9._-]*", "scenario/run"),
}
_COLUMNS = {each.name: _OWN_CHECKS.get(each.name) or _CHECKS[str(each.type)] for each in fields(Row)}
_ADDED = {each.name for each in fields(Row) if each.default is not MISSING}  # older rows do not have them
_LINE = shape(
    {name: check for name, check in _COLUMNS.items() if name not in _ADDED},
    {name: check for name, check in _COLUMNS.items() if name in _ADDED},
)
_TOGETHER = (("anomalies", "anomaly_counts", "anomaly_faults"), ("allowed", "allowed_counts"), ("faults", "targets"))  # fmt: skip


class StoreFile:
    """The file of this process in a store. It is made when the first row is appended."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path: Path | None = None

    def append(self, row: Row) -> None:
        """Add a row by one write. An OSError leaves the file as it was."""
        line = (dump_json(asdict(row)) + "\n").encode("utf-8")
        if self._path is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            name = f"{time.strftime('%Y%m%d-%H%M%S')}-{_host()}-{os.getpid()}-{secrets.token_hex(4)}.jsonl"
            (self._folder / name).open("x").close()
            self._path = self._folder / name
        handle = os.open(self._path, os.O_WRONLY | os.O_APPEND)
        try:
            before = os.fstat(handle).st_size
            if os.write(handle, line) < len(line):  # the disk is full
                os.ftruncate(handle, before)
                raise OSError(f"{self._path}: no room for a row")
        finally:
            os.close(handle)


@dataclass(frozen=True)
class Stored:
    """The content of a store: the rows in order of their start, and a line on each file with lines that cannot be read."""

    rows: tuple[Row, ...]
    unreadable: tuple[str, ...] = ()


def read_rows(folder: Path) -> list[Row]:
    """Return all rows of a store in order of their start; lines that cannot be read are left out."""
    return list(read_store(folder).rows)


def read_store(folder: Path) -> Stored:
    """Read a store. A run that a session judged twice, because it was killed in between, counts once.

    A folder that does not exist is an error; one damaged line, or one damaged file, hides no other.
    """
    if not folder.is_dir():
        raise UsageError(
            f"{folder}: no store of trends; prove, nightly, matrix, catalogue and pytest make it in .trends of "
            "their runs folder (--runs)"
        )
    rows: dict[tuple[str, str], Row] = {}
    unreadable = []
    for path in sorted(folder.glob(PATTERN)):
        wrong: list[str] = []
        try:
            for row in _rows(path, wrong):
                rows[row.session, row.run] = row
        except (LedgerError, OSError) as error:
            wrong.append(str(error))
        if wrong:
            more = f" (and {len(wrong) - 1} more lines)" if len(wrong) > 1 else ""
            unreadable.append(f"{wrong[0]}{more}")
    return Stored(tuple(sorted(rows.values(), key=lambda row: (row.started_s, row.run))), tuple(unreadable))


def _rows(path: Path, wrong: list[str]) -> Iterator[Row]:
    need_file(path, "a store has plain files only")
    if path.stat().st_size > MOST_JSON:
        raise LedgerError(f"{path}: larger than {MOST_JSON} bytes; is it a file of a store?")
    lines = path.read_bytes().split(b"\n")[:-1]  # without a torn last line
    for place, line in enumerate(lines, 1):
        try:
            yield row_of(parse_json(line))
        except ValueError as error:
            wrong.append(f"{path}, line {place}: {error}")


def row_of(data: Any) -> Row:
    """Return the row that a line has; raise a ValueError that names a wrong column."""
    _LINE(data)
    for names in _TOGETHER:
        if len({len(data[name]) for name in names}) > 1:
            raise Wrong(f"as many values as in {names[0]}", data[names[-1]], names[-1])
    known: dict[str, Any] = {
        name: tuple(data[name]) if isinstance(data[name], list) else data[name]
        for name in _COLUMNS
        if name in data
    }
    return Row(**known)


def _host() -> str:
    """Return the name of this machine, as far as it can be part of a file name."""
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in socket.gethostname())[:40] or "host"
