"""Random histories with planted anomalies, and exactly what has to be found in them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.contracts import Mode, Outcome
from harness.message import BAD_KEY
from harness.testing.ledgers import LiteralRun, Record, Sent

from .together import Finding

SESSIONS, PARTITIONS, TXN_SIZE = 2, 2, 3
READER = "consumer-1.0"


@dataclass(frozen=True)
class Send:
    session: int
    partition: int
    end: str  # of the send, or in a transactional history of its whole transaction (that of its first send counts)
    gap: int  # markers before it


@dataclass(frozen=True)
class Plant:
    kind: str
    at: int  # which of the messages that can bear it, counted around


@dataclass(frozen=True)
class History:
    transactional: bool
    sends: tuple[Send, ...]
    plants: tuple[Plant, ...]


PLAIN_ENDS = ("acked", "acked", "acked", "unknown and written", "unknown and gone", "rejected")
TXN_ENDS = ("commit", "commit", "abort", "unknown and written", "unknown and gone", "never ended")
PLANTS = (
    "lose",
    "duplicate",
    "swap",
    "phantom",
    "corrupt",
    "misplace",
    "undeliver",
    "redeliver",
    "read aborted",
)


@st.composite
def histories(draw: st.DrawFn) -> History:
    transactional = draw(st.booleans())
    one = st.builds(
        Send, st.integers(1, SESSIONS), st.integers(0, PARTITIONS - 1),
        st.sampled_from(TXN_ENDS if transactional else PLAIN_ENDS), st.sampled_from((0, 0, 0, 1, 5)),
    )  # fmt: skip
    sends = draw(st.lists(one, min_size=1, max_size=24))
    plants = draw(st.lists(st.builds(Plant, st.sampled_from(PLANTS), st.integers(0, 23)), max_size=4))
    return History(transactional, tuple(sends), tuple(plants))


def drawn(count: int, *, derandomize: bool = True) -> list[History]:
    """Histories as Hypothesis draws them. Drawing only: a Spark job for each would take hours."""
    batches: list[list[History]] = []

    # The first example of Hypothesis is the simplest one there is, so the second one is taken.
    @settings(
        max_examples=2,
        deadline=None,
        database=None,
        derandomize=derandomize,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(histories(), min_size=count, max_size=count))
    def collect(batch: list[History]) -> None:
        batches.append(batch)

    collect()
    return batches[-1]


class Built:
    """A history as a literal run, with the findings that its plants ask for."""

    def __init__(self, history: History, root: Path, name: str) -> None:
        mode = Mode.EXACTLY_ONCE if history.transactional else Mode.AT_LEAST_ONCE
        self.run = LiteralRun(root, mode=mode, name=name, partitions=PARTITIONS + 1)
        self.expected: set[Finding] = set()
        self._aborted: set[tuple[int, int]] = set()
        self._touched: set[tuple[int, int]] = set()
        for session in range(1, SESSIONS + 1):
            self.run.session(session)
        (self._transact if history.transactional else self._send)(history.sends)
        run = self.run
        run.committed = [r for r in run.log if r.txn == 0 or (r.session, r.txn) in self._readable]
        run.deliveries = [(READER, r) for r in run.committed]
        for plant in history.plants:
            self._plant(plant)

    _readable: set[tuple[int, int]] = set()  # noqa: RUF012  replaced, never changed

    def _send(self, sends: tuple[Send, ...]) -> None:
        for send in sends:
            one = self.run.send(send.session, send.partition)
            if send.end in ("acked", "unknown and written"):
                self.run.append(one, ack=send.end == "acked", gap=send.gap)
            elif send.end == "rejected":
                one.outcome = Outcome.REJECTED

    def _transact(self, sends: tuple[Send, ...]) -> None:
        """Each session's sends in groups, a transaction each."""
        readable = set()
        for session in range(1, SESSIONS + 1):
            mine = [s for s in sends if s.session == session]
            for txn, first in enumerate(range(0, len(mine), TXN_SIZE), start=1):
                group, end = mine[first : first + TXN_SIZE], mine[first].end
                for send in group:
                    self.run.append(self.run.send(session, send.partition, txn=txn), gap=send.gap)
                did = {"abort": "abort", "never ended": None}.get(end, "commit")
                self.run.end(session, txn, did, Outcome.ACKED if end in ("commit", "abort") else None)
                if end in ("commit", "unknown and written"):
                    readable.add((session, txn))
                elif end in ("abort", "never ended"):
                    self._aborted.add((session, txn))
        self._readable = readable

    # --- plants ---

    def _plant(self, plant: Plant) -> None:
        assert self.run.committed is not None
        bearers = [r for r in self.run.committed if (r.session, r.seq) not in self._touched and self._owed(r)]
        if plant.kind == "phantom":
            self._phantom(plant)
        elif plant.kind == "misplace":
            self._misplace(plant)
        elif plant.kind == "read aborted":
            self._read_aborted(plant)
        elif bearers:
            record = bearers[plant.at % len(bearers)]
            getattr(self, f"_{plant.kind}")(record)

    def _owed(self, r: Record) -> bool:
        return r.txn > 0 or self._sent(r).outcome is Outcome.ACKED

    def _sent(self, r: Record) -> Sent:
        return next(s for s in self.run.sent if (s.session, s.seq) == (r.session, r.seq))

    def _expect(self, anomaly: str, r: Record, *offsets: int) -> None:
        self._touched.add((r.session, r.seq))
        self.expected.add((anomaly, (f"producer-{r.session}.0-{r.seq}",), offsets or (r.offset,)))

    def _everywhere(self) -> list[list[Record]]:
        assert self.run.committed is not None
        return [self.run.log, self.run.committed]

    def _lose(self, r: Record) -> None:
        # The last witness of an unknown transaction is also the proof that it was committed (E2).
        assert self.run.committed is not None
        assert self.run.deliveries is not None
        others = [
            c for c in self.run.committed if (c.session, c.txn) == (r.session, r.txn) and c.seq != r.seq
        ]
        if r.txn and not others:
            return
        for places in self._everywhere():
            places.remove(r)
        self.run.deliveries.remove((READER, r))
        self._expect("lost", r)

    def _duplicate(self, r: Record) -> None:
        assert self.run.deliveries is not None
        copy = replace(r, offset=self.run._next[r.partition] + 3)
        self.run._next[r.partition] = copy.offset + 1
        for places in self._everywhere():
            places.append(copy)
        self.run.deliveries.append((READER, copy))
        self._expect("duplicated", r, r.offset, copy.offset)

    def _swap(self, r: Record) -> None:
        """With the next one of its session in its partition; both keep their acks with their places."""
        run = self.run
        line = sorted(
            (c for c in run.log if (c.session, c.partition) == (r.session, r.partition)),
            key=lambda c: c.offset,
        )
        after = [c for c in line if c.offset > r.offset]
        if (
            not after
            or (after[0].session, after[0].seq) in self._touched
            or after[0] not in (run.committed or [])
        ):
            return
        other = after[0]
        if self._sent(other).seq < r.seq or not self._owed(other):
            return
        new = {r: replace(r, offset=other.offset), other: replace(other, offset=r.offset)}
        for places in self._everywhere():
            places[:] = [new.get(c, c) for c in places]
        run.deliveries = [(reader, new.get(c, c)) for reader, c in run.deliveries or []]
        for record in new.values():
            self._sent(record).offset = record.offset
            self._touched.add((record.session, record.seq))
        pair = (f"producer-{r.session}.0-{other.seq}", f"producer-{r.session}.0-{r.seq}")
        self.expected.add(("reordered", pair, (r.offset, other.offset)))

    def _corrupt(self, r: Record) -> None:
        for places in self._everywhere():
            places[places.index(r)] = replace(r, flags=BAD_KEY)
        self._expect("corrupted", r)

    def _undeliver(self, r: Record) -> None:
        assert self.run.deliveries is not None
        self.run.deliveries.remove((READER, r))
        self._expect("undelivered", r)

    def _redeliver(self, r: Record) -> None:
        assert self.run.deliveries is not None
        self.run.deliveries.append(("consumer-2.0", r))
        self._expect("redelivered", r)

    def _phantom(self, plant: Plant) -> None:
        assert self.run.deliveries is not None
        ghost = Record(1 + plant.at % SESSIONS, 1000 + plant.at, PARTITIONS, 100 + plant.at)
        if (ghost.session, ghost.seq) in self._touched:
            return
        for places in self._everywhere():
            places.append(ghost)
        self.run.deliveries.append((READER, ghost))
        self._expect("phantom", ghost)

    def _misplace(self, plant: Plant) -> None:
        """A new message, meant for partition 0, that stands in the last one."""
        if self.run.mode is Mode.EXACTLY_ONCE:
            return
        record = self.run.append(self.run.send(1, 0), partition=PARTITIONS, gap=200)
        assert self.run.committed is not None
        assert self.run.deliveries is not None
        self.run.committed.append(record)
        self.run.deliveries.append((READER, record))
        self._expect("misplaced", record)

    def _read_aborted(self, plant: Plant) -> None:
        assert self.run.deliveries is not None
        aborted = [
            r
            for r in self.run.log
            if (r.session, r.txn) in self._aborted and (r.session, r.seq) not in self._touched
        ]
        if aborted:
            record = aborted[plant.at % len(aborted)]
            self.run.deliveries.append((READER, record))
            self._expect("aborted_read", record)
