"""The account of one record: every row and event about it as a plain sentence, in order of time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness.contracts import Outcome
from harness.ledger.manifest import ISOLATIONS
from harness.ledger.message import key_bytes
from harness.ledger.query import OBSERVED, Attempt, Event, Found, Journals, MessageIdentity, Position, Seen
from harness.ledger.replica_events import classify
from harness.runtime.terminal import printable

_NO_ATTEMPT = "none is in the ledger: it was never attempted (a phantom), or the ledger is not whole"
OUTCOMES = {Outcome.UNKNOWN: "its outcome is unknown", Outcome.ACKED: "acked", Outcome.REJECTED: "rejected"}


@dataclass(frozen=True)
class HistoryEntry:
    """One fact about a record; `t` in ns of the run's clock, None if it has no time."""

    t: int | None
    what: str
    text: str
    facts: Event = field(default_factory=dict)  # the event or row behind it, as data


@dataclass
class Account:
    """The history of one message, or of one position without a known message."""

    title: str
    topic: str
    zero_ns: int
    moments: list[HistoryEntry] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)

    def _in_order(self) -> list[tuple[float | None, HistoryEntry]]:
        """Return the entries in order of time; those without a time come last."""
        inorder = sorted(self.moments, key=lambda m: (m.t is None, m.t))
        return [(None if m.t is None else (m.t - self.zero_ns) / 1e9, m) for m in inorder]

    def text(self) -> str:
        lines = [f"{self.title} (topic {self.topic})"]
        lines += [
            f"  {'' if t is None else f'{t:.4f} s':>12}  {m.what:<12}  {m.text}" for t, m in self._in_order()
        ]
        lines += [f"  {'':>12}  {'finding':<12}  {text}" for text in self.findings]
        return "\n".join(map(printable, lines))

    def to_json(self) -> dict[str, Any]:
        moments = [
            {"t_s": t, "what": m.what, "text": m.text, "facts": dict(m.facts)} for t, m in self._in_order()
        ]
        return {"title": self.title, "topic": self.topic, "moments": moments, "findings": self.findings}


class AccountBuilder:
    """A builder of accounts from the journals of a run."""

    def __init__(self, journals: Journals) -> None:
        self.h = journals

    def message(self, identity: MessageIdentity, own: Found) -> Account:
        """Return the account of a message; `own` are all rows about it."""
        positions = own.positions
        others = self.h.look(set(), positions) if positions else Found()
        moments = [m for a in own.attempts for m in self._attempt(a)]
        if not own.attempts:
            moments.append(HistoryEntry(None, "attempt", _NO_ATTEMPT))
        moments += [m for a in own.attempts for m in self._transaction(identity.session, int(a.row["txn"]))]
        moments += [self._seen(s) for s in own.seen] + list(self._not_read(own.seen))
        times = [m.t for m in moments if m.t is not None]
        moments += self._others(identity, others)
        partitions = {p[:2] for p in positions} or {
            (int(a.row["topic"]), a.partition) for a in own.attempts if a.partition >= 0
        }
        moments += self._logs(partitions, positions)
        moments += self._group(positions, [s for s in own.seen if s.how == "delivered"], moments)
        moments += self._replicas(identity, own)
        moments += self._windows(times)
        return Account(self.h.name(identity), self.h.topic, self.h.zero_ns, moments)

    def position(self, position: Position, found: Found) -> Account:
        """Return the account of a position without a known message."""
        moments = [self._seen(s) for s in found.seen]
        if not found.seen:
            moments.append(
                HistoryEntry(None, "log", "no reader found a record here: a transaction marker, or a gap")
            )
        moments += self._logs({position[:2]}, {position})
        moments += self._group({position}, [s for s in found.seen if s.how == "delivered"], moments)
        return Account(self.h.place(position), self.h.topic, self.h.zero_ns, moments)

    # --- the producer's side ---

    def _attempt(self, attempt: Attempt) -> Iterator[HistoryEntry]:
        row, session = attempt.row, self.h.sessions.get(attempt.identity.session, {})
        key = key_bytes(int(row["key"]))
        words = [
            f"by {session.get('sender', 'an unknown sender')}",
            f"session {attempt.identity.session} with acks={session.get('acks', 'unknown')}",
            "no key" if key is None else f"key {key.decode()}",
            f"to partition {row['partition']}" if row["partition"] >= 0 else "partition left to the client",
            f"in transaction {row['txn']}" if row["txn"] else "in no transaction",
        ]
        sent = int(row["t_attempt"])
        yield HistoryEntry(sent, "attempt", ", ".join(words), _plain(row))
        if row["t_outcome"] < 0:
            yield HistoryEntry(sent, "outcome", "none was recorded: it is unknown")
            return
        outcome = OUTCOMES[Outcome(int(row["outcome"]))]
        if row["outcome"] == Outcome.ACKED:
            outcome += f" at {self.h.place(attempt.position)}" if attempt.position else ", without a position"
            outcome += "" if attempt.answered else " (acks=0: counted when it left the client)"
        error = f", error {_error_name(int(row['error']))}" if row["error"] else ""
        later_ms = (int(row["t_outcome"]) - sent) / 1e6
        text = f"{outcome}{error}, {later_ms:.1f} ms after the attempt"
        yield HistoryEntry(int(row["t_outcome"]), "outcome", text, _plain(row))

    def _transaction(self, session: int, txn: int) -> Iterator[HistoryEntry]:
        for e in self.h.of("txn"):
            if txn and int(e["session"]) == session and int(e["txn"]) == txn:
                did = e.get("did") or e.get("intent")
                text = (
                    f"{txn} begins, meant to {did}" if e["step"] == "begin" else f"{did} of {txn} is called"
                )
                if e["step"] == "ended":
                    text = f"{did} of {txn} ended: {OUTCOMES[Outcome(int(e['outcome']))]}"
                yield HistoryEntry(e["t"], "transaction", text, e)

    # --- the readers' side ---

    def _seen(self, seen: Seen, message: str = "it") -> HistoryEntry:
        what, reader, verb = "reading", f"the final {seen.how} reading", "found"
        if seen.how == "delivered":
            what, reader, verb = "delivery", seen.reader, "got"
        elif seen.how == OBSERVED:
            isolation = self.h.observers.get(seen.reader)
            what, reader, verb = "observation", f"{seen.reader} (beside the group, {isolation})", "got"
        flags = f" with damage flags {seen.row['flags']}" if seen.row["flags"] else ""
        text = f"{reader} {verb} {message} at {self.h.place(seen.position)}{flags}"
        return HistoryEntry(int(seen.row["t"]), what, text, {"reader": seen.reader, **_plain(seen.row)})

    def _not_read(self, seen: Sequence[Seen]) -> Iterator[HistoryEntry]:
        if not any(s.how == "delivered" for s in seen):
            yield HistoryEntry(None, "delivery", "no reader of the group got it")
        ended = {e["isolation"]: e for e in self.h.of("read")}
        for isolation in ISOLATIONS:
            if not any(s.how == isolation for s in seen):
                read = ended.get(isolation, {"complete": False, "detail": "it did not end"})
                whole = "" if read["complete"] else f", but is not whole: {read.get('detail')}"
                text = f"the final {isolation} reading did not find it{whole}"
                yield HistoryEntry(read.get("t"), "reading", text, read)

    def _others(self, identity: MessageIdentity, at: Found) -> Iterator[HistoryEntry]:
        """Yield other messages that claim a position of this message."""
        for a in at.attempts:
            if a.identity != identity and a.position is not None:
                text = f"{self.h.name(a.identity)} was acked at the same position, {self.h.place(a.position)}"
                yield HistoryEntry(int(a.row["t_outcome"]), "conflict", text, _plain(a.row))
        for s in at.seen:
            if s.identity != identity:
                yield replace(self._seen(s, self.h.name(s.identity)), what="conflict")

    def _logs(
        self, partitions: Iterable[tuple[int, int]], positions: Iterable[Position]
    ) -> Iterator[HistoryEntry]:
        for place in sorted(partitions):
            if e := self.h.bounds.get(place):
                log = self.h.log_name(*place)
                text = f"that of {log} goes from {e['start']} to {e['end']}, stable to {e['stable']}"
                here = sorted(p.offset for p in positions if p[:2] == place)
                out = [f"; offset {o} is outside" for o in here if not e["start"] <= o < e["end"]]
                yield HistoryEntry(e["t"], "log", text + "".join(out), e)

    def _group(
        self, positions: Iterable[Position], delivered: Sequence[Seen], known: Sequence[HistoryEntry]
    ) -> Iterator[HistoryEntry]:
        """Yield the commits just before and after each position was passed, and the owners of the partition around that."""
        for position in sorted(positions):
            log = self.h.log_name(*position[:2])
            commits = [
                (e, int(offset))
                for e in self.h.of("commit")
                for partition, offset in e["offsets"].items()
                if (int(e.get("topic", 0)), int(partition)) == position[:2]
                and e["outcome"] != Outcome.REJECTED
            ]
            passing = next((i for i, (_, at) in enumerate(commits) if at > position.offset), None)
            before = [c for c in commits[:passing] if c[1] <= position.offset]
            chosen = [(c, "the last that does not pass it") for c in before[-1:]]
            chosen += [] if passing is None else [(commits[passing], "the first that passes it")]
            for (e, at), which in chosen:
                sure = "" if e["outcome"] == Outcome.ACKED else ", its outcome unknown"
                yield HistoryEntry(e["t"], "commit", f"{e['writer']} commits {at} of {log}: {which}{sure}", e)
            if passing is None:
                yield HistoryEntry(None, "commit", f"no commit of the group passes {self.h.place(position)}")
            times = [int(s.row["t"]) for s in delivered if s.position == position]
            times = times or [e["t"] for (e, _), _ in chosen[-1:]]
            yield from self._assignments(position, times or [m.t for m in known[:1] if m.t is not None])

    def _assignments(self, position: Position, times: Sequence[int]) -> Iterator[HistoryEntry]:
        changes = [
            e
            for e in self.h.of("assignment")
            if int(e.get("topic", 0)) == position.topic and position.partition in map(int, e["partitions"])
        ]
        before = [e["t"] for e in changes if times and e["t"] <= min(times)]
        after = [e["t"] for e in changes if times and e["t"] > max(times)]
        for e in changes:
            if times and max(before, default=0) <= e["t"] <= min(after, default=e["t"]):
                log, way = self.h.log_name(*position[:2]), "to" if e["how"] == "assigned" else "by"
                yield HistoryEntry(e["t"], "assignment", f"{log} {e['how']} {way} {e['writer']}", e)

    # --- the cluster's side ---

    def _replicas(self, identity: MessageIdentity, own: Found) -> Iterator[HistoryEntry]:
        events = [
            e for e in self.h.of("replicas") if MessageIdentity(int(e["session"]), int(e["seq"])) == identity
        ]
        for e in events:
            yield HistoryEntry(e["t"], "replicas", f"{classify(e)}; {e['detail']}", e)
        acked = any(a.row["outcome"] == Outcome.ACKED for a in own.attempts)
        if acked and not events and not any(s.how == "read_uncommitted" for s in own.seen):
            yield HistoryEntry(None, "replicas", classify(None))

    def _windows(self, times: Sequence[int]) -> Iterator[HistoryEntry]:
        lives: dict[int, list[Event]] = {}
        for e in self.h.of("window"):
            lives.setdefault(int(e["window"]), []).append(e)
        for number, life in sorted(lives.items()):
            ends = [e["t"] for e in life if e["step"] in ("heal", "healed")]  # without one it stays open
            if times and life[0]["t"] <= max(times) and max(ends, default=max(times)) >= min(times):
                yield from (
                    HistoryEntry(e["t"], "fault", f"window {number} {_window_text(e)}", e) for e in life
                )


def _plain(row: Any) -> dict[str, Any]:
    return {name: row[name].item() for name in row.dtype.names if not name.endswith(("mark", "spare"))}


def _window_text(e: Event) -> str:
    fault = f"{e.get('fault')} on {e.get('target')} ({', '.join(e.get('nodes', ()))})"
    proof = e.get("proof") or e.get("text") or "no proof"
    if e["step"] == "bite":
        return f"{'bites' if e.get('bit') else 'does not bite'}: {proof}"
    if e["step"] == "healed":
        return f"{'has healed' if e.get('healed') else 'has not healed'}: {proof}"
    return {"open": f"opens: {fault}", "heal": "is being undone"}.get(e["step"], f"{e['step']}: {proof}")


def _error_name(code: int) -> str:
    from confluent_kafka import KafkaError  # only if there was an error: it takes long to load

    return f"{KafkaError(code).name()} ({code})"
