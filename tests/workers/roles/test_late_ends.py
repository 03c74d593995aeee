"""Parts of the late EndTxn: a transaction that stops midway, a bystander, and the scenarios as data."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.contracts import Lane, Mode, Outcome
from harness.ledger.journal import Ledger
from harness.ledger.message import Message
from harness.ledger.reading import read_attempts, read_events
from harness.schedule import replayed
from harness.waiting import wait_until
from harness.workers.breakpoints import Moment, Moments, before, midway
from harness.workers.counters import Board
from harness.workers.producer_session import Session
from harness.workers.roles.transactional_producer import TransactionalProducerRole
from harness.workloads.late_end import LateEnd
from suites.scenarios.late_ends import CURED, LATE, RANDOM, SMALL, WITHOUT_HOLD


class FakeProducer:
    """A producer that accepts everything and records its calls."""

    trouble = ""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def send(self, message: Message, on_outcome: Any) -> None:
        self.calls.append(f"send {message.seq}")
        on_outcome(message.seq, Outcome.ACKED, message.partition, message.seq, 0)

    def poll(self, timeout_s: float) -> None:
        self.calls.append(f"poll {timeout_s:g}")

    def flush(self, timeout_s: float) -> int:
        self.calls.append("flush")
        return 0

    def begin(self) -> None:
        self.calls.append("begin")

    def send_offsets(self, positions: Any, consumer: Any, timeout_s: float) -> Outcome:
        raise AssertionError("this one reads nothing")

    def commit(self, timeout_s: float) -> Outcome:
        self.calls.append(f"commit within {timeout_s:g}")
        return Outcome.ACKED

    def abort(self, timeout_s: float) -> Outcome:
        self.calls.append(f"abort within {timeout_s:g}")
        return Outcome.ACKED

    def close(self) -> None: ...


class OneTransaction:
    def __init__(self, folder: Path, **more: Any) -> None:
        (spec,) = (one for one in LateEnd(SMALL, "t", "g").producers() if one.name == "producer-1")
        board = Board(folder / "producer-1.0.board")
        self.spec = replace(spec, run=1, **more)
        self.folder, self.producer, self.harness = folder, FakeProducer(), Moments(board.path)
        self.ledger = Ledger(folder, "producer-1.0")
        self.session = Session(self.spec, self.ledger, board, 0)
        self.role = TransactionalProducerRole(self.spec, board)

    def run(self, size: int, abort: bool) -> Outcome:
        return self.role._transact(self.session, self.producer, self.ledger, 1, size, abort)


def test_a_transaction_without_a_stop_request_runs_through(tmp_path: Path) -> None:
    one = OneTransaction(tmp_path)
    assert one.run(2, abort=False) is Outcome.ACKED
    assert one.producer.calls == ["begin", "send 0", "send 1", "commit within 30"]


def test_a_stop_request_after_the_flush_check_takes_effect_in_the_next_transaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = OneTransaction(tmp_path)
    looks: list[Moment] = []
    look = Moments.wanted

    def asked_right_after_the_look(worker: Moments, moment: Moment) -> bool:
        found = look(worker, moment)
        looks.append(moment)
        if looks.count(Moment.AFTER_PRODUCE) == 1 and moment is Moment.AFTER_PRODUCE:
            one.harness.stop_at(Moment.AFTER_PRODUCE)
        return found

    monkeypatch.setattr(Moments, "wanted", asked_right_after_the_look)
    assert one.run(2, abort=False) is Outcome.ACKED
    assert one.producer.calls == ["begin", "send 0", "send 1", "commit within 30"]
    assert not one.harness.reached()
    thread = threading.Thread(target=one.run, args=(2, False), daemon=True)
    thread.start()
    wait_until(one.harness.reached, 5.0, "it did not come there")
    assert one.producer.calls[-1] == "flush"
    one.harness.go_on()
    thread.join(5.0)


@pytest.mark.parametrize("did", ["commit", "abort"])
def test_it_waits_midway_with_one_half_in_the_log_and_before_its_end(tmp_path: Path, did: str) -> None:
    one = OneTransaction(tmp_path, end_limit_s=2)
    one.harness.stop_at(midway(did))
    thread = threading.Thread(target=one.run, args=(4, did == "abort"), daemon=True)
    thread.start()
    wait_until(one.harness.reached, 5.0, "it did not come there")
    assert one.producer.calls == ["begin", "send 0", "send 1", "flush"]
    one.harness.stop_at(before(did))  # also releases it from the current moment
    wait_until(one.harness.reached, 5.0, "it did not come to its end")
    assert one.producer.calls[4:6] == ["send 2", "send 3"]
    assert not any(did in call for call in one.producer.calls)
    one.harness.go_on()
    thread.join(5.0)
    assert one.producer.calls[-1] == f"{did} within 2"
    ended = [e for e in read_events(tmp_path / "producer-1.0.events") if e.get("step") == "ended"]
    assert [(e["did"], e["outcome"]) for e in ended] == [(did, Outcome.ACKED)]
    rows = read_attempts(next(tmp_path.glob("*.attempts")))
    places = [(row["topic"], row["partition"]) for row in rows]
    assert len(set(places)) == 4, "each record goes to a partition of its own"


def test_it_waits_after_an_abort_that_was_answered(tmp_path: Path) -> None:
    one = OneTransaction(tmp_path)
    one.harness.stop_at(Moment.AFTER_ABORT)
    assert one.run(2, abort=False) is Outcome.ACKED
    assert not one.harness.reached(), "a commit is none"
    thread = threading.Thread(target=one.run, args=(2, True), daemon=True)
    thread.start()
    wait_until(one.harness.reached, 5.0, "it did not come there")
    assert one.producer.calls[-1] == "abort within 30"
    one.harness.go_on()
    thread.join(5.0)


@pytest.mark.parametrize(("per_session", "ids"), [(False, 1), (True, 2)])
def test_a_producer_may_have_an_id_for_each_session(tmp_path: Path, per_session: bool, ids: int) -> None:
    one = OneTransaction(tmp_path, id_per_session=per_session)
    later = Session(one.spec, one.ledger, Board(tmp_path / "producer-1.1.board"), 1)
    assert len({one.session.transactional_id, later.transactional_id}) == ids


def test_records_are_spread_over_the_time_of_a_transaction(tmp_path: Path) -> None:
    one = OneTransaction(tmp_path, spread_s=0.4)
    one.run(2, abort=False)
    assert one.producer.calls == ["begin", "send 0", "poll 0.2", "send 1", "poll 0.2", "commit within 30"]


def test_the_bystander_has_keys_and_a_lane_of_its_own() -> None:
    roles = {role.name: role for role in LateEnd(SMALL, "t", "g").producers()}
    aimed, bystander = roles["producer-1"], roles["bystander-1"]
    assert (aimed.keyed, aimed.lane) == (False, Lane.PRODUCE)
    assert (bystander.keyed, bystander.lane) == (True, Lane.CONSUME)
    assert aimed.number != bystander.number, "sessions are numbered by worker"


def test_moments_are_named_by_the_end_to_come() -> None:
    assert (midway("abort"), before("commit")) == (Moment.MIDWAY_TO_ABORT, Moment.BEFORE_COMMIT)


def test_scenarios_are_restored_from_their_description() -> None:
    scenarios = [
        *WITHOUT_HOLD,
        RANDOM,
        *(s for late in LATE for s in (late.uncured, late.in_time, late.cured)),
    ]
    assert len({s.name for s in scenarios}) == len(scenarios)
    for scenario in scenarios:
        assert scenario.mode is Mode.EXACTLY_ONCE
        described = json.loads(json.dumps(scenario.describe()))
        assert replayed(described["schedule"]) == scenario.schedule
    for late in LATE:
        assert late.cured.transactions is CURED
        assert late.cured.schedule == late.uncured.schedule, "the cure is up to the client alone"
