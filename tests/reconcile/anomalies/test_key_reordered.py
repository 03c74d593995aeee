"""Pairs of a key's messages are compared piece by piece: the size of the pieces changes nothing."""

from __future__ import annotations

import random
from typing import Any

import polars as pl
import pytest

from harness.contracts import Outcome
from harness.reconcile.anomalies.key_reordered import KeyReordered
from harness.reconcile.find.known import Known
from harness.reconcile.find.tables import KeyTables

MESSAGES, KEYS = 120, 3
NUMBERS = ("seq", "session", "producer", "incarnation", "t", "t_outcome", "partition", "offset", "given")


def tables(seed: int) -> KeyTables:
    """Messages of two producers, three partitions and a few keys, delivered and written in a random order."""
    chance = random.Random(seed)
    places = {partition: iter(chance.sample(range(1000), 1000)) for partition in range(3)}
    rows: list[dict[str, Any]] = []
    for number in range(MESSAGES):
        session, partition = chance.choice((1, 2, 3)), chance.randrange(3)
        rows.append(
            {
                "run": 1, "topic": 0, "key": chance.randrange(KEYS), "session": session, "seq": number,
                "sender": f"producer-{session}", "producer": (session + 1) // 2, "incarnation": session,
                "t": number * 10**9, "t_outcome": number * 10**9 + 1, "outcome": int(Outcome.ACKED),
                "partition_min": partition, "partition_max": partition, "partition": partition,
                "offset": next(places[partition]), "given": chance.choice((None, chance.randrange(10**6))),
            }
        )  # fmt: skip
    keyed = pl.DataFrame(rows, schema_overrides=dict.fromkeys(NUMBERS, pl.Int64))
    nothing = pl.DataFrame()
    return KeyTables(Known(nothing, nothing, nothing, nothing, nothing), keyed, nothing)


@pytest.mark.parametrize("at_once", [1, 7, 200])
@pytest.mark.parametrize("seed", range(3))
def test_small_pieces_find_what_all_pairs_at_once_find(seed: int, at_once: int) -> None:
    keys = tables(seed)
    whole = KeyReordered().of_keys(keys)
    assert len(whole) > 20

    class InPieces(KeyReordered):
        most_pairs = at_once

    assert InPieces().of_keys(keys).sort("messages").equals(whole.sort("messages"))


def test_a_table_without_keys_has_no_findings() -> None:
    empty = tables(1)
    assert not len(KeyReordered().of_keys(KeyTables(empty.known, empty.keyed.clear(), empty.places)))
