"""Steps of readers and what is stitched together: kernels against plain loops that do the same."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.reconcile.arrays import place_of
from harness.reconcile.screen import reader_steps
from harness.reconcile.screen.commits import Commits, below_commits, given_by_commits
from harness.reconcile.screen.facts import Facts
from harness.reconcile.screen.screen import Screened
from harness.reconcile.screen.spaces import Space, Summary, named
from harness.reconcile.screen.summaries import SUMMARY, joined, merged, weigh
from harness.reconcile.select.readers import _batch, _reached, across_tasks, edge_steps, overcommits
from harness.reconcile.select.wanted import Range, Ranges

RUN = 7
FACTS = Facts(RUN, 0, True)

Delivered = tuple[int, int, int, int]  # reader, partition, offset, generation

deliveries = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 400), st.integers(0, 1)), max_size=40
)
cuts = st.lists(st.integers(0, 40), max_size=4)


def rows(given: list[Delivered], first_t: int = 0) -> dict[str, Any]:
    table = np.array(given, dtype=np.int64).reshape(-1, 4)
    none = np.zeros(len(table), dtype=np.int64)
    return {
        "reader": table[:, 0], "topic": none, "partition": table[:, 1], "offset": table[:, 2], "generation": table[:, 3],
        "t": np.arange(first_t, first_t + len(table)), "session": none, "seq": none, "flags": none,
    }  # fmt: skip


def parts(items: list[Any], at: list[int]) -> list[list[Any]]:
    """The list cut at these places."""
    edges = [0, *sorted(min(place, len(items)) for place in at), len(items)]
    return [items[first:last] for first, last in pairwise(edges)]


def plain_steps(given: list[Delivered]) -> list[tuple[Delivered, Delivered]]:
    last: dict[tuple[int, int], Delivered] = {}
    found = []
    for one in given:
        if one[:2] in last:
            found.append((last[one[:2]], one))
        last[one[:2]] = one
    return found


def all_steps(found: reader_steps.Steps) -> tuple[reader_steps.Rows, reader_steps.Rows]:
    return found.rows(np.arange(len(found.reached)))


def walked(trail: reader_steps.Trail, batches: list[list[Delivered]]) -> list[tuple[Delivered, Delivered]]:
    found, t = [], 0
    for batch in batches:
        source, reached = all_steps(trail.walk(rows(batch, t)))
        t += len(batch)
        columns = ("reader", "partition", "offset", "generation")
        found += [
            (tuple(int(source[n][i]) for n in columns), tuple(int(reached[n][i]) for n in columns))
            for i in range(len(source["t"]))
        ]
    return found  # type: ignore[return-value]


@settings(deadline=None)
@given(deliveries, cuts)
def test_steps_do_not_depend_on_batches(given_: list[Delivered], at: list[int]) -> None:
    assert sorted(walked(reader_steps.Trail(), parts(given_, at))) == sorted(plain_steps(given_))


@settings(deadline=None)
@given(deliveries, cuts)
def test_steps_across_tasks_are_found(given_: list[Delivered], at: list[int]) -> None:
    """Tasks that see a part each, put together, know every step; as summary and as the list of steps."""
    inside, edges, listed, t = [], [], [], 0
    for part in parts(given_, at):
        trail = reader_steps.Trail()
        source, reached = all_steps(trail.walk(rows(part, t)))
        inside += list(zip(source["offset"].tolist(), reached["offset"].tolist(), strict=True))
        t += len(part)
        edges.append(reader_steps.edges(RUN, trail))
        listed.append(_batch(RUN, *trail.edges()))
    between = [(step.source, step.reached) for step in edge_steps(named(Space.READING, joined(edges)))]
    expected = sorted((a[2], b[2]) for a, b in plain_steps(given_))
    assert sorted([*inside, *between]) == expected
    # Of those between tasks the list has what goes back, and jumps over doubtful ranges (here: all of them).
    everything = Ranges.of(Range(RUN, place, 0, 1 << 40) for place in range(3))
    table = across_tasks(pa.Table.from_batches(listed), everything)
    found = sorted(zip(table["from_offset"].to_pylist(), table["to_offset"].to_pylist(), strict=True))
    wanted = [
        (step.source, step.reached)
        for step in edge_steps(named(Space.READING, joined(edges)))
        if step.back or step.jumps
    ]
    assert found == sorted(wanted)


@settings(deadline=None)
@given(deliveries)
def test_jumped_positions_are_marked(given_: list[Delivered]) -> None:
    jumped = set()
    for before, after in plain_steps(given_):
        if before[3] == after[3]:
            jumped |= {(after[1], offset) for offset in range(before[2] + 1, after[2])}
    s = reader_steps.screen_steps(rows(given_), FACTS, reader_steps.Trail())
    masks, blocks = s["space"] == Space.POSITION, named(Space.POSITION, s)
    found = set()
    for place, block, mask in zip(
        *(blocks[name][masks] for name in ("place", "offset_block", "jumped")), strict=True
    ):
        bits = int(mask) & ((1 << 64) - 1)
        found |= {(int(place), int(block) * 64 + bit) for bit in range(64) if bits >> bit & 1}
    assert found == jumped


def test_a_jump_over_half_the_world_costs_one_count() -> None:
    s = reader_steps.screen_steps(rows([(0, 0, 0, 0), (0, 0, 1 << 60, 0)]), FACTS, reader_steps.Trail())
    assert len(s["run"]) < 5


_NO_ROWS = {name: np.zeros(0, dtype=np.int64) for name in SUMMARY}
commits = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 70)), max_size=10)


@settings(deadline=None)
@given(
    commits,
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=30),
    st.sets(st.integers(0, 60)),
    cuts,
)
def test_overcommits_equal_those_of_a_plain_loop(
    committed: list[tuple[int, int]], given_: list[tuple[int, int]], readable: set[int], at: list[int]
) -> None:
    """A commit above a readable record that is above all that was given by then."""
    committed, given_ = sorted(committed), sorted(given_)
    t, offset = (np.array([c[i] for c in committed], dtype=np.int64) for i in (0, 1))
    facts = Facts(RUN, 0, True, commits={0: Commits(t, offset, np.zeros_like(t), np.sort(offset))})
    found: list[Summary] = []
    for part in parts(given_, at):
        c = rows([(0, 0, one[1], 0) for one in part])
        found += given_by_commits({**c, "t": np.array([one[0] for one in part], dtype=np.int64)}, facts)
    for records in parts(sorted(readable), at):
        log = np.array(records, dtype=np.int64)
        found += below_commits(np.zeros_like(log), log, np.ones(len(log), dtype=bool), facts)
    summary = merged(joined([_NO_ROWS, *found]))
    screened = Screened(summary, weigh(summary))
    overcommitted = [(over.t, over.offset) for over in overcommits(screened, facts)]
    wanted = []
    for time, up_to in committed:
        given_by_then = max((one[1] + 1 for one in given_ if one[0] <= time), default=0)
        if any(given_by_then <= record < up_to for record in readable):
            wanted.append((time, up_to))
    assert overcommitted == wanted


def test_reached_is_the_highest_so_far() -> None:
    none = np.zeros(2, dtype=np.int64)
    s = {"place": none, "commit": np.array([1, 3]), "next_offset": np.array([5, 4])}
    assert _reached(s, 0, 5).tolist() == [0, 5, 5, 5, 5]
    assert place_of(none, none).tolist() == [0, 0]
