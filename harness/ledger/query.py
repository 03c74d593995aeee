"""Questions to the journals of a run: all rows about a message or a position, without Spark and sealed tables.

The journals are read one file at a time and only rows that match are kept: a run of millions takes a second or two.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from harness.errors import LedgerError, UsageError
from harness.ledger import reading
from harness.ledger.events import read_events
from harness.ledger.manifest import ISOLATIONS
from harness.ledger.message import BAD_PAYLOAD, FOREIGN_RUN, message_id
from harness.ledger.row_checks import need_sound, need_whole_regions
from harness.ledger.rundir import RunDir

OBSERVED = "observed"
Event = Mapping[str, Any]
Row = Any  # one row of harness.ledger.rows.ATTEMPT or DELIVERY


class MessageIdentity(NamedTuple):
    """A message, whatever its position."""

    session: int
    seq: int


class Position(NamedTuple):
    """A place in a log, whatever message is there."""

    topic: int
    partition: int
    offset: int


@dataclass(frozen=True)
class Seen:
    """One record as a reader got it; `how` is `delivered`, `observed` or the isolation of a final reading."""

    how: str
    reader: str
    row: Row

    @property
    def position(self) -> Position:
        return Position(*(int(self.row[name]) for name in Position._fields))

    @property
    def identity(self) -> MessageIdentity | None:
        """The message of the record; None if it is not intact, or from another run."""
        if not _ours(self.row):
            return None
        return MessageIdentity(int(self.row["session"]), int(self.row["seq"]))


@dataclass(frozen=True)
class Attempt:
    """One attempt and its outcome, as its producer recorded it."""

    identity: MessageIdentity
    row: Row
    answered: bool  # with acks=0 brokers do not answer: the client makes up the offset

    @property
    def position(self) -> Position | None:
        reported = int(self.row["told_partition"]), int(self.row["offset"])
        return Position(int(self.row["topic"]), *reported) if self.answered and min(reported) >= 0 else None

    @property
    def partition(self) -> int:
        reported = int(self.row["told_partition"])
        return reported if reported >= 0 else int(self.row["partition"])


@dataclass
class Found:
    """All rows about some messages and positions."""

    attempts: list[Attempt] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)

    @property
    def positions(self) -> set[Position]:
        claimed = {a.position for a in self.attempts if a.position is not None}
        return claimed | {s.position for s in self.seen}

    @property
    def identities(self) -> set[MessageIdentity]:
        known = {s.identity for s in self.seen if s.identity is not None}
        return known | {a.identity for a in self.attempts}


class Journals:
    """The journals of a run."""

    def __init__(self, run: RunDir) -> None:
        run.need_own_files()
        self.run = run
        manifest = run.read_manifest()
        self.zero_ns = int(manifest["clock"]["monotonic_ns"])
        self.topic = str(manifest.get("topic", "topic-0"))

    @cached_property
    def events(self) -> Mapping[str, list[Event]]:
        """All events by kind, in order of time."""
        kinds: dict[str, list[Event]] = defaultdict(list)
        for path in self.run.journals("*.events"):
            for _, event in read_events(path):
                kinds[event["event"]].append(event)
        return {kind: sorted(events, key=lambda e: e.get("t", 0)) for kind, events in kinds.items()}

    def of(self, kind: str) -> list[Event]:
        return self.events.get(kind, [])

    @cached_property
    def sessions(self) -> Mapping[int, Mapping[str, Any]]:
        return {
            int(e["session"]): {
                **e,
                "sender": message_id(str(e["producer"]), int(e["incarnation"]), 0).rpartition("-")[0],
            }
            for e in self.of("session")
        }

    @cached_property
    def observers(self) -> Mapping[str, str]:
        """The isolation of each observer, by its name."""
        return {str(e["writer"]): str(e["isolation"]) for e in self.of("observer")}

    @cached_property
    def bounds(self) -> Mapping[tuple[int, int], Event]:
        """The last bounds of each log, by topic and partition."""
        return {(int(e.get("topic", 0)), int(e["partition"])): e for e in self.of("bounds")}

    def name(self, identity: MessageIdentity | None) -> str:
        if identity is None:
            return "a record that is not intact or not of this run"
        known = self.sessions.get(identity.session)
        return f"{known['sender'] if known else f'session {identity.session}'}-{identity.seq}"

    def place(self, position: Position) -> str:
        return f"{self.log_name(position.topic, position.partition)} offset {position.offset}"

    def log_name(self, topic: int, partition: int) -> str:
        """Return the name of a partition, without the name of the topic under test, which is long and known."""
        return f"partition {partition}" if topic == 0 else f"topic {topic} partition {partition}"

    # --- questions ---

    def identity_of(self, text: str) -> MessageIdentity:
        """Return the message with this id, as people read it."""
        sender, dash, seq = text.rpartition("-")
        if not dash or not sender or not (seq.isascii() and seq.isdigit()):
            raise UsageError(f"--message {text}: an id such as producer-1.0-42 is expected")
        numbers = [number for number, e in self.sessions.items() if e["sender"] == sender]
        if not numbers:
            there = ", ".join(sorted(e["sender"] for e in self.sessions.values())) or "none"
            raise UsageError(f"--message {text}: no sender {sender} in this run; there are: {there}")
        return MessageIdentity(numbers[0], int(seq))

    def position_of(self, text: str) -> Position:
        topic, _, rest = text.partition("/")
        numbers = rest.split("/")
        if len(numbers) != 2 or not all(n.isascii() and n.isdigit() for n in numbers):
            raise UsageError(
                f"--position {text}: TOPIC/PARTITION/OFFSET is expected, such as {self.topic}/0/17"
            )
        if topic != self.topic and not (topic.isascii() and topic.isdigit()):
            raise UsageError(
                f"--position {text}: no topic {topic} in this run; its topic is {self.topic} (or 0)"
            )
        return Position(0 if topic == self.topic else int(topic), int(numbers[0]), int(numbers[1]))

    def look(self, identities: set[MessageIdentity], positions: set[Position]) -> Found:
        """Return all rows about these messages, and all rows that were read or acked at these positions."""
        found = Found()
        for path in self.run.journals("*.attempts"):
            session = self._session_of(path)
            rows = need_sound(path, 0, reading.read_attempts(path))
            answered = str(self.sessions.get(session, {}).get("acks")) != "0"
            wanted = {i.seq for i in identities if i.session == session and i.seq < len(rows)}
            if answered:
                for p in positions:
                    wanted |= set(_matching(rows, offset=p.offset, told_partition=p.partition, topic=p.topic))
            found.attempts += [
                Attempt(MessageIdentity(session, i), rows[i], answered) for i in sorted(wanted)
            ]
        for how, path in self._records():
            rows = need_sound(path, 0, reading.read_deliveries(path)[0])
            at = {
                i for identity in identities for i in _matching(rows, **identity._asdict()) if _ours(rows[i])
            }
            at |= {i for position in positions for i in _matching(rows, **position._asdict())}
            reader = path.name.removesuffix(f".{how}.log").removesuffix(".deliveries")
            found.seen += [Seen(how, reader, rows[i]) for i in sorted(at)]
        return found

    def _session_of(self, path: Path) -> int:
        """Return the session of a file of attempts; raise if the file was truncated, so that no attempt is missing."""
        number = path.stem.rpartition(".")[2]
        if not re.fullmatch("[0-9]{1,10}", number):
            raise LedgerError(f"{path}: the name of an attempts file is <writer>.<session>.attempts")
        need_whole_regions(path)
        return int(number)

    def _records(self) -> Iterator[tuple[str, Any]]:
        for path in self.run.journals("*.deliveries"):
            yield OBSERVED if path.name.removesuffix(".deliveries") in self.observers else "delivered", path
        for isolation in ISOLATIONS:
            yield from ((isolation, path) for path in self.run.journals(f"*.{isolation}.log"))


def _ours(row: Row) -> bool:
    return not row["flags"] & (BAD_PAYLOAD | FOREIGN_RUN)


def _matching(rows: npt.NDArray[np.void], **values: int) -> list[int]:
    """Return the rows in which all columns have these values. seq or offset is compared first: few rows match."""
    order = sorted(values, key=lambda name: name not in ("seq", "offset"))
    found = np.flatnonzero(rows[order[0]] == values[order[0]])
    for name in order[1:]:
        found = found[rows[name][found] == values[name]]
    return [int(i) for i in found]
