"""Producer sessions: unique numbers and ids over any number of sessions and lives, and an end to lost producers. TRUST T2."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from harness.contracts import Lane, Mode, Outcome, Producer, ProducerLost, ProducerSpec, SenderSpec
from harness.errors import OnceproofError
from harness.ledger import reading
from harness.ledger.journal import Ledger
from harness.ledger.message import Message
from harness.ledger.transform import Transform
from harness.scenario import Pipeline
from harness.workers.counters import Board
from harness.workers.producer_session import Session
from harness.workers.roles import _patience
from harness.workers.roles._patience import MOST_IN_A_ROW, Patience
from harness.workers.roles.copier import CopierRole, CopierRoleSpec
from harness.workers.roles.producer import ProducerRole, ProducerRoleSpec
from harness.workers.roles.transactional_producer import (
    TransactionalProducerRole,
    TransactionalProducerRoleSpec,
)
from harness.workers.session_numbers import (
    MOST_WORKERS,
    SESSIONS_PER_WORKER,
    next_incarnation,
    session_number,
)

COMMON: Mapping[str, Any] = {
    "name": "producer-1", "number": 1, "run": 7, "topic": "t", "lane": Lane.PRODUCE, "keyed": False,
    "partitions": 3, "payload_bytes": 128, "seed": 1, "bootstrap": "b:1",
}  # fmt: skip
SPEC = ProducerRoleSpec(**COMMON, mode=Mode.IDEMPOTENT, records_per_s=1000, flush_limit_s=1.0)
TRANSACTIONAL = TransactionalProducerRoleSpec(
    **COMMON,
    mode=Mode.EXACTLY_ONCE,
    records_per_s=1000,
    records_per_transaction=100,
    aborted_share=0.0,
    end_limit_s=1.0,
)
COPIER = CopierRoleSpec(
    **COMMON, mode=Mode.EXACTLY_ONCE, group="g", isolation="read_committed", kind=Pipeline.OFFSETS_IN_TRANSACTION,
    transform=Transform(1), inputs_per_transaction=100, aborted_share=0.0, end_limit_s=1.0,
)  # fmt: skip


def life(folder: Path, number: int, sessions: int) -> list[Session]:
    """Run one life of the worker, which opens so many sessions, as the harness starts it."""
    first = next_incarnation(folder, "producer-1")
    with Ledger(folder, f"producer-1.{number}") as book:
        board = Board(folder / f"{number}.board")
        return [Session(SPEC, book, board, first + n) for n in range(sessions)]


def test_no_number_occurs_twice_over_many_sessions_and_restarts(tmp_path: Path) -> None:
    """Before, the 101st session of a life had the number of the first one after the restart."""
    made = [
        session
        for number, count in enumerate((101, 3, 0, 1, 250))
        for session in life(tmp_path, number, count)
    ]
    numbers = [session.number for session in made]
    assert numbers == [SESSIONS_PER_WORKER + n for n in range(355)]
    started = [
        e for path in tmp_path.glob("*.events") for e in reading.read_events(path) if e["event"] == "session"
    ]
    assert sorted(e["incarnation"] for e in started) == list(range(355))


def test_a_worker_whose_name_begins_like_another_one_counts_by_itself(tmp_path: Path) -> None:
    with Ledger(tmp_path, "producer-10.0") as book:
        book.attempts(session_number(10, 4))
    assert next_incarnation(tmp_path, "producer-1") == 0
    assert next_incarnation(tmp_path, "producer-10") == 5


def test_numbers_of_different_workers_never_meet() -> None:
    assert session_number(2, 0) - session_number(1, SESSIONS_PER_WORKER - 1) == 1
    # With a transaction's number behind it, as reconciliation packs them, it still is a positive integer of 64 bits.
    assert session_number(MOST_WORKERS, SESSIONS_PER_WORKER - 1) << 32 | 0xFFFF_FFFF < 2**63


@pytest.mark.parametrize(
    ("worker", "incarnation"), [(0, 0), (MOST_WORKERS + 1, 0), (1, SESSIONS_PER_WORKER), (1, -1)]
)
def test_a_session_that_cannot_be_numbered_is_a_one_line_error(worker: int, incarnation: int) -> None:
    with pytest.raises(OnceproofError, match=r"(run fewer producers|make the run shorter)"):
        session_number(worker, incarnation)


# --- lost producers ---


class Clock:
    """A clock that advances only by sleeping."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(_patience, "time", self)

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += max(seconds, 0.001)


class NeverOpens:
    """A client whose producers cannot be opened."""

    def __init__(self) -> None:
        self.opened = 0

    def open_producer(self, settings: ProducerSpec) -> Any:
        self.opened += 1
        raise ProducerLost("init_transactions: not coordinator")

    def open_consumer(self, *_: Any) -> Any:
        return self

    def close(self) -> None:
        return


@pytest.mark.parametrize(
    ("role", "spec"),
    [
        (ProducerRole, replace(SPEC, mode=Mode.EXACTLY_ONCE)),
        (TransactionalProducerRole, TRANSACTIONAL),
        (TransactionalProducerRole, replace(TRANSACTIONAL, rival_of="producer-2")),
        (CopierRole, COPIER),
    ],
)
def test_a_producer_that_never_opens_is_given_up(
    role: Callable[..., Any], spec: SenderSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, a producer whose open failed at once made 3,238 sessions in a second."""
    clock, client = Clock(monkeypatch), NeverOpens()
    wanted = rf"producer-1 lost {MOST_IN_A_ROW} producers in a row without an acked record, the last one by: init_tr"
    board = Board(tmp_path / "board")
    with Ledger(tmp_path, "producer-1.0") as book, pytest.raises(OnceproofError, match=wanted):
        role(spec, board).work(client, book, lambda: False)
    assert client.opened == MOST_IN_A_ROW
    assert 100 < clock.now - 100.0 < 200, "pauses that grow, up to a limit"
    lost = [e for e in reading.read_events(tmp_path / "producer-1.0.events") if e["event"] == "lost_producer"]
    assert len({e["session"] for e in lost}) == MOST_IN_A_ROW


def test_a_worker_that_waits_for_its_next_producer_stops_when_asked(tmp_path: Path) -> None:
    client, begun = NeverOpens(), time.monotonic()
    with Ledger(tmp_path, "producer-1.0") as book:
        role = ProducerRole(SPEC, Board(tmp_path / "board"))
        role.work(client, book, lambda: client.opened >= 3)
    assert client.opened == 3
    assert time.monotonic() - begun < 5


def test_progress_ends_the_pauses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Clock(monkeypatch)
    with Ledger(tmp_path, "producer-1.0") as book:
        board = Board(tmp_path / "board")
        patience = Patience("producer-1", book, lambda: False)
        pauses = []
        for number in range(2 * MOST_IN_A_ROW):
            session = Session(SPEC, book, board, number)
            if number % 5 == 4:
                session.send(cast(Producer, Acked()), session.next_messages(1))
            patience.ended(session, ProducerLost("fenced"))
            pauses.append(patience.pause_s)
        assert pauses[:9] == pytest.approx([0, 0.1, 0.2, 0.4, 0, 0.1, 0.2, 0.4, 0.8])
        patience.ended(session, None)
        assert patience.pause_s == 0


class Acked:
    """A producer that acks every record."""

    def send(self, message: Message, on_outcome: Callable[[int, int, int, int, int], None]) -> None:
        on_outcome(message.seq, Outcome.ACKED, 0, message.seq, 0)
