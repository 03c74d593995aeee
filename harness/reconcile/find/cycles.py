"""Cycles in a graph of operations: strongly connected components, and the shortest cycle of each as evidence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import polars as pl

from harness.reconcile.find.findings import finding

Edge = tuple[int, int]

LIMIT = 2_000_000  # edges; a larger graph is not searched


class TooManyEdges(Exception):
    """The graph is too large to be searched: the verdict is INCONCLUSIVE, never HELD."""


def components(edges: Sequence[Edge]) -> list[set[int]]:
    """Return the strongly connected components with more than one node."""
    if len(edges) > LIMIT:
        raise TooManyEdges(
            f"{len(edges):,} edges between operations, more than {LIMIT:,}: cycles were not looked for"
        )
    if not edges:
        return []
    # Only here: it takes a third of a second to load, and a ledger never asks for cycles.
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ends = np.array(edges, dtype=np.int64)
    nodes, numbers = np.unique(ends, return_inverse=True)
    numbers = numbers.reshape(ends.shape)
    graph = coo_array(
        (np.ones(len(ends), dtype=np.int8), (numbers[:, 0], numbers[:, 1])), shape=(len(nodes), len(nodes))
    )
    _, labels = connected_components(graph.tocsr(), directed=True, connection="strong")
    found: dict[int, set[int]] = defaultdict(set)
    for node, label in zip(nodes.tolist(), labels.tolist(), strict=True):
        found[label].add(node)
    return sorted((members for members in found.values() if len(members) > 1), key=min)


def cycles(edges: Sequence[Edge], must_use: Iterable[Edge] | None = None) -> Iterator[list[int]]:
    """Yield the shortest cycle of each component, from its least node on; if `must_use` is given, through one of these."""
    after: dict[int, list[int]] = defaultdict(list)
    for source, target in sorted(set(edges)):
        after[source].append(target)
    wanted = sorted(set(edges if must_use is None else must_use))
    for members in components(edges):
        inside = {node: [target for target in after[node] if target in members] for node in members}
        shortest: list[int] | None = None
        for edge in wanted:
            if members.issuperset(edge):
                closed = _closed(inside, edge, len(shortest) if shortest else len(members) + 1)
                if closed is not None and (
                    shortest is None or (len(closed), closed) < (len(shortest), shortest)
                ):
                    shortest = closed
        if shortest is not None:
            yield shortest


def _closed(after: Mapping[int, Sequence[int]], edge: Edge, at_most: int) -> list[int] | None:
    """Return the shortest way from the edge's target back to its source, as a cycle that begins with its least node.

    None if it has more than `at_most` nodes, because a shorter cycle is known already.
    """
    source, target = edge
    came_from, border = {target: target}, [target]
    for _ in range(at_most - 1):
        if source in came_from or not border:
            break
        reached = []
        for node in border:
            for follower in after[node]:
                if follower not in came_from:
                    came_from[follower] = node
                    reached.append(follower)
        border = reached
    if source not in came_from:
        return None
    way = [source]
    while way[-1] != target:
        way.append(came_from[way[-1]])
    way.reverse()
    least = way.index(min(way))
    return way[least:] + way[:least]


# --- tables ---------------------------------------------------------------------------------------


def edges_of(table: pl.DataFrame) -> dict[int, dict[str, list[Edge]]]:
    """Return the edges by run and kind (ww, wr)."""
    found: dict[int, dict[str, list[Edge]]] = defaultdict(lambda: {"ww": [], "wr": []})
    for row in table.iter_rows(named=True):
        found[row["run"]][row["kind"]].append((row["source"], row["target"]))
    return found


def findings_of(anomaly: str, found: Mapping[int, Sequence[Sequence[int]]]) -> pl.DataFrame:
    rows = [(run, ",".join(map(str, cycle))) for run, cycles in found.items() for cycle in cycles]
    return finding(
        pl.DataFrame(rows, schema={"run": pl.Int64, "operations": pl.String}, orient="row"), anomaly,
        messages=pl.lit([], pl.List(pl.String)), offsets=pl.lit([], pl.List(pl.Int64)),
        topic="0", partition="NULL", sender="NULL", t="NULL", evidence={"operations": "operations"},
    )  # fmt: skip
