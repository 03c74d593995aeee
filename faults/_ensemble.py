"""Measurements of a ZooKeeper ensemble, if the cluster has one: its leader, and what works without a quorum."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence

from harness.contracts import Arena, Cluster, EnsembleView, View
from harness.errors import ClusterError, WaitTimeout
from harness.kafka import topics
from harness.waiting import wait_until

_GIVE_UP_LIMIT_S = 20.0  # a leader without followers notices after two seconds
_CREATE_LIMIT_S = 3.0
_CREATED_LIMIT_S = 10.0


def there(view: View) -> bool:
    return isinstance(view, EnsembleView)


def voters(view: View) -> Sequence[str]:
    """Return the servers of which more than half must run for leaders to be elected."""
    return list(view.zookeepers()) if isinstance(view, EnsembleView) else view.controllers()


def leader(view: View) -> str | None:
    """Return the leader of the ensemble; None without a leader or without an ensemble."""
    modes = view.zookeepers() if isinstance(view, EnsembleView) else {}
    return next((name for name, mode in modes.items() if mode == "leader"), None)


def without_quorum(arena: Arena, names: Collection[str]) -> tuple[bool, str, Mapping[str, float]]:
    """Check that no server serves and no topic can be created while brokers still accept records.

    Returns whether that is so, the proof, and the measurements.
    """
    view, begun = arena.cluster.view(), time.monotonic()
    assert isinstance(view, EnsembleView)
    try:
        wait_until(lambda: not any(view.zookeepers().values()), arena.patience * _GIVE_UP_LIMIT_S, "")
    except WaitTimeout:
        return (
            False,
            f"without {', '.join(sorted(names))} ZooKeeper still serves: {dict(view.zookeepers())}",
            {},
        )
    took = time.monotonic() - begun
    if topics.can_create(arena.cluster, _CREATE_LIMIT_S):
        return False, "no server of the ZooKeeper ensemble serves, but a topic can be created", {}
    try:
        brokers = [name for name in view.registered_brokers() if name not in names]
        trips = [view.produce_round_trip_ms(name) for name in brokers]
    except ClusterError as error:
        return False, f"ZooKeeper has no quorum, but brokers do not accept records: {error}", {}
    proof = (
        f"no server of the ZooKeeper ensemble serves after {took:.1f} s; a topic cannot be created within "
        f"{_CREATE_LIMIT_S:g} s, while {len(trips)} brokers accept records"
    )
    measured = {"quorum_lost_s": round(took, 3), "brokers_going_on": float(len(trips))}
    return bool(trips), proof, {**measured, "slowest_append_ms": round(max(trips, default=0.0), 1)}


def complaint(cluster: Cluster, names: Collection[str]) -> str | None:
    """Describe what is still wrong with the ensemble after a fault on these nodes; None if nothing is."""
    view = cluster.view()
    if not isinstance(view, EnsembleView):
        return None
    modes = view.zookeepers()
    if "leader" not in modes.values():
        return "the ZooKeeper ensemble has no leader"
    if idle := sorted(name for name in set(names) & set(modes) if not modes[name]):
        return f"{', '.join(idle)} neither leads nor follows in the ZooKeeper ensemble"
    if not set(names) & set(modes):
        return None
    if away := sorted(set(view.broker_places()) - set(view.registered_brokers())):
        return f"{', '.join(away)} not registered"
    return None if topics.can_create(cluster, _CREATED_LIMIT_S) else "topics cannot be created yet"
