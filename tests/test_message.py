"""Messages: what goes in comes out, and any damage is seen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import message as msg

RUN = msg.run_number("scenario/20260101-000000")


def test_fields_come_back_as_they_were_sent() -> None:
    sent = msg.Builder(RUN, session=2001, length=128).build(
        40, [7, -1], [-1, 2], 1234, txn=3, abort_intended=True
    )
    fields, flags = msg.read_payloads([m.payload for m in sent], RUN)
    assert flags.tolist() == [0, 0]
    assert fields["seq"].tolist() == [40, 41]
    assert fields["session"].tolist() == [2001, 2001]
    assert fields["key"].tolist() == [7, -1]
    assert fields["partition"].tolist() == [-1, 2]
    assert fields["txn"].tolist() == [3, 3]
    assert fields["flags"].tolist() == [msg.ABORT_INTENDED] * 2
    assert fields["timestamp_ms"].tolist() == [1234, 1234]
    assert [m.key for m in sent] == [b"k7", None]


@given(seq=st.integers(0, 2**40), bit=st.integers(0, 128 * 8 - 1))
def test_every_single_flipped_bit_is_seen(seq: int, bit: int) -> None:
    payload = bytearray(msg.Builder(RUN, 1001, 128).build(seq, [1], [0], 99)[0].payload)
    payload[bit // 8] ^= 1 << bit % 8
    _, flags = msg.read_payloads([bytes(payload)], RUN)
    assert flags[0] & msg.BAD_PAYLOAD


@given(st.lists(st.one_of(st.none(), st.binary(max_size=200)), max_size=20))
def test_what_is_not_ours_is_never_taken_for_ours(values: list[bytes | None]) -> None:
    _, flags = msg.read_payloads(values, RUN)
    assert all(flag & msg.BAD_PAYLOAD for flag in flags)


@given(st.lists(st.sampled_from([64, 72, 128, 1000]), min_size=1, max_size=12))
def test_payloads_of_several_lengths_are_read_together(lengths: list[int]) -> None:
    sent = [msg.Builder(RUN, 1, length).build(i, [0], [0], 5)[0] for i, length in enumerate(lengths)]
    fields, flags = msg.read_payloads([m.payload for m in sent], RUN)
    assert flags.sum() == 0
    assert fields["seq"].tolist() == list(range(len(lengths)))


def test_a_message_of_another_run_is_told_apart() -> None:
    other = msg.Builder(RUN + 1, 1, 64).build(0, [0], [0], 5)[0]
    _, flags = msg.read_payloads([other.payload], RUN)
    assert flags.tolist() == [msg.FOREIGN_RUN]


@pytest.mark.parametrize("length", [0, 56, 65])
def test_a_length_that_cannot_be_is_refused(length: int) -> None:
    with pytest.raises(ValueError, match=f"payload length {length}"):
        msg.Builder(RUN, 1, length)
