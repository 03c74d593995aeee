"""Final readings side by side: every row once, in order, and one row for each record of the log."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from harness.errors import LedgerError
from harness.ledger.reading import JournalRows
from harness.ledger.rows import DELIVERY
from harness.reconcile.seal import rows
from harness.reconcile.seal.merge import Reading, side_by_side

Rows = npt.NDArray[np.void]
BOTH = ("read_uncommitted", "read_committed")


def some(dice: random.Random, count: int, places: int) -> Rows:
    """Rows as a final reader gets them, with offsets and messages that are there more than once."""
    made = np.zeros(count, dtype=DELIVERY)
    made["partition"] = np.repeat([dice.randrange(places) for _ in range(count)], 5)[:count]
    made["topic"] = dice.choice((0, 1))
    made["session"] = [dice.randrange(1, 3) for _ in range(count)]
    made["seq"] = [dice.randrange(3) for _ in range(count)]
    made["key"] = [dice.randrange(20) == 0 for _ in range(count)]
    for partition in range(places):
        mine = made["partition"] == partition
        made["offset"][mine] = np.sort(
            np.array([dice.randrange(count) for _ in range(mine.sum())], dtype=int)
        )
    made["t"] = np.arange(count)
    return made


def journal(folder: Path, name: str, content: Rows) -> Reading:
    (folder / name).write_bytes(content.tobytes())
    found = JournalRows(folder / name)
    return Reading(found, (piece for _, piece in found.pieces(16)), batch_rows=8)


@pytest.mark.parametrize("seed", range(30))
def test_every_row_comes_once_and_in_order(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    contents = {
        isolation: [some(dice, dice.randrange(1, 120), 3) for _ in range(dice.choice((1, 1, 2)))]
        for isolation in BOTH
    }
    if seed % 3 == 0:
        mixed_up = contents["read_committed"][0]
        mixed_up["offset"] = np.random.default_rng(seed).permutation(mixed_up["offset"])
    readings = {
        isolation: [journal(tmp_path, f"{isolation}{n}", content) for n, content in enumerate(several)]
        for isolation, several in contents.items()
    }
    passed: list[tuple[int, int, int]] = []  # topic, partition, and the offset below which all is done
    for together in side_by_side(readings):
        every = np.concatenate(list(together.values()))
        place = {(int(row["topic"]), int(row["partition"])) for row in every}
        assert len(place) == 1
        assert not passed or (*min(place), int(every["offset"].min())) >= passed[-1]
        passed.append((*min(place), int(every["offset"].max()) + 1))
        for isolation, got in together.items():
            contents[f"got {isolation}"] = [*contents.get(f"got {isolation}", []), got]
    for isolation in BOTH:
        wrote, came = (np.concatenate(contents[name]).tolist() for name in (isolation, f"got {isolation}"))
        assert sorted(wrote) == sorted(came)


@pytest.mark.parametrize("seed", range(30))
def test_a_record_that_both_readings_found_is_one_row(seed: int) -> None:
    dice = random.Random(seed)
    loose = some(dice, 60, 1)
    strict = loose[np.sort(np.array(dice.sample(range(60), 40)))]
    if seed % 2:
        strict = np.sort(np.concatenate([strict, some(dice, 5, 1)]), order="offset")
    strict["topic"] = loose["topic"][0]
    if seed % 3 == 0:
        dice.shuffle(strict["offset"])
    place = int(loose["topic"][0]), 0
    got, columns = rows.log(
        {"read_uncommitted": loose, "read_committed": strict},
        "read_committed",
        "read_uncommitted",
        {place: 30},
    )
    both = [(row, n >= len(loose)) for n, row in enumerate([*loose, *strict])]
    both.sort(key=lambda one: (one[0]["offset"], one[0]["session"], one[0]["seq"], one[1]))
    wanted: list[list[tuple[np.void, bool]]] = []
    for one in both:
        same = ("offset", "session", "seq", "txn", "key", "flags")
        if wanted and all(wanted[-1][-1][0][name] == one[0][name] for name in same):
            wanted[-1].append(one)
        else:
            wanted.append([one])
    assert got.tolist() == [found[0][0].tolist() for found in wanted]
    found_loose = [not all(late for _, late in found) for found in wanted]
    found_strict = [any(late for _, late in found) for found in wanted]
    assert columns["uncommitted"].tolist() == found_loose
    assert columns["committed"].tolist() == columns["promised"].tolist() == found_strict
    below = [found[0][0]["offset"] < 30 for found in wanted]
    assert columns["passed"].tolist() == [a and bool(b) for a, b in zip(found_loose, below, strict=True)]


def test_a_journal_that_shrinks_while_it_is_read_is_named(tmp_path: Path) -> None:
    reading = journal(tmp_path, "shrinks", some(random.Random(1), 20, 1))
    (tmp_path / "shrinks").write_bytes(b"")
    with pytest.raises(LedgerError, match="shrinks: it became shorter"):
        list(side_by_side({BOTH[0]: [reading], BOTH[1]: []}))
