"""Operation histories that another tool recorded: JSON lines, one event a line, in order of time.

docs/histories.md has the format. A line that cannot be understood is an error that names file, line and reason: a line
that is skipped would look like a lost message.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.contracts import Outcome
from harness.errors import UsageError
from harness.ledger.events import MOST_OFFSET
from harness.ledger.json_text import parse_json
from harness.ledger.value_checks import shown

SEND, POLL, TXN, ASSIGN, SUBSCRIBE = "send", "poll", "txn", "assign", "subscribe"
INVOKE = "invoke"
MOST_SHOWN = 120  # characters of a wrong value
OUTCOMES = {"ok": Outcome.ACKED, "fail": Outcome.REJECTED, "info": Outcome.UNKNOWN}

Label = str | int  # a partition or a message, as the file names it


class HistoryError(UsageError):
    """A history that cannot be read; the text names file and line."""


@dataclass(frozen=True)
class SentMessage:
    partition: int
    message: Label
    offset: int | None


@dataclass(frozen=True)
class Read:
    partition: int
    offset: int
    message: Label


@dataclass
class Operation:
    """One operation of a process: request and result. `line` is that of its end, from 0."""

    process: int
    kind: str
    line: int
    outcome: Outcome
    invoked: int | None  # the line of its beginning; None: only its end was recorded
    sends: list[SentMessage] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    polls: int = 0
    partitions: list[int] = field(default_factory=list)  # of an assignment
    rebalanced: set[int] = field(default_factory=set)


@dataclass
class History:
    path: Path
    operations: list[Operation] = field(default_factory=list)  # in order of their ends
    events: int = 0
    partitions: list[Label] = field(default_factory=list)  # by number
    processes: list[Label] = field(default_factory=list)
    writers: dict[tuple[int, Label], Operation] = field(default_factory=dict)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"


def read_history(path: Path) -> History:
    return _HistoryParser(path).history()


class _HistoryParser:
    def __init__(self, path: Path) -> None:
        self._history = History(path)
        self._line = 0
        self._time: float | None = None
        self._open: dict[int, Operation] = {}  # by process
        self._labels: dict[str, dict[Label, int]] = defaultdict(dict)

    def history(self) -> History:
        for event in self._events():
            self._take(event)
        # An operation that never ended is unknown from its beginning on.
        self._history.operations += self._open.values()
        self._history.operations.sort(key=lambda op: op.line)
        for operation in self._history.operations:
            self._remember_sends(operation)
        return self._history

    def _events(self) -> Iterator[dict[str, Any]]:
        try:
            with self._history.path.open("rb") as file:
                for number, line in enumerate(file):
                    self._line = number
                    if not line.strip():
                        continue
                    try:
                        event = parse_json(line, wide=True)
                    except ValueError as error:
                        self._refuse(f"not JSON: {error}")
                    if not isinstance(event, dict):
                        self._refuse("a JSON object is expected")
                    self._history.events += 1
                    yield event
        except OSError as error:
            raise HistoryError(f"{self._history.path}: cannot be read: {error.strerror}") from error

    def _refuse(self, what: str) -> Any:
        raise HistoryError(f"{self._history.path}:{self._line + 1}: {what}")

    def _take(self, event: dict[str, Any]) -> None:
        self._check_time(event)
        process = self._number("process", event.get("process"), "process")
        kind, type_ = event.get("f"), event.get("type")
        if not isinstance(kind, str) or kind not in (SEND, POLL, TXN, ASSIGN, SUBSCRIBE):
            self._refuse(f'"f" is {shown(kind)}: send, poll, txn, assign or subscribe is expected')
        if not isinstance(type_, str) or (type_ != INVOKE and type_ not in OUTCOMES):
            self._refuse(f'"type" is {shown(type_)}: invoke, ok, fail or info is expected')
        begun = self._open.pop(process, None)
        if type_ == INVOKE:
            if begun is not None:
                self._history.operations.append(begun)  # its end was never recorded: unknown
            self._open[process] = self._operation(event, process, str(kind), Outcome.UNKNOWN, self._line)
            return
        if begun is not None and begun.kind != kind:
            self._refuse(f"process {shown(event['process'])} ends a {kind}, but began a {begun.kind}")
        self._history.operations.append(
            self._operation(
                event, process, str(kind), OUTCOMES[str(type_)], begun.invoked if begun else None, begun
            )
        )

    def _check_time(self, event: dict[str, Any]) -> None:
        time = event.get("time")
        if isinstance(time, bool) or not isinstance(time, int | float):
            self._refuse(f'"time" is {shown(time)}: a number is expected')
        elif self._time is not None and time < self._time:
            self._refuse(
                f"time {time} is before that of an event above ({self._time}): order of time is expected"
            )
        else:
            self._time = time

    def _operation(
        self,
        event: dict[str, Any],
        process: int,
        kind: str,
        outcome: Outcome,
        invoked: int | None,
        begun: Operation | None = None,
    ) -> Operation:
        made = Operation(process, kind, self._line, outcome, invoked)
        made.rebalanced = {self._partition(p) for p in self._list(event, "rebalanced", needed=False)}
        if begun is not None:
            made.rebalanced |= begun.rebalanced
        if kind in (ASSIGN, SUBSCRIBE):
            if event.get("partitions") is None and begun is not None:
                made.partitions = begun.partitions
            else:
                made.partitions = [self._partition(p) for p in self._list(event, "partitions")]
        elif event.get("ops") is None and begun is not None:
            made.sends, made.reads, made.polls = begun.sends, begun.reads, begun.polls
        else:
            for op in self._list(event, "ops", needed=invoked != self._line):
                self._add(made, op)
        return made

    def _list(self, event: dict[str, Any], name: str, *, needed: bool = True) -> list[Any]:
        value = event.get(name)
        if value is None and not needed:
            return []
        if isinstance(value, list):
            return value
        self._refuse(f'"{name}" is {shown(value)}: a list is expected')
        raise AssertionError

    def _add(self, made: Operation, op: Any) -> None:
        match op:
            case ["send", partition, message, None | int() as offset] if not isinstance(offset, bool):
                if made.kind == POLL:
                    self._refuse("a send inside a poll")
                if offset is not None and not 0 <= offset <= MOST_OFFSET:
                    self._refuse(f"offset {shown(offset)}: 0 to {MOST_OFFSET} is expected")
                made.sends.append(SentMessage(self._partition(partition), self._message(message), offset))
            case ["send", partition, message]:
                made.sends.append(SentMessage(self._partition(partition), self._message(message), None))
            case ["poll", None] | ["poll"]:
                made.polls += 1
            case ["poll", list() as records]:
                if made.kind == SEND:
                    self._refuse("a poll inside a send")
                made.polls += 1
                made.reads += [self._record(record) for record in records]
            case _:
                self._refuse(
                    f'{_short(op)}: ["send", PARTITION, MESSAGE, OFFSET or null] or '
                    '["poll", [[PARTITION, OFFSET, MESSAGE], ...] or null] is expected'
                )

    def _record(self, record: Any) -> Read:
        match record:
            case [partition, int() as offset, message] if (
                not isinstance(offset, bool) and 0 <= offset <= MOST_OFFSET
            ):
                return Read(self._partition(partition), offset, self._message(message))
        self._refuse(
            f"{_short(record)}: [PARTITION, OFFSET, MESSAGE] with an offset of 0 to {MOST_OFFSET} is expected"
        )
        raise AssertionError

    def _partition(self, label: Any) -> int:
        return self._number("partition", label, "partition")

    def _message(self, label: Any) -> Label:
        if isinstance(label, bool) or not isinstance(label, str | int):
            self._refuse(f"message {shown(label)}: a string or an integer is expected")
        return label  # type: ignore[no-any-return]

    def _number(self, kind: str, label: Any, name: str) -> int:
        """Return the number of a label; labels are numbered in the order of their first mention."""
        if isinstance(label, bool) or not isinstance(label, str | int):
            self._refuse(f"{name} {shown(label)}: a string or an integer is expected")
        known = self._labels[kind]
        if label not in known:
            known[label] = len(known)
            getattr(self._history, "partitions" if kind == "partition" else "processes").append(label)
        return known[label]

    def _remember_sends(self, operation: Operation) -> None:
        for sent in operation.sends:
            other = self._history.writers.setdefault((sent.partition, sent.message), operation)
            if other is not operation or operation.sends.count(sent) > 1:
                self._line = operation.line
                self._refuse(
                    f"message {shown(sent.message)} of partition {shown(self._history.partitions[sent.partition])} was sent before, "
                    f"by line {other.line + 1}: a message is unique within its partition"
                )
