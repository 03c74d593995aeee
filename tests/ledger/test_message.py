"""Messages: what goes in comes out, and any damage is seen."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.ledger import message as msg

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


@pytest.mark.parametrize("length", [64, 128, 1024])
def test_bit_63_of_any_two_words_is_seen(length: int) -> None:
    """TRUST T9: a sum that only multiplies is blind to them, since each adds 2^63."""
    payload = msg.Builder(RUN, 1_000_001, length).build(12345, [1], [0], 99)[0].payload
    pairs = list(itertools.combinations(range(length // 8), 2))
    words = np.tile(np.frombuffer(payload, dtype=np.uint64), (len(pairs), 1))
    for row, pair in enumerate(pairs):
        words[row, list(pair)] ^= np.uint64(1 << 63)
    _, flags = msg.read_payloads([row.tobytes() for row in words], RUN)
    assert (flags & msg.BAD_PAYLOAD > 0).all()


@pytest.mark.parametrize("seed", range(4))
def test_flipped_upper_bits_of_many_words_are_seen(seed: int) -> None:
    """TRUST T9: half of these went unseen."""
    rng = np.random.default_rng(seed)
    payload = msg.Builder(RUN, 1_000_001, 128).build(seed, [1], [0], 99)[0].payload
    words = np.tile(np.frombuffer(payload, dtype=np.uint64), (20_000, 1))
    flips = rng.integers(0, 16, words.shape, dtype=np.uint64) << np.uint64(60)
    flips *= rng.random(words.shape) < 0.3
    changed = flips.any(axis=1)
    _, flags = msg.read_payloads([row.tobytes() for row in words ^ flips], RUN)
    assert ((flags & msg.BAD_PAYLOAD > 0) == changed).all()
    assert changed.sum() > 19_000


def test_any_change_of_one_word_is_seen() -> None:
    rng = np.random.default_rng(1)
    payload = msg.Builder(RUN, 1_000_001, 128).build(7, [1], [0], 99)[0].payload
    words = np.tile(np.frombuffer(payload, dtype=np.uint64), (16_000, 1))
    words[np.arange(16_000), np.arange(16_000) % 16] ^= rng.integers(1, 2**63, 16_000, dtype=np.uint64)
    _, flags = msg.read_payloads([row.tobytes() for row in words], RUN)
    assert (flags & msg.BAD_PAYLOAD > 0).all()


def test_swapped_words_are_seen() -> None:
    payload = msg.Builder(RUN, 1_000_001, 128).build(7, [1], [0], 99)[0].payload
    words = np.frombuffer(payload, dtype=np.uint64).copy()
    words[2], words[3] = words[3], words[2]
    _, flags = msg.read_payloads([words.tobytes()], RUN)
    assert flags[0] & msg.BAD_PAYLOAD


@given(st.lists(st.one_of(st.none(), st.binary(max_size=200)), max_size=20))
def test_foreign_bytes_are_never_read_as_payloads(values: list[bytes | None]) -> None:
    _, flags = msg.read_payloads(values, RUN)
    assert all(flag & msg.BAD_PAYLOAD for flag in flags)


@given(st.lists(st.sampled_from([64, 72, 128, 1000]), min_size=1, max_size=12))
def test_payloads_of_several_lengths_are_read_together(lengths: list[int]) -> None:
    sent = [msg.Builder(RUN, 1, length).build(i, [0], [0], 5)[0] for i, length in enumerate(lengths)]
    fields, flags = msg.read_payloads([m.payload for m in sent], RUN)
    assert flags.sum() == 0
    assert fields["seq"].tolist() == list(range(len(lengths)))


def test_a_message_of_another_run_is_flagged() -> None:
    other = msg.Builder(RUN + 1, 1, 64).build(0, [0], [0], 5)[0]
    _, flags = msg.read_payloads([other.payload], RUN)
    assert flags.tolist() == [msg.FOREIGN_RUN]


@pytest.mark.parametrize("length", [0, 56, 65])
def test_impossible_payload_lengths_raise(length: int) -> None:
    with pytest.raises(ValueError, match=f"payload length {length}"):
        msg.Builder(RUN, 1, length)
