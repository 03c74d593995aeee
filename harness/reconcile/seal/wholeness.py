"""The check that a ledger is whole: the rows that its writers counted are compared with the files that exist.

A writer that ended in an orderly way has counted its rows (`closed`); the harness has recorded the sizes of the journals of
the others when they ended (`worker`). A complete run has one of both for every writer. Without this check a reading that was
cut between two rows would look like lost messages, and a consumer without its file like one that got nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from harness.errors import LedgerError
from harness.ledger import journal
from harness.ledger.rows import DELIVERY, EFFECT
from harness.reconcile.seal.rows import Columns
from harness.reconcile.seal.sealed import Event

_ROWS: Mapping[str, np.dtype[np.void]] = {
    ".deliveries": DELIVERY,
    ".log": DELIVERY,
    ".effects": EFFECT,
}
_REPEAT = "not a whole ledger, repeat the run"


def need_one_session_each(sessions: Iterable[Event]) -> None:
    """Raise if two sessions have the same number, or two of one producer the same incarnation: messages would be mixed up."""
    numbers: dict[int, Event] = {}
    names: dict[tuple[str, int], Event] = {}
    for event in sessions:
        number, name = int(event["session"]), (str(event["producer"]), int(event["incarnation"]))
        for what, known in (
            (f"session {number}", numbers.get(number)),
            (f"{name[0]}.{name[1]}", names.get(name)),
        ):
            if known is not None:
                raise LedgerError(f"{event['_at']}: {what} has begun before, at {known['_at']}: {_REPEAT}")
        numbers[number] = names[name] = event


def closing(event: Event) -> Columns:
    """Return the row of a `closed` event; raise KeyError, TypeError or ValueError if it is not one."""
    writer = str(event["writer"])
    rows, lines = event["rows"], event["lines"]
    if not isinstance(rows, dict):
        raise ValueError(f"rows: {rows!r}")
    return {
        "writer": writer,
        "rows": {_own(name, writer): _count(count) for name, count in rows.items()},
        "lines": _count(lines),
        "at": event["_at"],
    }


def life(event: Event) -> Columns:
    """Return the row of a `worker` event: `writes_as` is empty if the event does not name the life of the worker."""
    writer, files = str(event.get("writes_as", "")), event.get("files", {})
    if not isinstance(files, dict):
        raise ValueError(f"files: {files!r}")
    return {
        "writer": writer,
        "state": str(event["state"]),
        "files": {_own(name, writer): _count(size) for name, size in files.items()},
        "at": event["_at"],
    }


def opening(event: Event) -> Columns:
    """Return the row of an `opened` event."""
    return {"file": _own(event["file"], str(event["writer"])), "at": event["_at"]}


def _own(name: object, writer: str) -> str:
    if not isinstance(name, str) or "/" in name or not writer or not name.startswith(f"{writer}."):
        raise ValueError(f"file of {writer}: {name!r}")
    return name


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"count: {value!r}")
    return value


class Wholeness:
    """The row counts and file sizes that the writers of a run folder recorded."""

    def __init__(
        self, folder: Path, closed: Sequence[Columns], lives: Sequence[Columns], opened: Sequence[Columns]
    ) -> None:
        self._folder, self._lives, self._opened = folder, lives, opened
        self._closed = {str(one["writer"]): one for one in closed}
        self._promised: dict[str, tuple[int, str]] = {
            name: (rows, one["at"]) for one in closed for name, rows in one["rows"].items()
        }

    def need(self, lines: Mapping[str, int], complete: bool) -> None:
        """Raise if a file, or a part of one, is missing or too much. `lines`: the number of event lines of each writer.

        Attempts are counted while they are read: need_attempts.
        """
        self._need_writers(complete)
        if complete:
            self._need_ends(lines)
        for writer, one in self._closed.items():
            if (found := lines.get(writer, 0)) != one["lines"]:
                self._refuse(f"{writer}.events", f"{found} events", one["lines"], one["at"])
        for one in self._opened:
            self._need_file(one["file"], one["at"])
        for name, (promised, at) in self._promised.items():
            self._need_file(name, at)
            self._need_rows(name, promised, at)
        for one in self._lives:
            for name, size in one["files"].items():
                self._need_file(name, one["at"])
                if (found := (self._folder / name).stat().st_size) != size:
                    self._refuse(name, f"{found} bytes", size, one["at"])
        self._need_no_others()

    def need_attempts(self, path: Path, found: int) -> None:
        """Raise when a session has another number of attempts than its writer counted."""
        if path.name in self._promised and found != self._promised[path.name][0]:
            self._refuse(path.name, f"{found} rows", *self._promised[path.name])

    def _need_writers(self, complete: bool) -> None:
        for one in self._lives:
            writer = str(one["writer"])
            if not writer:
                continue
            self._need_file(f"{writer}.events", one["at"])
            if one["state"] == "ended" and writer not in self._closed:
                raise LedgerError(
                    f"{self._folder / writer}.events: no closing event, but {one['at']} ended in an orderly way: {_REPEAT}"
                )
        if complete and journal.HARNESS not in self._closed:
            raise LedgerError(
                f"{self._folder / journal.HARNESS}.events: no closing event, but the manifest says that the run is complete: {_REPEAT}"
            )

    def _need_ends(self, writers: Iterable[str]) -> None:
        """Raise when events may be missing at the end of a file: the writer did not count them, and the harness has no size."""
        sized = {name for one in self._lives for name in one["files"]}
        for writer in writers:
            if writer not in self._closed and f"{writer}.events" not in sized:
                raise LedgerError(
                    f"{self._folder / writer}.events: no closing event, and {journal.HARNESS}.events has no size of it: {_REPEAT}"
                )

    def _need_file(self, name: str, at: str) -> None:
        if not (self._folder / name).is_file():
            raise LedgerError(f"{self._folder / name}: missing, but {at} has it: {_REPEAT}")

    def _need_rows(self, name: str, promised: int, at: str) -> None:
        suffix = Path(name).suffix
        if suffix == ".attempts":
            return
        if suffix not in _ROWS:
            raise LedgerError(f"{self._folder / name}: not a journal, but {at} has it: {_REPEAT}")
        found, torn = divmod((self._folder / name).stat().st_size, _ROWS[suffix].itemsize)
        if found != promised or torn:
            self._refuse(name, f"{found} rows{f' and {torn} bytes' if torn else ''}", promised, at)

    def _need_no_others(self) -> None:
        """Raise for a journal that the closing event of its writer does not list."""
        for path in sorted(self._folder.iterdir()):
            if path.suffix not in (*_ROWS, ".attempts") or path.name in self._promised:
                continue
            writer = path.stem if path.suffix == ".deliveries" else path.stem.rpartition(".")[0]
            if writer in self._closed:
                raise LedgerError(
                    f"{path}: not among the journals that {self._closed[writer]['at']} closed: {_REPEAT}"
                )

    def _refuse(self, name: str, found: str, promised: int, at: str) -> None:
        raise LedgerError(f"{self._folder / name}: {found} found, {promised} promised by {at}: {_REPEAT}")
