"""`explain`: one record's life from literal journals, findings in words, and one clear line for bad input."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from harness.contracts import Mode, Outcome
from harness.explain.questions import account_of_message, accounts_of_position
from harness.explain.record_history import Account
from harness.ledger import reading
from harness.ledger.literal_run import LiteralRun
from harness.ledger.message import BAD_PAYLOAD
from harness.ledger.rows import ATTEMPT
from tests.explain.plain_run import plain


def about(account: Account, what: str) -> list[str]:
    return [m["text"] for m in account.to_json()["moments"] if m["what"] == what]


def whats(account: Account) -> list[str]:
    return [m["what"] for m in account.to_json()["moments"]]


def test_a_sound_record_is_explained_from_attempt_to_commit(tmp_path: Path) -> None:
    account = account_of_message(plain(tmp_path).finish(), "producer-1.0-4")
    assert about(account, "attempt") == [
        "by producer-1.0, session 1 with acks=all, no key, to partition 0, in no transaction"
    ]
    assert about(account, "outcome") == ["acked at partition 0 offset 4, 1.0 ms after the attempt"]
    assert about(account, "delivery") == ["consumer-1.0 got it at partition 0 offset 4"]
    assert about(account, "reading") == [
        "the final read_uncommitted reading found it at partition 0 offset 4",
        "the final read_committed reading found it at partition 0 offset 4",
    ]
    assert about(account, "log") == ["that of partition 0 goes from 0 to 10, stable to 10"]
    assert about(account, "commit") == ["consumer-1.0 commits 10 of partition 0: the first that passes it"]
    assert not {"conflict", "replicas", "fault", "transaction"} & set(whats(account))
    assert account.findings == ["not known: this run is not reconciled"]


def test_moments_are_in_order_and_count_from_the_start_of_the_run(tmp_path: Path) -> None:
    moments = account_of_message(plain(tmp_path).finish(), "producer-1.0-0").to_json()["moments"]
    times = [m["t_s"] for m in moments if m["t_s"] is not None]
    assert times == sorted(times)
    # Two sessions began a millisecond each, then the first attempt.
    assert [m["t_s"] for m in moments if m["what"] in ("attempt", "outcome")] == pytest.approx([0.003, 0.004])


def test_an_observer_does_not_count_as_a_member_of_the_group(tmp_path: Path) -> None:
    run = plain(tmp_path)
    run.deliveries = []
    run.observe("observer-committed.0", "read_committed", *run.log)
    account = account_of_message(run.finish(), "producer-1.0-4")
    assert about(account, "observation") == [
        "observer-committed.0 (beside the group, read_committed) got it at partition 0 offset 4"
    ]
    assert about(account, "delivery") == ["no reader of the group got it"]


def test_a_lost_record_is_explained_from_attempt_to_replicas(tmp_path: Path) -> None:
    run = plain(tmp_path)
    run.log.pop(9)
    run.bounds[0] = (0, 9, 9)
    run.event(
        "replicas", session=1, seq=9, partition=0, offset=9, holders=["broker-2"], looked=["broker-2"],
        missed=[], ends={"broker-2": 10}, detail="broker-2 has it at offset 9",
    )  # fmt: skip
    run.event(
        "replicas", session=2, seq=9, partition=1, offset=9, holders=[], looked=[], ends={}, detail="not mine"
    )
    account = account_of_message(run.finish(), "producer-1.0-9")
    assert about(account, "delivery") == ["no reader of the group got it"]
    assert about(account, "reading") == [f"the final {how} reading did not find it" for how in run.reads]
    assert about(account, "replicas") == ["in the log of broker-2, not read; broker-2 has it at offset 9"]
    assert about(account, "log") == ["that of partition 0 goes from 0 to 9, stable to 9; offset 9 is outside"]
    assert about(account, "commit")[-1] == "no commit of the group passes partition 0 offset 9"


def test_a_lost_record_whose_replicas_were_not_read_says_so(tmp_path: Path) -> None:
    run = plain(tmp_path)
    run.log.pop(3)
    assert about(account_of_message(run.finish(), "producer-1.0-3"), "replicas") == ["not looked at"]


def test_a_reading_that_did_not_end_is_said_to_be_partial(tmp_path: Path) -> None:
    run = plain(tmp_path)
    run.log.pop(3)
    run.reads["read_uncommitted"] = False
    texts = about(account_of_message(run.finish(), "producer-1.0-3"), "reading")
    assert texts[0].startswith("the final read_uncommitted reading did not find it, but is not whole")
    assert texts[1] == "the final read_committed reading did not find it"


def test_with_acks_0_a_reported_offset_is_no_position(tmp_path: Path) -> None:
    run = LiteralRun(tmp_path, mode=Mode.AT_MOST_ONCE)
    run.session(1, acks="0")
    run.write(1, 3)
    del run.log[1]
    account = account_of_message(run.finish(), "producer-1.0-1")
    (outcome,) = about(account, "outcome")
    assert outcome.startswith("acked, without a position (acks=0: counted when it left the client)")
    assert about(account, "commit") == []


def test_rejected_and_unknown_outcomes_are_explained(tmp_path: Path) -> None:
    run = plain(tmp_path)
    run.send(1)
    run.send(1).outcome = Outcome.REJECTED
    folder = run.finish()
    assert about(account_of_message(folder, "producer-1.0-10"), "outcome") == [
        "none was recorded: it is unknown"
    ]
    assert about(account_of_message(folder, "producer-1.0-11"), "outcome")[0].startswith("rejected, ")


def test_an_error_is_named(tmp_path: Path) -> None:
    folder = plain(tmp_path).finish()
    path = folder.ledger / "producer-1.0.1.attempts"
    rows = np.fromfile(path, dtype=ATTEMPT)
    rows["outcome"][2], rows["error"][2] = Outcome.UNKNOWN, -192
    path.write_bytes(rows.tobytes())
    (text,) = about(account_of_message(folder, "producer-1.0-2"), "outcome")
    assert text == "its outcome is unknown, error _MSG_TIMED_OUT (-192), 1.0 ms after the attempt"


def test_only_the_transaction_of_the_record_is_explained(tmp_path: Path) -> None:
    run = LiteralRun(tmp_path, mode=Mode.EXACTLY_ONCE)
    run.session(1)
    for txn, did in ((1, "commit"), (2, "abort")):
        run.append(run.send(1, 0, txn=txn, key=7), gap=txn - 1)
        run.end(1, txn, did)
    account = account_of_message(run.finish(), "producer-1.0-1")
    assert about(account, "transaction") == [
        "2 begins, meant to abort", "abort of 2 is called", "abort of 2 ended: acked",
    ]  # fmt: skip
    assert ", key k7, " in about(account, "attempt")[0]
    assert "the final read_committed reading did not find it" in about(account, "reading")


def test_only_fault_windows_at_the_time_of_the_record_are_listed(tmp_path: Path) -> None:
    run = LiteralRun(tmp_path)
    run.session(1)
    run.window(0)
    run.tick(1)
    run.write(1, 1)
    run.window(1, bit=False)
    folder = run.finish()
    assert about(account_of_message(folder, "producer-1.0-0"), "fault") == [
        "window 1 opens: kill on leader (broker-1)",
        "window 1 does not bite: nothing changed",
        "window 1 is being undone",
        "window 1 has healed: all in sync",
    ]


def test_commits_and_assignments_around_a_delivery_are_listed(tmp_path: Path) -> None:
    run = plain(tmp_path)
    run.commits = False
    for reader, how in (
        ("consumer-7.0", "assigned"),
        ("consumer-7.0", "revoked"),
        ("consumer-8.0", "assigned"),
    ):
        run.event("assignment", reader, reader=reader, how=how, partitions=[0])
    for offset, outcome in ((2, 1), (4, 1), (4, 1), (9, 2), (6, 0), (7, 1)):
        run.event("commit", "consumer-8.0", offsets={"0": offset, "1": 99}, outcome=outcome, error="")
    account = account_of_message(run.finish(), "producer-1.0-4")
    assert about(account, "commit") == [
        "consumer-8.0 commits 4 of partition 0: the last that does not pass it",
        "consumer-8.0 commits 6 of partition 0: the first that passes it, its outcome unknown",
    ]
    # The delivery comes after the last change of all, which alone is around it.
    assert about(account, "assignment") == ["partition 0 assigned to consumer-1.0"]


def test_all_assignments_between_two_deliveries_are_listed(tmp_path: Path) -> None:
    folder = plain(tmp_path).finish()
    path = folder.ledger / "consumer-1.0.deliveries"
    rows, _ = reading.read_deliveries(path)
    again = rows.copy()
    again["t"] += 10_000_000_000
    (folder.ledger / "consumer-2.0.deliveries").write_bytes(again.tobytes())
    moved = {"event": "assignment", "how": "assigned", "partitions": [0], "t": int(rows["t"][-1]) + 1_000}
    (folder.ledger / "consumer-2.0.events").write_text(json.dumps(moved | {"writer": "consumer-2.0"}) + "\n")
    account = account_of_message(folder, "producer-1.0-4")
    assert len(about(account, "delivery")) == 2
    assert about(account, "assignment") == [
        "partition 0 assigned to consumer-1.0", "partition 0 assigned to consumer-2.0",
    ]  # fmt: skip


def conflicting(root: Path) -> LiteralRun:
    """Message 2-0 was acked at the position of 1-4 and is there; 1-4 is nowhere."""
    run = plain(root)
    run.ack(run.sent[10], 0, 4)
    run.log[4] = run.sent[10].at(0, 4)
    return run


def test_other_messages_at_the_same_position_are_named(tmp_path: Path) -> None:
    account = account_of_message(conflicting(tmp_path).finish(), "producer-1.0-4")
    assert about(account, "conflict") == [
        "producer-2.0-0 was acked at the same position, partition 0 offset 4",
        "consumer-1.0 got producer-2.0-0 at partition 0 offset 4",
        "the final read_uncommitted reading found producer-2.0-0 at partition 0 offset 4",
        "the final read_committed reading found producer-2.0-0 at partition 0 offset 4",
    ]


@pytest.mark.parametrize("text", ["orders/0/4", "0/0/4"])
def test_a_position_gives_every_message_that_claims_it(tmp_path: Path, text: str) -> None:
    accounts = accounts_of_position(conflicting(tmp_path).finish(), text)
    assert [a.title for a in accounts] == ["producer-1.0-4", "producer-2.0-0"]


def test_a_position_without_a_message_is_explained(tmp_path: Path) -> None:
    run = plain(tmp_path)
    run.log[4] = replace(run.log[4], flags=BAD_PAYLOAD, seq=0, session=0)
    run.sent[4].outcome = None
    run.bounds[0] = (0, 12, 12)
    folder = run.finish()
    (damaged,) = accounts_of_position(folder, "orders/0/4")
    assert damaged.title == "partition 0 offset 4"
    assert about(damaged, "delivery") == ["consumer-1.0 got it at partition 0 offset 4 with damage flags 1"]
    (marker,) = accounts_of_position(folder, "orders/0/11")
    assert "no reader found a record here: a transaction marker, or a gap" in about(marker, "log")
