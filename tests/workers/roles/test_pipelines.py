"""Parts of pipelines: effects of inputs, stopping at moments, ownership, ends of transactions."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.contracts import Outcome
from harness.ledger import message as msg
from harness.ledger.journal import Ledger
from harness.ledger.reading import read_events
from harness.ledger.rows import DELIVERY
from harness.ledger.transform import DEAD_LETTERS, OUTPUT, Transform
from harness.reconcile.seal import event_rows
from harness.reconcile.seal.sealed import Event
from harness.waiting import wait_until
from harness.workers.breakpoints import Moment, Moments
from harness.workers.effects import effects_of
from harness.workers.roles._assignments import Assignments

RUN = msg.run_number("scenario/20260101-000000")


# --- effects of inputs -----------------------------------------------------------------------------


def delivered(count: int, session: int = 1001) -> np.ndarray:
    inputs = np.zeros(count, dtype=DELIVERY)
    inputs["seq"], inputs["session"], inputs["offset"] = np.arange(count), session, np.arange(count) * 2
    inputs["partition"], inputs["key"] = np.arange(count) % 3, np.where(np.arange(count) % 2, 7, -1)
    return inputs


@settings(deadline=None)  # a loaded machine is no reason to fail
@given(most=st.integers(0, 5), share=st.floats(0, 1), session=st.integers(0, 2**31))
def test_an_input_has_always_the_same_effects(most: int, share: float, session: int) -> None:
    transform = Transform(most, share)
    sessions, seqs = np.full(50, session), np.arange(50)
    counts = transform.effects(sessions, seqs)
    assert counts.tolist() == [int(transform.effects(sessions[:1], seqs[i : i + 1])[0]) for i in range(50)]
    assert counts.max() <= max(most, 1)
    assert (counts[transform.poison(sessions, seqs)] == 1).all()


def test_numbers_of_effects_and_shares_of_poison_are_spread() -> None:
    sessions, seqs = np.full(10_000, 1001), np.arange(10_000)
    counts = np.bincount(Transform(2, 0.0).effects(sessions, seqs))
    assert (abs(counts - 3333) < 300).all(), counts
    assert abs(int(Transform(2, 0.05).poison(sessions, seqs).sum()) - 500) < 100


@pytest.mark.parametrize(("most", "share"), [(-1, 0.0), (101, 0.0), (1, 1.5)])
def test_an_impossible_transform_is_refused(most: int, share: float) -> None:
    with pytest.raises(ValueError, match="Transform"):
        Transform(most, share)


def test_effects_carry_their_origin_through_the_payload() -> None:
    inputs, transform = delivered(200), Transform(3, 0.1)
    made = effects_of(inputs, transform, partitions=4)
    counts = transform.effects(inputs["session"], inputs["seq"])
    assert len(made.keys) == counts.sum()
    assert made.origins["seq"].tolist() == np.repeat(inputs["seq"], counts).tolist()
    assert made.origins["number"].tolist() == [n for count in counts for n in range(count)]
    poison = np.repeat(transform.poison(inputs["session"], inputs["seq"]), counts)
    assert made.topics.tolist() == np.where(poison, DEAD_LETTERS, OUTPUT).tolist()
    assert ((made.partitions < 0) == (made.keys >= 0)).all(), "records with a key are placed by the key"
    sent = msg.Builder(RUN, 5001, 128).build(
        0, made.keys, made.partitions, 99, 1, False, made.topics, made.origins
    )
    back = msg.origins_of([m.payload for m in sent])
    assert back.tolist() == made.origins.tolist()
    fields, flags = msg.read_payloads([m.payload for m in sent], RUN)
    assert not flags.any()
    assert (fields["flags"] & msg.EFFECT > 0).all()
    assert [m.topic for m in sent] == made.topics.tolist()


def test_damaged_and_foreign_records_have_no_effects() -> None:
    inputs = delivered(50)
    inputs["flags"][:25], inputs["flags"][25:] = msg.BAD_PAYLOAD, msg.FOREIGN_RUN
    assert len(effects_of(inputs, Transform(5), 1).keys) == 0


def test_a_payload_that_has_no_room_for_an_origin_is_refused() -> None:
    made = effects_of(delivered(9), Transform(3), 1)
    with pytest.raises(ValueError, match="an effect needs at least 80"):
        msg.Builder(RUN, 1, 72).build(0, made.keys, made.partitions, 1, origins=made.origins)


# --- moments -------------------------------------------------------------------------------------------


def test_a_worker_waits_at_its_moment_until_it_is_released(tmp_path: Path) -> None:
    board = tmp_path / "copier-1.0.board"
    worker, harness = Moments(board), Moments(board)
    worker.come_to(Moment.AFTER_PRODUCE)  # no request: it goes on
    harness.stop_at(Moment.DURING_COMMIT)
    worker.come_to(Moment.AFTER_PRODUCE)  # another moment was asked for
    assert not harness.reached()
    thread = threading.Thread(target=worker.come_to, args=(Moment.DURING_COMMIT,), daemon=True)
    thread.start()
    wait_until(harness.reached, 5.0, "the moment was not reached")
    thread.join(0.1)
    assert thread.is_alive(), "it waits"
    harness.go_on()
    thread.join(5.0)
    assert not thread.is_alive()
    assert list(tmp_path.iterdir()) == [], "nothing is left"


def test_a_waiting_worker_goes_on_only_after_the_next_request_is_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = tmp_path / "copier-1.0.board"
    worker, harness = Moments(board), Moments(board)

    def two_moments_in_a_row() -> None:
        worker.come_to(Moment.AFTER_PRODUCE)
        worker.come_to(Moment.DURING_COMMIT)

    harness.stop_at(Moment.AFTER_PRODUCE)
    thread = threading.Thread(target=two_moments_in_a_row, daemon=True)
    thread.start()
    wait_until(harness.reached, 5.0, "the first moment was not reached")
    write = Path.write_text

    def write_slowly(path: Path, text: str, encoding: str) -> int:
        time.sleep(0.1)  # as on a busy machine; the worker looks twenty times meanwhile
        return write(path, text, encoding)

    monkeypatch.setattr(Path, "write_text", write_slowly)
    harness.stop_at(Moment.DURING_COMMIT)
    wait_until(harness.reached, 5.0, "the second moment was not reached")
    harness.go_on()
    thread.join(5.0)
    assert not thread.is_alive()


def test_a_withdrawn_request_does_not_disturb_the_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = tmp_path / "copier-1.0.board"
    worker, harness = Moments(board), Moments(board)
    harness.stop_at(Moment.AFTER_PRODUCE)
    rename = os.rename

    def given_up_first(old: str, new: str) -> None:
        harness.go_on()
        rename(old, new)

    monkeypatch.setattr(os, "rename", given_up_first)
    worker.come_to(Moment.AFTER_PRODUCE)
    assert not harness.reached()


# --- ownership -----------------------------------------------------------------------------------------


def test_a_member_that_has_not_polled_for_long_records_a_late_assignment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr("harness.workers.roles._assignments.time.monotonic", lambda: now)
    with Ledger(tmp_path, "consumer-1.0") as ledger:
        assignments = Assignments(ledger, "consumer-1")
        assignments.record("assigned", [0])
        now += 5.0
        assignments.record("revoked", [0])
        assignments.polled()
        assignments.record("revoked", [0])
    events = [e for e in read_events(tmp_path / "consumer-1.0.events") if e["event"] == "assignment"]
    assert [e.get("late", False) for e in events] == [False, True, False]


# --- ends of transactions ------------------------------------------------------------------------------


def ended(session: int, txn: int, intent: str, did: str, outcome: Outcome) -> Event:
    return {
        "session": session, "txn": txn, "step": "ended", "intent": intent, "did": did, "outcome": int(outcome), "t": 1,
    }  # fmt: skip


def test_ends_are_counted_by_their_reasons() -> None:
    found = event_rows.ends(
        {
            "txn": [
                ended(1, 1, "commit", "commit", Outcome.ACKED),
                ended(1, 2, "abort", "abort", Outcome.ACKED),
                ended(1, 3, "commit", "abort", Outcome.ACKED),
                ended(1, 4, "commit", "commit", Outcome.UNKNOWN),
            ],
            "outslept": [{"session": 1, "txn": 4, "t": 2}, {"session": 1, "txn": 1, "t": 2}],
            "lost_producer": [
                {"text": "the end of transaction 4 is unknown: _FENCED: Broker: Producer fenced", "t": 3},
                {"text": "produce: _TIMED_OUT: Local: Timed out", "t": 4},
            ],
        }
    )
    assert found == {"aborted_by_intent": 1, "aborted_by_fault": 1, "timed_out": 1, "fencings": 1}


def test_only_ends_requested_after_the_next_producer_was_ready_are_fenced() -> None:
    sessions = [{"session": n, "transactional_id": name} for n, name in ((1, "a"), (2, "a"), (3, "b"))]
    ready = [{"session": n, "t": t} for n, t in ((1, 10), (3, 15), (2, 20))]
    ends = [
        {"session": session, "txn": txn, "step": "end", "did": "commit", "t": t, "outcome": None}
        for session, txn, t in ((1, 1, 12), (1, 2, 25), (2, 1, 26), (3, 1, 27))
    ]
    found = event_rows.fenced(sessions, ready, ends)
    assert [(row["session"], row["txn"], row["step"]) for row in found] == [(1, 2, "fenced")]
