"""Random damage to run folders, as data that Hypothesis draws and that a failing test prints.

Each mutation knows whether it is *structural* damage, after which a verdict has to be right or absent, or *forgery*: a
change that leaves every file well formed and consistent in itself. No reader can distinguish a forged row from a true one, so
after forgery only this is asked: no traceback, one clear line, and nothing outside of the folder is touched.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from harness.ledger import journal
from harness.ledger.rundir import RunDir

CODE = "x', reflect('java.lang.System','load','/tmp/evil.so'), 'x"
DEEP: Any = []
for _ in range(60):
    DEEP = [DEEP]
HOSTILE: tuple[Any, ...] = (
    None, True, False, -1, 0, 3, 1 << 31, 1 << 62, (1 << 63) - 1, 1 << 63, 1 << 64, 10**30, -0.5, 1e300, float("inf"),
    float("nan"), "", "x", "../../../etc/passwd", CODE, "\x1b[2J\u202e", "\ud800", "9" * 2000, [], {}, ["x"], [[]], DEEP,
    {"a": 1}, {"0": -1}, "read_uncommitted", "VIOLATED", "exactly_once",
)  # fmt: skip
# From version 2 on writers count their rows and lines, and a ledger from which any are missing is refused.
COUNTED = journal.VERSION >= 2
JSON_FILES = ("manifest.json", "reconciled.json", "verdict.json", "pictures.json")


@dataclass(frozen=True)
class Mutation:
    """`kind` is a method below, `file` and the numbers choose where; all of it is taken modulo what is there."""

    kind: str
    file: int
    other: int
    where: int
    value: int

    def apply(self, run: RunDir, outside: Path) -> bool:
        """Damage the run. True: structural."""
        return bool(getattr(_Damage(run, outside), self.kind)(self))


class _Damage:
    def __init__(self, run: RunDir, outside: Path) -> None:
        self._run, self._outside = run, outside
        ledgers = sorted(run.ledger.iterdir()) if run.ledger.is_dir() and not run.ledger.is_symlink() else []
        results = [run.path / name for name in JSON_FILES] + sorted(run.findings.glob("*.parquet"))
        self._files = [p for p in (*results, *ledgers) if p.is_file() and not p.is_symlink()]

    def _file(self, number: int) -> Path:
        return self._files[number % len(self._files)]

    def cut(self, m: Mutation) -> bool:
        path = self._file(m.file)
        whole = path.read_bytes()
        at = m.where % max(1, len(whole))
        _put(path, whole[:at])
        return (
            COUNTED or _kind(path) == "json" or (_kind(path) == "attempts" and at % journal.REGION_BYTES != 0)
        )

    def delete(self, m: Mutation) -> bool:
        self._file(m.file).unlink()
        return COUNTED

    def random_bytes(self, m: Mutation) -> bool:
        data = random.Random(m.value).randbytes(48 + m.where % 500)
        _put(self._file(m.file), data)
        return True

    def append(self, m: Mutation) -> bool:
        path = self._file(m.file)
        _put(path, path.read_bytes() + random.Random(m.value).randbytes(1 + m.where % 200))
        return True

    def flip(self, m: Mutation) -> bool:
        path = self._file(m.file)
        data = bytearray(path.read_bytes())
        if data:
            data[m.where % min(len(data), 2000)] ^= 1 << m.value % 8
        _put(path, bytes(data))
        return False

    def swap(self, m: Mutation) -> bool:
        first, second = self._file(m.file), self._file(m.other)
        contents = first.read_bytes(), second.read_bytes()
        _put(first, contents[1])
        _put(second, contents[0])
        return _kind(first) != _kind(second)

    def link(self, m: Mutation) -> bool:
        path = self._file(m.file)
        target = self._outside / "file" if m.value % 2 else self._file(m.other)
        path.unlink()
        path.symlink_to(target)
        return True

    def link_folder(self, m: Mutation) -> bool:
        folder = (self._run.ledger, self._run.tables, self._run.findings)[m.where % 3]
        if folder.is_symlink():
            return True
        if folder.exists():
            shutil.rmtree(folder)
        folder.symlink_to(self._outside)
        return True

    def other_kind(self, m: Mutation) -> bool:
        path = self._file(m.file)
        path.unlink()
        path.mkdir() if m.value % 2 else os.mkfifo(path)
        return True

    def stray(self, m: Mutation) -> bool:
        """A file more than there was."""
        names = (
            "x.events",
            "x.deliveries",
            "x.1.attempts",
            "x.read_committed.log",
            "\x1b[2J.events",
            "x",
            ".events",
        )
        content = (b"", b"\x00" * 48, b"{}\n", b"[" * 5000, b"\xff" * 100)[m.value % 5]
        if self._run.ledger.is_dir():
            _put(self._run.ledger / names[m.where % len(names)], content)
        return False  # a delivery more is a delivery more

    def json_value(self, m: Mutation) -> bool:
        """Replace or remove a value somewhere in a JSON file or in a line of events."""
        path = self._files_of("json", "events")[m.file % len(self._files_of("json", "events"))]
        lines = path.read_bytes().split(b"\n") if _kind(path) == "events" else [path.read_bytes()]
        at = m.other % len(lines)
        try:
            value = json.loads(lines[at])
            places = list(_places(value))
            holder, name = places[m.where % len(places)]
        except (ValueError, ZeroDivisionError, RecursionError):
            return True  # damaged before, or the empty end of the file
        new = HOSTILE[m.value % len(HOSTILE)]
        old = holder[name]
        if m.value % 7 == 0:
            del holder[name]
            structural = isinstance(holder, dict)
        else:
            holder[name] = new
            structural = type(new) is not type(old)
        lines[at] = json.dumps(value).encode()
        _put(path, b"\n".join(lines))
        return structural

    def lines(self, m: Mutation) -> bool:
        """Repeat, exchange, remove or garble lines of events."""
        path = self._files_of("events")[m.file % len(self._files_of("events"))]
        lines = path.read_bytes().splitlines(keepends=True) or [b""]
        at, to = m.where % len(lines), m.other % len(lines)
        what = m.value % 4
        if what == 0:
            lines.insert(to, lines[at])
        elif what == 1:
            lines[at], lines[to] = lines[to], lines[at]
        elif what == 2:
            del lines[at]
        else:
            lines.insert(at, (b"\n", b"{}\n", b"null\n", b"{\n", b"[" * 3000 + b"\n")[m.value // 4 % 5])
        _put(path, b"".join(lines))
        return what != 2 or COUNTED

    def _files_of(self, *kinds: str) -> list[Path]:
        return [p for p in self._files if _kind(p) in kinds] or [self._run.manifest]


KINDS = tuple(name for name in vars(_Damage) if not name.startswith("_"))
_NUMBER = st.integers(0, 1 << 20)
MUTATIONS = st.lists(
    st.builds(Mutation, st.sampled_from(KINDS), _NUMBER, _NUMBER, _NUMBER, _NUMBER), min_size=1, max_size=3
)


def _kind(path: Path) -> str:
    """Files of one kind have rows or lines that fit into each other."""
    if path.suffix == ".json":
        return "json"
    return {".log": "rows", ".deliveries": "rows"}.get(path.suffix, path.suffix.removeprefix("."))


def _put(path: Path, content: bytes) -> None:
    """Write a new file: the old one may be shared with the run that was copied."""
    path.unlink(missing_ok=True)
    path.write_bytes(content)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every value inside a JSON value, as its holder and its name there."""
    for name in (
        list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    ):
        yield value, name
        yield from _places(value[name])
