"""The steps of readers that are in doubt, listed one by one: a second pass over deliveries, made only when asked for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from harness.message import BAD_PAYLOAD, FOREIGN_RUN
from harness.reconcile.blocks import BITS, Bools, Ints, Space, Why, place_of, weigh
from harness.reconcile.by_queries.rows_here import local
from harness.reconcile.screen import by_runs
from harness.reconcile.select.across_tasks import Doubts
from harness.reconcile.source import Source, Work
from harness.reconcile.steps import COLUMNS, Rows, Trail, backwards, jumps, lanes

# A row is a step: the row that it comes from and the row that it reaches. Or, with `edge`, what a task saw first and
# last of a reader and partition.
_NAMES = ("run", "edge", *(f"from_{name}" for name in COLUMNS), *(f"to_{name}" for name in COLUMNS))
_SCHEMA = ", ".join(f"{name} bigint" for name in _NAMES)
_ARROW = pa.schema([(name, pa.int64()) for name in _NAMES])

Jumped = Mapping[
    tuple[int, int], tuple[Ints, Ints]
]  # run, place -> first and last offsets in doubt, in order


def steps(spark: SparkSession, source: Source, doubts: Doubts) -> DataFrame:
    """Steps that go back, and those that may have left out a record.

    Columns: run, reader, topic, partition, scope, excused, and of both ends t, offset, session, seq (null when the
    record cannot say who it is) as from_... and to_...
    """
    if not doubts.about_steps:
        return _told(spark, _ARROW.empty_table())
    found = source.each({"deliveries": (COLUMNS, _listing(_jumped(doubts)))}, _SCHEMA).toArrow()
    edge = found.column("edge").to_numpy().astype(bool)
    between = _stitched(found.filter(pa.array(edge)), _jumped(doubts))
    return _told(spark, pa.concat_tables([found.filter(pa.array(~edge)), between]))


def _told(spark: SparkSession, table: pa.Table) -> DataFrame:
    ours = f"& {BAD_PAYLOAD | FOREIGN_RUN} = 0"
    identity = [
        f"CASE WHEN {end}_flags {ours} THEN {end}_{name} END AS {end}_{name}"
        for end in ("from", "to")
        for name in ("session", "seq")
    ]
    return local(spark, table).selectExpr(
        "run", *(f"CAST(to_{name} AS int) AS {name}" for name in ("reader", "topic", "partition")),
        "CASE WHEN from_t = to_t THEN 'within' ELSE 'between' END AS scope", "from_generation != to_generation AS excused",
        "from_t", "from_offset", "to_t", "to_offset", *identity,
    )  # fmt: skip


def _jumped(doubts: Doubts) -> Jumped:
    """Where readers may have left something out, by run and place."""
    positions = doubts.screened.doubtful(Space.POSITION)
    found: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    which = (weigh(positions) & Why.JUMPED) != 0
    for run, place, block in zip(
        *(positions[name][which].tolist() for name in ("run", "a", "b")), strict=True
    ):
        found[run, place].append((block << BITS, (block << BITS) + 63))
    for one in doubts.jumped:
        found[one.run, one.place].append((one.first, one.last))
    ranges = {}
    for key, spans in found.items():
        ordered = np.array(sorted(spans), dtype=np.int64)
        # A range that begins later may end earlier: what counts is how far one has to look.
        ranges[key] = ordered[:, 0], np.maximum.accumulate(ordered[:, 1])
    return ranges


def _listing(jumped: Jumped) -> Work:
    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        trails: dict[int, Trail] = defaultdict(Trail)
        for run, c in by_runs(batches, COLUMNS):
            yield _batch(run, 0, *_chosen(run, *trails[run].walk(c), jumped))
        for run, trail in trails.items():
            yield _batch(run, 1, *trail.edges())

    return work


def _chosen(run: int, source: Rows, reached: Rows, jumped: Jumped) -> tuple[Rows, Rows]:
    far = jumps(source, reached)
    far = far[
        _over_doubt(
            run, {n: v[far] for n, v in source.items()}, {n: v[far] for n, v in reached.items()}, jumped
        )
    ]
    at = np.sort(np.r_[backwards(source, reached), far])
    return {n: v[at] for n, v in source.items()}, {n: v[at] for n, v in reached.items()}


def _over_doubt(run: int, source: Rows, reached: Rows, jumped: Jumped) -> Bools:
    """Which jumps pass over a range in doubt."""
    over = np.zeros(len(source["t"]), dtype=np.bool_)
    places = place_of(source["topic"], source["partition"])
    for place in np.unique(places).tolist():
        if (run, place) not in jumped:
            continue
        firsts, lasts = jumped[run, place]
        mine = places == place
        # The last range that begins before the jump's end; it, or one before it, reaches into the jump.
        at = np.searchsorted(firsts, reached["offset"][mine], side="left") - 1
        over[mine] = (at >= 0) & (lasts[at] > source["offset"][mine])
    return over


def _batch(run: int, edge: int, source: Rows, reached: Rows) -> pa.RecordBatch:
    count = len(source["t"])
    marks = {"run": np.full(count, run, dtype=np.int64), "edge": np.full(count, edge, dtype=np.int64)}
    rows = marks | {f"from_{n}": source[n] for n in COLUMNS} | {f"to_{n}": reached[n] for n in COLUMNS}
    return pa.RecordBatch.from_arrays([pa.array(rows[name], pa.int64()) for name in _NAMES], schema=_ARROW)


def _stitched(edges: pa.Table, jumped: Jumped) -> pa.Table:
    """Steps from what one task saw last to what the next one saw first."""
    c = {name: edges.column(name).to_numpy() for name in _NAMES}
    lane = lanes({name: c[f"from_{name}"] for name in ("reader", "topic", "partition")})
    order = np.lexsort((c["to_t"], c["from_t"], lane, c["run"]))
    batches = []
    for before, after in pairwise(order):
        if (c["run"][before], lane[before]) == (c["run"][after], lane[after]):
            source = {name: c[f"to_{name}"][[before]] for name in COLUMNS}
            reached = {name: c[f"from_{name}"][[after]] for name in COLUMNS}
            run = int(c["run"][before])
            batches.append(_batch(run, 0, *_chosen(run, source, reached, jumped)))
    return pa.Table.from_batches(batches, schema=_ARROW)
