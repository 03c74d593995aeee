"""Random histories with planted anomalies, and exactly what has to be found in them.

A history is plain data: what was sent, what then happened to the log, and what the group did, step by step. `Built`
plays it on a literal run. The code that plants an anomaly records the expected finding at once; nothing is looked up
in the tables, so the expectation is a third opinion beside the Spark job and the oracle.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from pathlib import Path

from harness.contracts import Mode, Outcome
from harness.ledger.literal_history import Record, Sent
from harness.ledger.literal_run import LiteralRun
from harness.ledger.manifest import ISOLATIONS
from harness.ledger.message import BAD_HEADER, BAD_KEY, BAD_PAYLOAD, BAD_TIMESTAMP, FOREIGN_RUN
from tests.reconcile.together import Finding

SENDERS = {
    1: ("producer-1", 0),
    2: ("producer-2", 0),
    3: ("producer-1", 1),
}  # session -> producer, incarnation
PARTITIONS, TXN_SIZE = 3, 3
READERS = ("consumer-1.0", "consumer-2.0")
UNLIKE_ANY_KEY = 99
APART_S = 0.2  # sends of two producers have an order when they are so far apart


@dataclass(frozen=True)
class Send:
    session: int
    partition: int
    end: str  # of the send, or in a transactional history of its whole transaction (that of its first send counts)
    gap: int = 0  # markers before it
    keyed: bool = False  # with a key, and the partition left to the client
    quiet: bool = False  # in a transaction: its own ack never came
    eager: bool = False  # in a transaction: a reader gets it before the end


@dataclass(frozen=True)
class SameKey:
    """Messages with one key that no other message has."""

    how: str  # one of SAME_KEY
    partition: int


@dataclass(frozen=True)
class Plant:
    """Something that happens to the log, or in it."""

    kind: str  # one of PLANTS
    at: int  # which of those that can bear it, counted around


@dataclass(frozen=True)
class Poll:
    """A reader gets records with one call; each move is a partition and how many records it jumps over, or back."""

    moves: tuple[tuple[int, int], ...]
    reader: int


@dataclass(frozen=True)
class Rebalance:
    partitions: tuple[int, ...]
    to: int  # a reader
    jump: int  # where the new owner begins, from where the old one was
    early: bool = False  # the new owner is given a partition before the old one has given it back


@dataclass(frozen=True)
class Commit:
    partition: int
    ahead: int  # by how many readable records it is beyond what the group was given
    outcome: Outcome


Action = Poll | Rebalance | Commit


@dataclass(frozen=True)
class History:
    transactional: bool
    sends: tuple[Send | SameKey, ...]
    plants: tuple[Plant, ...] = ()
    actions: tuple[Action, ...] = ()
    isolation: str = "read_committed"
    partitions_added: bool = False
    drained: bool = True
    before: int = 0  # ordinary messages before all others, so that these cross a border of the job's blocks


PLAIN_ENDS = ("acked", "acked", "acked", "unknown and written", "unknown and gone", "rejected")
TXN_ENDS = ("commit", "commit", "commit", "abort", "unknown and written", "unknown and gone", "never ended")
SAME_KEY = ("long before", "concurrent", "next incarnation", "in order", "by two", "moved", "moved")
PLANTS = (
    "lose", "lose", "hide", "duplicate", "swap", "fall back", "run ahead", "phantom", "foreign", "stray", "corrupt",
    "damage", "alter", "misplace", "read aborted", "retention", "hang", "stop",
)  # fmt: skip


def drawn(count: int, seed: int = 1) -> list[History]:
    """So many histories; the same seed gives the same ones."""
    return [_history(random.Random(f"{seed} {number}")) for number in range(count)]


def _history(dice: random.Random) -> History:
    transactional = dice.random() < 0.5
    sends = tuple(
        SameKey(dice.choice(SAME_KEY), _partition(dice))
        if dice.random() < 0.08
        else _send(dice, transactional)
        for _ in range(dice.randint(3, 24))
    )
    return History(
        transactional,
        sends,
        plants=tuple(Plant(dice.choice(PLANTS), dice.randrange(24)) for _ in range(dice.randint(0, 4))),
        actions=tuple(_action(dice) for _ in range(dice.randint(0, 14))),
        isolation=dice.choice(("read_committed", "read_committed", "read_uncommitted")),
        partitions_added=dice.random() < 0.5,
        drained=dice.random() < 0.7,
        before=dice.choice((0, 0, 0, 0, 60, 125)),
    )


def _send(dice: random.Random, transactional: bool) -> Send:
    end = dice.choice(TXN_ENDS if transactional else PLAIN_ENDS)
    quiet, eager = (transactional and dice.random() < 0.07 for _ in range(2))
    gap = dice.choice((0, 0, 0, 0, 1, 1, 5, 5, 70))
    return Send(
        dice.randint(1, 2), _partition(dice), end, gap, keyed=dice.random() < 0.2, quiet=quiet, eager=eager
    )


def _partition(dice: random.Random) -> int:
    # The first ones get more, so that something can happen in them.
    return dice.choice((0, 0, 0, 1, 1, 2))


def _action(dice: random.Random) -> Action:
    kind = dice.random()
    if kind < 0.6:
        jumps = (0,) * 12 + (1, 2, -1, -2)
        moves = tuple((_partition(dice), dice.choice(jumps)) for _ in range(dice.randint(1, 6)))
        return Poll(moves, dice.randint(0, 1))
    if kind < 0.8:
        touched = tuple(sorted({_partition(dice) for _ in range(2)}))
        to, jump = dice.randint(0, 1), dice.choice((0, 0, 1, 2, -1, -3))
        # Of one partition only: two such findings of one run would not differ in anything but the time.
        return Rebalance(touched, to, jump, early=len(touched) == 1 and dice.random() < 0.2)
    outcome = dice.choice((Outcome.ACKED, Outcome.ACKED, Outcome.UNKNOWN, Outcome.REJECTED))
    return Commit(_partition(dice), dice.choice((0, 0, 1, 3, 12)), outcome)


Message = tuple[int, int]  # session, seq


def named(session: int, seq: int) -> str:
    producer, incarnation = SENDERS[session]
    return f"{producer}.{incarnation}-{seq}"


def self_named(r: Record) -> tuple[str, ...]:
    """A record's name, when the record can say it."""
    return () if r.flags & (BAD_PAYLOAD | FOREIGN_RUN) else (named(r.session, r.seq),)


class Built:
    """A history as a literal run, with the findings that it asks for."""

    def __init__(self, history: History, root: Path, name: str) -> None:
        self.run = LiteralRun(
            root, mode=Mode.EXACTLY_ONCE if history.transactional else Mode.AT_LEAST_ONCE, name=name,
            partitions=PARTITIONS, isolation=history.isolation, commits=False, drained=history.drained,
        )  # fmt: skip
        if history.partitions_added:
            self.run.manifest["topic_unchanged"] = False
        self.rows: Counter[Finding] = Counter()  # what has to be found, and how often
        self._group = _Group(self.run)
        self._producers = _Producers(self, history)
        self._log = _Log(self, self._producers)
        for plant in sorted(history.plants, key=lambda p: p.kind not in ("retention", "hang")):
            self._log.plant(plant)
        self._log.close()
        self._group.play(self, history, self._log)
        self._expect_reads()
        self._expect_missing()
        self._expect_keys(history.partitions_added)

    @property
    def expected(self) -> set[Finding]:
        return set(self.rows)

    @property
    def repeats(self) -> bool:
        """Two of its findings differ in nothing but their reader or time."""
        return self.rows.total() > len(self.rows)

    @property
    def group(self) -> _Group:
        return self._group

    def expect(self, anomaly: str, messages: tuple[str, ...], offsets: tuple[int, ...]) -> None:
        self.rows[anomaly, messages, offsets] += 1

    def _expect_reads(self) -> None:
        """Expect the findings that follow from the deliveries of each position: count, readers and times."""
        times: Counter[tuple[int, int]] = Counter()
        by: dict[tuple[Record, str], int] = {}
        for reader, record in self._group.gave:
            times[record.partition, record.offset] += 1
            by.setdefault((replace(record, t=0, flags=0), reader), record.t)
        names = self._log.names
        for place, count in times.items():
            if count > 1:
                self.expect("redelivered", names[place], (place[1],))
        for partition, offsets in self._log.readable.items():
            if (self.run.isolation, partition) in self.run.unfinished:
                continue
            limit = self._group.limit(partition, self.run.bounds[partition][1])
            for offset in offsets:
                if offset < limit and not times[partition, offset]:
                    self.expect("undelivered", names[partition, offset], (offset,))
        for (record, _), t in by.items():
            txn = self._producers.txns.get((record.session, record.seq))
            if txn is None:
                continue
            if txn in self._producers.aborted:
                self.expect("aborted_read", (named(record.session, record.seq),), (record.offset,))
            elif t < self._producers.asked[txn]:
                self.expect("premature_read", (named(record.session, record.seq),), (record.offset,))

    def _expect_missing(self) -> None:
        """Lost, expired and late ones, as far as they are owed at all; transactions that lost some of theirs."""
        lost: dict[tuple[int, int], list[Sent]] = defaultdict(list)
        committed = self._committed()
        for (session, seq), (kind, place) in sorted(self._log.missing.items()):
            one = self._producers.sent[session, seq]
            if not ((session, one.txn) in committed if one.txn else one.outcome is Outcome.ACKED):
                continue
            if not self._can_be_judged(one, kind, place):
                continue
            offset = one.offset if one.outcome is Outcome.ACKED else place
            if kind == "expired" and offset is None:
                offset = self._log.gone[session, seq].offset  # as its readers recorded it
            self.expect(kind, (named(session, seq),), () if offset is None else (offset,))
            if kind == "lost" and one.txn:
                lost[session, one.txn].append(one)
        for txn, gone in lost.items():
            if any(self._producers.txns.get(message) == txn for message in self._log.visible):
                acked = tuple(one.offset for one in gone if one.outcome is Outcome.ACKED)
                self.expect("torn", tuple(named(one.session, one.seq) for one in gone), acked)

    def _can_be_judged(self, one: Sent, kind: str, place: int | None) -> bool:
        """Return True if its partition was read whole, and its position is known if older records were deleted."""
        partition = self._log.gone[one.session, one.seq].partition
        placed = one.outcome is Outcome.ACKED or place is not None
        placed = placed or self._group.first_given(self._log.gone[one.session, one.seq]) is not None
        may_be_in = [partition] if placed or one.partition >= 0 else range(PARTITIONS)
        needed = ISOLATIONS if self.run.mode is Mode.EXACTLY_ONCE else ISOLATIONS[:1]
        if any((isolation, p) in self.run.unfinished for isolation in needed for p in may_be_in):
            return False
        return placed or kind == "late" or all(start_of(self.run, p) == 0 for p in may_be_in)

    def _committed(self) -> set[tuple[int, int]]:
        """Return the committed transactions: acked, or unknown and read by a read_committed reader (E2)."""
        assert self.run.committed is not None
        seen = {(r.session, r.txn) for r in self.run.committed}
        if self.run.isolation == "read_committed":
            seen |= {(r.session, r.txn) for _, r in self._group.gave if not r.flags & BAD_PAYLOAD}
        return self._producers.told_committed | (self._producers.unknown & seen)

    def _expect_keys(self, partitions_added: bool) -> None:
        places = {(r.session, r.seq): r for r in reversed(self.run.log)}
        for same in self._producers.same_key:
            placed = [places[one.session, one.seq] for one in same.sent if (one.session, one.seq) in places]
            if len(placed) < 2:
                continue
            first, last = placed[0], placed[-1]
            came = [self._group.first_given(r) for r in (first, last)]
            if same.moved:
                if not partitions_added:
                    self._expect_both("misplaced", *sorted((first, last), key=lambda r: r.partition))
                if came[0] is not None and came[1] is not None and came[1] < came[0]:
                    self._expect_both("key_reordered", first, last)
            elif same.overtaken and first.seq == same.sent[0].seq and first.session == same.sent[0].session:
                self._expect_both("key_reordered", first, last)

    def _expect_both(self, anomaly: str, a: Record, b: Record) -> None:
        self.expect(anomaly, (named(a.session, a.seq), named(b.session, b.seq)), (a.offset, b.offset))


@dataclass(frozen=True)
class _Same:
    sent: tuple[Sent, ...]  # in order of sending
    overtaken: bool  # the first one is behind all others, and was certainly sent before them
    moved: bool  # the two are in different partitions


def start_of(run: LiteralRun, partition: int) -> int:
    """Return the start of the log: the higher one of before and after its reading."""
    return max(bounds.get(partition, (0, 0, 0))[0] for bounds in (run.bounds, run.bounds_after))


class _Producers:
    """Plays what was sent. Afterwards the log is as it should be."""

    def __init__(self, built: Built, history: History) -> None:
        self._built, self._run = built, built.run
        self.sent: dict[Message, Sent] = {}
        self.txns: dict[Message, tuple[int, int]] = {}
        self.aborted: set[tuple[int, int]] = set()
        self.told_committed: set[tuple[int, int]] = set()
        self.unknown: set[tuple[int, int]] = set()
        self.readable: set[tuple[int, int]] = set()  # transactions whose records a read_committed reader gets
        self.asked: dict[tuple[int, int], int] = {}  # when the end was asked for
        self.fixed: set[Message] = set()  # messages that nothing else may be planted on
        self.same_key: list[_Same] = []
        self._open: dict[int, list[Send]] = {}
        self._ended: Counter[int] = Counter()  # transactions of each session
        self._isolation = history.isolation
        for session, (producer, incarnation) in SENDERS.items():
            self._run.session(session, producer, incarnation)
        for number in range(history.before):
            self._send(Send(1 + number % 2, 0, "acked"))
        self.fixed |= self.sent.keys()
        for number, send in enumerate(history.sends):
            if isinstance(send, SameKey):
                self._same_key(send, number)
            elif history.transactional:
                self._transact(send, number)
            else:
                self._send(send)
        for session in sorted(self._open):
            self._end(session)

    def _attempt(
        self, session: int, partition: int, key: int = -1, txn: int = 0, *, chosen: bool = False
    ) -> Sent:
        one = self._run.send(session, partition, key=key, txn=txn, chosen=chosen)
        self.sent[session, one.seq] = one
        return one

    def _send(self, send: Send) -> None:
        one = self._attempt(send.session, send.partition, *self._key(send), chosen=send.keyed)
        if send.end in ("acked", "unknown and written"):
            self._run.append(one, send.partition, ack=send.end == "acked", gap=send.gap)
        elif send.end == "rejected":
            one.outcome = Outcome.REJECTED

    def _key(self, send: Send) -> tuple[int]:
        # One key for each session and partition: it neither moves nor does another session send it.
        return (10 * send.session + send.partition if send.keyed else -1,)

    def _transact(self, send: Send, number: int) -> None:
        """The sends of a session in groups, a transaction each; those of two sessions overlap."""
        group = self._open.setdefault(send.session, [])
        group.append(send)
        txn = send.session, self._ended[send.session] + 1
        one = self._attempt(send.session, send.partition, *self._key(send), txn[1], chosen=send.keyed)
        self.txns[one.session, one.seq] = txn
        record = self._run.append(one, send.partition, ack=not send.quiet, gap=send.gap)
        # Reading it would prove that a transaction was committed which shall be gone.
        proof = group[0].end == "unknown and gone" and self._isolation == "read_committed"
        if send.eager and not proof:
            self._built.group.give(f"eager-{number}.0", record)
            self.fixed.add((one.session, one.seq))
        if len(group) == TXN_SIZE:
            self._end(send.session)

    def _end(self, session: int) -> None:
        end = self._open.pop(session)[0].end
        self._ended[session] += 1
        txn = session, self._ended[session]
        did = {"abort": "abort", "never ended": None}.get(end, "commit")
        self.asked[txn] = self._run.clock + 1  # all that came until now came before
        self._run.end(*txn, did, Outcome.ACKED if end in ("commit", "abort") else None)
        if end in ("commit", "unknown and written"):
            self.readable.add(txn)
        kinds = {"commit": self.told_committed, "abort": self.aborted, "never ended": self.aborted}
        kinds.get(end, self.unknown).add(txn)

    def _same_key(self, same: SameKey, number: int) -> None:
        run, key, how = self._run, 1000 + number, same.how
        other = {"next incarnation": 3, "moved": 1}.get(how, 2)
        sent = [self._attempt(1, same.partition, key, chosen=True)]
        if how == "moved":
            there = (same.partition + 1) % PARTITIONS
            run.append(sent[0], same.partition)
            sent.append(self._attempt(1, there, key, chosen=True))
            run.append(sent[1], there)
        else:
            # Both places are chosen before the second is sent, because the ack of the first has to come before that.
            behind = run._next.get(same.partition, 0) + (0 if how == "in order" else 2)
            run.ack(sent[0], same.partition, behind)
            run.tick(0.15 if how in ("concurrent", "next incarnation") else APART_S)
            sent += [
                self._attempt(other, same.partition, key, chosen=True)
                for _ in range(2 if how == "by two" else 1)
            ]
            if how == "in order":
                self._place(sent[0], same.partition, behind)
            for one in sent[1:]:
                run.append(one, same.partition)
            if how != "in order":
                self._place(sent[0], same.partition, behind)
        self.fixed |= {(one.session, one.seq) for one in sent}
        self.same_key.append(
            _Same(tuple(sent), how in ("long before", "next incarnation", "by two"), how == "moved")
        )

    def _place(self, one: Sent, partition: int, offset: int) -> None:
        self._run.log.append(one.at(partition, offset))
        self._run._next[partition] = offset + 1


class _Log:
    """Anomalies planted in the log. Bearers are messages that nothing else was planted on."""

    def __init__(self, built: Built, producers: _Producers) -> None:
        self._built, self._run, self._producers = built, built.run, producers
        self._run.committed = [
            r for r in self._run.log if r.txn == 0 or (r.session, r.txn) in producers.readable
        ]
        self._touched: set[Message] = set(producers.fixed)
        self._full: set[int] = set()  # partitions to which nothing may be appended
        self._start: dict[int, int] = {}
        self._moved_late: set[int] = set()  # partitions whose start moved while they were read
        self._stable: dict[int, int] = {}
        self._given_as: dict[Record, Record] = {}  # a damaged record, and what the group gets of it
        self._whole: dict[Record, Record] = {}  # and what it was before
        self._expired: list[Record] = []
        self._leaked: list[Record] = []
        self.missing: dict[Message, tuple[str, int | None]] = {}  # the anomaly, and its position nevertheless
        self.gone: dict[Message, Record] = {}  # those of `missing`, where they are or were
        self.visible: set[Message] = set()
        self.names: dict[tuple[int, int], tuple[str, ...]] = {}  # of all positions
        self.readable: dict[int, list[int]] = {}  # by partition, in the end
        self.streams: dict[int, list[Record]] = {}  # what the group could get, by partition, in order

    @property
    def _committed(self) -> list[Record]:
        assert self._run.committed is not None
        return self._run.committed

    @property
    def _both(self) -> tuple[list[Record], list[Record]]:
        return self._run.log, self._committed

    def plant(self, plant: Plant) -> None:
        getattr(self, "_" + plant.kind.replace(" ", "_"))(plant.at)

    def close(self) -> None:
        """Nothing more happens to it."""
        run = self._run
        for partition in range(PARTITIONS):
            end = run._next.get(partition, 0)
            start, stable = self._start.get(partition, 0), self._stable.get(partition, end)
            run.bounds[partition] = 0 if partition in self._moved_late else start, end, stable
            run.bounds_after[partition] = start, end, stable
        readable = self._committed if run.isolation == "read_committed" else run.log
        for partition in range(PARTITIONS):
            self.readable[partition] = [r.offset for r in readable if r.partition == partition]
            stream = [r for r in (*readable, *self._leaked, *self._expired) if r.partition == partition]
            stream.sort(key=lambda r: r.offset)
            self.streams[partition] = [self._given_as.get(r, r) for r in stream]
        for r in (*run.log, *self._expired, *(r for _, r in self._built.group.gave)):
            self.names.setdefault((r.partition, r.offset), self_named(r))
        for harmed, whole in self._whole.items():
            self.names[harmed.partition, harmed.offset] = (named(whole.session, whole.seq),)
        promised = self._committed if run.mode is Mode.EXACTLY_ONCE else run.log
        for r in promised:
            whole = self._whole.get(r, r)
            self.visible.add((whole.session, whole.seq))

    def self_named(self, partition: int, offsets: list[int]) -> tuple[str, ...]:
        records = {r.offset: r for r in self._run.log if r.partition == partition}
        return tuple(name for offset in offsets for name in self_named(records[offset]))

    def _expect(self, anomaly: str, r: Record, *offsets: int) -> None:
        self._touched.add((r.session, r.seq))
        self._built.expect(anomaly, (named(r.session, r.seq),), offsets or (r.offset,))

    def _bearers(self) -> list[Record]:
        mine = self._producers.sent.keys() - self._touched
        return [r for r in self._committed if (r.session, r.seq) in mine and not r.flags]

    def _bearer(self, at: int) -> Record | None:
        bearers = self._bearers()
        return bearers[at % len(bearers)] if bearers else None

    def _sent(self, r: Record) -> Sent:
        return self._producers.sent[r.session, r.seq]

    # --- what is missing ---

    def _retention(self, at: int) -> None:
        """The oldest records of a partition are deleted. The group may have got them before."""
        partition = at % PARTITIONS
        line = sorted((r for r in self._run.log if r.partition == partition), key=lambda r: r.offset)
        gone = line[: 1 + at // PARTITIONS % 4]
        if not gone or partition in self._start:
            return
        if at % 2:
            self._moved_late.add(partition)
        self._start[partition] = gone[-1].offset + 1
        for r in gone:
            if r in self._committed or self._run.isolation == "read_uncommitted":
                self._expired.append(r)
            for places in self._both:
                if r in places:
                    places.remove(r)
            self._miss(r, "expired", None)

    def _hang(self, at: int) -> None:
        """A transaction of another producer is still open: the last stable offset stays where it began."""
        partition = at % PARTITIONS
        line = [r for r in self._run.log if r.partition == partition]
        if self._run.mode is not Mode.EXACTLY_ONCE or not line or partition in self._stable:
            return
        self._stable[partition] = stable = sorted(r.offset for r in line)[
            -1 - at // PARTITIONS % min(4, len(line))
        ]
        self._full.add(partition)
        for r in line:
            if r.offset >= stable:
                if r in self._committed:
                    self._committed.remove(r)
                # Nothing is owed of a transaction that was never committed, so nothing is expected then.
                self._miss(r, "late", r.offset)

    def _miss(self, r: Record, kind: str, stands_at: int | None) -> None:
        self._touched.add((r.session, r.seq))
        self.missing[r.session, r.seq] = kind, stands_at
        self.gone[r.session, r.seq] = r

    def _stop(self, at: int) -> None:
        """The final reading of a partition leaves no event of its end: nothing is missing there."""
        self._run.unfinished.add((ISOLATIONS[at // PARTITIONS % 2], at % PARTITIONS))

    def _lose(self, at: int) -> None:
        r = self._bearer(at)
        if r is not None:
            for places in self._both:
                places.remove(r)
            self._miss(r, "lost", None)

    def _hide(self, at: int) -> None:
        """It is in the log, and the read_committed reading passes over it."""
        r = self._bearer(at)
        if r is not None and self._run.mode is Mode.EXACTLY_ONCE:
            self._committed.remove(r)
            self._miss(r, "lost", r.offset)

    # --- what is where it should not be ---

    def _duplicate(self, at: int) -> None:
        r = self._bearer(at)
        if r is None or r.partition in self._full:
            return
        copy = replace(r, offset=self._run._next[r.partition] + 3)
        self._run._next[r.partition] = copy.offset + 1
        for places in self._both:
            places.append(copy)
        self._expect("duplicated", r, r.offset, copy.offset)

    def _line_from(self, r: Record, length: int) -> list[Record]:
        """Return this many bearers that follow each other among the messages of their session."""
        line = sorted(
            (c for c in self._run.log if (c.session, c.partition) == (r.session, r.partition)),
            key=lambda c: c.offset,
        )
        cut = line[line.index(r) :][:length]
        bearers = self._bearers()
        return cut if len(cut) == length and all(c in bearers for c in cut) else []

    def _exchange(self, line: list[Record], order: list[Record]) -> None:
        """Put these messages at the places of `line` in this order; acks have the new places."""
        new = {r: replace(r, offset=place.offset) for r, place in zip(order, line, strict=True)}
        for places in self._both:
            places[:] = [new.get(c, c) for c in places]
        for record in new.values():
            self._touched.add((record.session, record.seq))
            if self._sent(record).outcome is Outcome.ACKED:
                self._sent(record).offset = record.offset

    def _swap(self, at: int) -> None:
        """Swap it with the next one of its session in its partition."""
        r = self._bearer(at)
        if r is not None and (line := self._line_from(r, 2)):
            self._exchange(line, line[::-1])
            self._reordered(line[0], line[1], line[1].offset, line[0].offset)

    def _fall_back(self, at: int) -> None:
        """One falls behind two that were sent after it: found once, with the later one of them."""
        r = self._bearer(at)
        if r is not None and (line := self._line_from(r, 3)):
            a, b, c = line
            self._exchange(line, [b, c, a])
            self._reordered(a, c, c.offset, b.offset)

    def _run_ahead(self, at: int) -> None:
        """One runs ahead of two: each of them is found behind it."""
        r = self._bearer(at)
        if r is not None and (line := self._line_from(r, 3)):
            a, b, c = line
            self._exchange(line, [c, a, b])
            self._reordered(a, c, b.offset, a.offset)
            self._reordered(b, c, c.offset, a.offset)

    def _reordered(self, first: Record, later: Record, *offsets: int) -> None:
        self._built.expect(
            "reordered", (named(first.session, first.seq), named(later.session, later.seq)), offsets
        )

    def _misplace(self, at: int) -> None:
        """A new message that is in another partition than its sender named."""
        meant, place = at % PARTITIONS, (at + 1) % PARTITIONS
        if place not in self._full:
            record = self._run.append(self._producers._attempt(1 + at % 2, meant), partition=place, gap=2)
            self._committed.append(record)
            self._expect("misplaced", record)

    # --- messages without a send ---

    def _appended(self, record: Record) -> Record | None:
        if record.partition in self._full:
            return None
        made = replace(record, offset=self._run._next.get(record.partition, 0) + 1)
        self._run._next[made.partition] = made.offset + 1
        for places in self._both:
            places.append(made)
        return made

    def _phantom(self, at: int) -> None:
        seq = 1000 + len(self._run.log)
        made = self._appended(Record(1 + at % 2, seq, at % PARTITIONS, 0, intended_partition=at % PARTITIONS))
        if made is not None:
            self._expect("phantom", made)

    def _foreign(self, at: int) -> None:
        made = self._appended(Record(7, 3, at % PARTITIONS, 0, flags=FOREIGN_RUN))
        if made is not None:
            self._built.expect("phantom", (), (made.offset,))

    def _stray(self, at: int) -> None:
        """A record that a reader got, without a send and not in the log."""
        partition, seq = at % PARTITIONS, 2000 + len(self._built.group.gave)
        self._built.group.give(f"stray-{seq}.0", Record(1 + at % 2, seq, partition, 5000 + seq))
        self._built.expect("phantom", (named(1 + at % 2, seq),), ())

    # --- what is not as it was sent ---

    def _harm(self, r: Record, harmed: Record, given: Record) -> None:
        for places in self._both:
            places[places.index(r)] = harmed
        self._given_as[harmed] = given
        self._whole[harmed] = r
        self._expect("corrupted", r)

    def _corrupt(self, at: int) -> None:
        r = self._bearer(at)
        if r is not None:
            harmed = replace(r, flags=(BAD_KEY, BAD_HEADER, BAD_TIMESTAMP)[at % 3])
            self._harm(r, harmed, harmed if at % 2 else r)

    def _damage(self, at: int) -> None:
        """Its payload is unreadable; the ack of its position names it."""
        r = self._bearer(at)
        if r is not None and self._sent(r).outcome is Outcome.ACKED:
            unreadable = Record(0, 0, r.partition, r.offset, 0, 0, 0, BAD_PAYLOAD)
            self._harm(r, unreadable, unreadable if at % 2 else r)

    def _alter(self, at: int) -> None:
        """Intact by its own checksum, but sent with another key."""
        r = self._bearer(at)
        if r is not None:
            harmed = replace(r, key=UNLIKE_ANY_KEY)
            self._harm(r, harmed, harmed if at % 2 else r)

    def _read_aborted(self, at: int) -> None:
        """The group gets it in its place, as if it were committed."""
        readable = {(r.partition, r.offset) for r in (*self._committed, *self._leaked)}
        aborted = [
            r for r in self._run.log
            if (r.session, r.txn) in self._producers.aborted and (r.session, r.seq) not in self._touched
            and (r.partition, r.offset) not in readable
        ]  # fmt: skip
        if aborted and self._run.isolation == "read_committed":
            self._leaked.append(aborted[at % len(aborted)])


class _Group:
    """The moves of the group, played; the expected finding of a step is recorded when the step is made."""

    def __init__(self, run: LiteralRun) -> None:
        self._run = run
        self.gave: list[tuple[str, Record]] = []
        self._touches: Counter[tuple[str, int]] = Counter()  # assignments that a reader got, by partition
        self._last: dict[tuple[str, int], tuple[Record, int]] = {}  # and how many of these there had been
        self._owner = dict.fromkeys(range(PARTITIONS), READERS[0])
        self._next = dict.fromkeys(range(PARTITIONS), 0)  # where its owner is in the stream
        self._committed: dict[int, int] = {}
        run.deliveries = []

    def give(self, reader: str, *records: Record) -> None:
        self._run.give(reader, *records, apart=False)
        assert self._run.deliveries is not None
        self.gave += self._run.deliveries[len(self.gave) :]

    def first_given(self, record: Record) -> int | None:
        same = (r.t for _, r in self.gave if (r.session, r.seq) == (record.session, record.seq))
        return min(same, default=None)

    def limit(self, partition: int, end: int) -> int:
        """Below it the group answers for every record."""
        return max(self._committed.get(partition, 0), end if self._run.drained else 0)

    def play(self, built: Built, history: History, log: _Log) -> None:
        self._built, self._log = built, log
        for reader in READERS:
            self._assign(reader, *(p for p, owner in self._owner.items() if owner == reader))
        self._poll(Poll(((0, 0),) * history.before, 0))
        for action in history.actions:
            if isinstance(action, Poll):
                self._poll(action)
            elif isinstance(action, Rebalance):
                self._rebalance(action)
            else:
                self._commit(action)
        if history.drained:
            for partition in sorted(range(PARTITIONS), key=lambda p: (p + len(history.sends)) % PARTITIONS):
                while self._left(partition) > 0:  # in every order of partitions, and a few at a time
                    self._poll(Poll(((partition, 0),) * 2, READERS.index(self._owner[partition])))
        for partition, owner in self._owner.items():  # all leave in an orderly way
            self._assign(owner, partition, how="revoked")

    def _left(self, partition: int) -> int:
        return len(self._log.streams[partition]) - self._next[partition]

    def _assign(self, reader: str, *partitions: int, how: str = "assigned") -> None:
        self._run.assign(reader, *partitions, how=how)
        for partition in partitions:
            self._touches[reader, partition] += 1

    def _poll(self, poll: Poll) -> None:
        reader, records = READERS[poll.reader], []
        for partition, jump in poll.moves:
            if self._owner[partition] != reader:
                continue
            self._next[partition] = max(0, self._next[partition] + jump)
            if self._left(partition) > 0:
                records.append(self._log.streams[partition][self._next[partition]])
                self._next[partition] += 1
                self._step(reader, records[-1])
        if records:
            self.give(reader, *records)

    def _step(self, reader: str, record: Record) -> None:
        """Expect the findings about the step from the previous delivery of this partition to this reader."""
        partition = record.partition
        last, touches = self._last.get((reader, partition), (None, 0))
        self._last[reader, partition] = record, self._touches[reader, partition]
        if last is None:
            return
        if record.offset <= last.offset:
            self._expect("rewound", last, record)
        elif touches == self._touches[reader, partition]:
            over = [o for o in self._log.readable[partition] if last.offset < o < record.offset]
            if over:
                self._expect("skipped", last, record, sorted(over))

    def _expect(self, anomaly: str, last: Record, record: Record, over: list[int] | None = None) -> None:
        jumped = over or []
        names = (*self_named(last), *self_named(record), *self._log.self_named(record.partition, jumped))
        self._built.expect(anomaly, names, (last.offset, record.offset, *jumped))

    def _rebalance(self, rebalance: Rebalance) -> None:
        to = READERS[rebalance.to]
        early = rebalance.early and all(self._owner[partition] != to for partition in rebalance.partitions)
        if early:
            self._assign(to, *rebalance.partitions)
        for partition in rebalance.partitions:
            self._assign(self._owner[partition], partition, how="revoked")
            self._owner[partition] = to
            self._next[partition] = max(0, self._next[partition] + rebalance.jump)
            if early:
                self._built.expect("two_owners", (), ())
        if not early:
            self._assign(to, *rebalance.partitions)

    def _commit(self, commit: Commit) -> None:
        partition = commit.partition
        given = max((r.offset for _, r in self.gave if r.partition == partition), default=None)
        unread = sorted(o for o in self._log.readable[partition] if given is None or o > given)
        beyond = unread[: commit.ahead]
        if not beyond and given is None:
            return
        offset = beyond[-1] + 1 if beyond else (given or 0) + 1
        # Only a reader that was given something has a journal; the first one has it anyway.
        owner = self._owner[partition]
        committer = owner if any(reader == owner for reader, _ in self.gave) else READERS[0]
        self._run.commit(committer, {partition: offset}, commit.outcome)
        if commit.outcome is Outcome.ACKED:
            self._committed[partition] = max(self._committed.get(partition, 0), offset)
            if beyond:
                names = self._log.self_named(partition, beyond[:10])
                start = start_of(self._run, partition)
                self._built.expect("overcommitted", names, (offset, start if given is None else given + 1))
