"""A cluster, the view of its metadata, and the arena: a cluster with the workers of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from harness.contracts.nodes import Lane, Node

if TYPE_CHECKING:
    from harness.cluster_options import Choice


@dataclass(frozen=True)
class PartitionState:
    """One partition as a chosen broker sees it; `leader` is a node name, or None while there is none."""

    topic: str
    partition: int
    leader: str | None
    leader_epoch: int
    replicas: tuple[str, ...]
    in_sync: tuple[str, ...]


@dataclass(frozen=True)
class BrokerPlace:
    """The id and the address of a broker, for requests to this broker only."""

    id: int
    control: tuple[str, int]  # its host and port in the control lane


def compacts(policy: str) -> bool:
    """Return True if a topic with this `cleanup.policy` keeps only the latest value of each key."""
    return "compact" in (part.strip().lower() for part in policy.split(","))


@dataclass(frozen=True)
class TopicSettings:
    partitions: int = 3
    replication_factor: int = 3
    min_insync_replicas: int = 2
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("partitions", "replication_factor", "min_insync_replicas"):
            if getattr(self, name) <= 0:
                raise ValueError(f"TopicSettings.{name} has to be greater than 0, not {getattr(self, name)}")
        if self.min_insync_replicas > self.replication_factor:
            raise ValueError(
                f"TopicSettings.min_insync_replicas {self.min_insync_replicas} is more than "
                f"the replication factor {self.replication_factor}"
            )
        if compacts(str(self.extra.get("cleanup.policy", ""))):
            raise ValueError(
                f"TopicSettings.extra: cleanup.policy={self.extra['cleanup.policy']}: compacted topics delete acked records "
                "by design and cannot be judged; use cleanup.policy=delete"
            )


class View(Protocol):
    """Reads metadata. Answers come from one chosen broker, never from a cache."""

    def partitions(self, topic: str) -> Sequence[PartitionState]: ...
    def active_controller(self) -> str: ...
    def controllers(self) -> Sequence[str]: ...  # the voters of the quorum
    def coordinator(self, key: str, *, transaction: bool) -> str | None: ...  # of a group or transactional id
    def registered_brokers(self) -> Sequence[str]: ...
    def broker_places(self) -> Mapping[str, BrokerPlace]: ...  # by node name, brokers that are down included
    def produce_round_trip_ms(self, broker: str) -> float: ...  # one small record, on the control lane


@runtime_checkable
class EnsembleView(View, Protocol):
    """The view of a cluster with ZooKeeper: its controllers are the brokers, any of which can be the active one."""

    def zookeepers(self) -> Mapping[str, str]: ...  # by node name: leader, follower, or empty: does not serve


@dataclass(frozen=True)
class ClusterDescription:
    """A cluster as `describe` reports it: what callers use has a name, `more` is for readers of the manifest."""

    kind: str  # its name in --cluster
    steps_s: Mapping[str, float] = field(
        default_factory=dict
    )  # of its start: seconds to each step; the last is `ready`
    kafka_version: str = ""  # of its brokers, e.g. "4.3.1" or "3.9.2, 4.3.1"; empty: it cannot be known
    lacking: Sequence[str] = ()  # optional requests that its brokers do not offer
    not_checked: Sequence[str] = ()  # the consequences, one sentence each: every run notes them
    mock: bool = False  # no real brokers: they do not answer every request
    more: Mapping[str, Any] = field(default_factory=dict)  # sizes, settings, other versions: JSON values

    def as_data(self) -> dict[str, Any]:
        """Return the description for the manifest; values that are empty are left out."""
        named = {
            "kind": self.kind,
            "kafka_version": self.kafka_version,
            **self.more,
            "lacking": list(self.lacking),
            "not_checked": list(self.not_checked),
            "steps_s": dict(self.steps_s),
        }
        return {name: value for name, value in named.items() if name in self.more or value}


class Cluster(Protocol):
    def start(self) -> None: ...  # returns when the cluster is ready
    def stop(self) -> None: ...
    def bootstrap_servers(self, lane: Lane) -> str: ...
    def client_settings(self, lane: Lane) -> Mapping[str, Any]:
        """Return the security settings of a client, by librdkafka's names. Contains secrets: never log them."""
        ...

    def nodes(self) -> Sequence[Node]: ...
    def view(self) -> View: ...
    def create_topic(
        self, name: str, settings: TopicSettings
    ) -> None: ...  # returns when it can be written to
    def delete_topic(self, name: str) -> None: ...
    def begin_logs(self) -> None: ...  # a run begins: collect_logs copies the logs from now on
    def collect_logs(self, into: Path) -> None: ...
    def residue(self) -> Sequence[str]: ...  # leftovers of faults, each in a few words
    def describe(self) -> ClusterDescription: ...  # also before its start and after its end


class ClusterKind(Protocol):
    """The value of `cluster_class` in a module of harness/clusters: the class of its clusters, or one that chooses a class."""

    def chosen(self, choice: Choice, folder: Path, /) -> Cluster:
        """Return the cluster that the user's options ask for, not started yet; a class method of a class."""
        ...


@runtime_checkable
class Shared(Protocol):
    """A cluster with other users: onceproof owns only topics, groups and transactional ids with the prefix."""

    @property
    def prefix(self) -> str: ...


@runtime_checkable
class ReplicaLogs(Protocol):
    """A cluster whose brokers' log files can be read from here, even while a broker is down."""

    def replica_folders(self, topic: str, partition: int) -> Mapping[str, Path]: ...  # by broker name


class Arena(Protocol):
    """A running run as faults and targets see it: the cluster, the workers, the topic under test."""

    @property
    def cluster(self) -> Cluster: ...
    @property
    def topic(self) -> str: ...
    @property
    def group(self) -> str: ...  # of the run's consumers
    @property
    def patience(
        self,
    ) -> float: ...  # multiplies the times that faults wait and watch; tests of faults use less than 1
    def nodes(self) -> Sequence[Node]: ...  # of the cluster, then the workers
