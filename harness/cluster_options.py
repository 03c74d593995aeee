"""The options that choose a cluster: the same for pytest and for the commands."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from harness import provision, registry
from harness.clusters.base.options import PLAIN, Options
from harness.contracts import Cluster, ClusterKind
from harness.errors import UsageError
from harness.kafka.connection import TOPIC_PREFIX
from harness.kafka.protocol.security import PROTOCOLS
from harness.provision.kafka import LAST_WITH_ZOOKEEPER
from harness.runtime import signals

if TYPE_CHECKING:
    from harness.contracts import Fault
    from harness.scenario import Scenario

FOR_TESTS_OF_THE_HARNESS = ("memory",)
_WAY = "byteman"


def kinds_of_clusters() -> list[str]:
    return [name for name in registry.names("cluster") if name not in FOR_TESTS_OF_THE_HARNESS]


@dataclass(frozen=True)
class Choice:
    """The values of the options. A kind of cluster refuses options that it does not have; none is ignored."""

    cluster: str = "local"
    kafka: str = provision.KAFKA_VERSION
    combined: bool = False
    mixed: str = ""
    image: str = ""
    zookeeper: bool = False
    security: str = "plaintext"
    bootstrap: str = ""
    client_config: str = ""
    powers: str = ""
    prefix: str = TOPIC_PREFIX
    keep_topics: bool = False
    # Set by suites, not by users:
    options: Options = PLAIN
    settings: Mapping[str, str] = field(default_factory=dict)  # broker settings

    @classmethod
    def of(cls, read: Callable[[str], Any], **more: Any) -> Choice:
        """Return the choice; `read` returns the value of an option by its field name, None if it is not given."""
        asked = {each.name: read(each.name) for each in fields(cls) if each.name in OPTIONS}
        given = {name: value for name, value in asked.items() if value is not None}
        if given.get("zookeeper") or given.get("cluster") == "zookeeper":
            given = {"kafka": LAST_WITH_ZOOKEEPER, **given}
        return cls(**given, **more)

    def check(self) -> None:
        """Raise UsageError for an unknown kind of cluster, and for an option that this kind does not know."""
        self.mixed_versions()
        kinds = kinds_of_clusters()
        if self.cluster not in kinds:
            raise UsageError(f"--cluster {self.cluster}: unknown kind; choose one of {', '.join(kinds)}")
        for name, known_by in _ONLY.items():
            if self.cluster not in known_by and getattr(self, name) != getattr(Choice(), name):
                raise UsageError(
                    f"{_flag(name)} is for --cluster {' or '.join(known_by)}, not {self.cluster}"
                )

    def build(self, folder: Path) -> Cluster:
        """Return the chosen cluster, not started yet; its data, logs and sockets go into the folder."""
        self.check()
        kind: ClusterKind = registry.load("cluster", self.cluster)
        return kind.chosen(self, folder)

    def mixed_versions(self) -> dict[str, str]:
        """Return the versions of single nodes, by node name, from `mixed`."""
        pairs = [word.partition("=") for word in self.mixed.split(",") if word]
        if wrong := ["".join(pair) for pair in pairs if not (pair[0] and pair[2])]:
            raise UsageError(
                f"--mixed {wrong[0]}: write NODE=VERSION, e.g. broker-1={provision.KAFKA_VERSION}"
            )
        return {name: version for name, _, version in pairs}

    def __str__(self) -> str:
        if self.bootstrap:
            return f"the cluster at {self.bootstrap}"
        others = "".join(f", {node} {version}" for node, version in self.mixed_versions().items())
        how = [
            self.cluster,
            *(["combined nodes"] if self.combined else []),
            *(["ZooKeeper"] if self.zookeeper else []),
        ]
        return f"Kafka {self.kafka}{others} ({', '.join(how)})"

    def words(self) -> list[str]:
        """Return the options that differ from the defaults, as words of a command line."""
        plain = Choice()
        words: list[str] = []
        for name in OPTIONS:
            value = getattr(self, name)
            if value == getattr(plain, name):
                continue
            words += [_flag(name)] if value is True else [_flag(name), str(value)]
        return words


# By field: arguments for argparse and pytest.
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "cluster": {
        "metavar": "KIND",
        "help": f"kind of cluster: {', '.join(kinds_of_clusters())} (default: local)",
    },
    "kafka": {
        "metavar": "VERSION",
        "help": f"Kafka release of the brokers (default: {provision.KAFKA_VERSION}; with ZooKeeper: {LAST_WITH_ZOOKEEPER})",
    },
    "combined": {
        "action": "store_true",
        "default": None,
        "help": "use combined nodes, each a broker and a controller, instead of three of each",
    },
    "mixed": {
        "metavar": "NODE=VERSION,…",
        "help": "local: releases of single nodes that differ from --kafka, e.g. broker-1=3.9.2",
    },
    "image": {
        "metavar": "IMAGE",
        "help": "docker: image with the layout of the official one, e.g. apache/kafka:4.1.0 (default: an image built here)",
    },
    "zookeeper": {
        "action": "store_true",
        "default": None,
        "help": "docker: run the brokers with a ZooKeeper ensemble, as --cluster zookeeper does",
    },
    "security": {
        "metavar": "HOW",
        "choices": PROTOCOLS,
        "help": f"local: security protocol of the client listeners: {', '.join(PROTOCOLS)} (default: plaintext)",
    },
    "bootstrap": {
        "metavar": "HOST:PORT,…",
        "help": "existing: addresses of its brokers, e.g. kafka-1:9092,kafka-2:9092",
    },
    "client_config": {
        "metavar": "FILE",
        "help": "existing: properties file with the clients' security settings; ${env:NAME} and ${file:PATH} are replaced",
    },
    "powers": {
        "metavar": "FILE.toml",
        "help": "existing: file with the commands that kill, restart or pause its nodes",
    },
    "prefix": {
        "metavar": "TEXT",
        "help": f"existing: prefix of every topic, group and transactional id that onceproof creates (default: {TOPIC_PREFIX})",
    },
    "keep_topics": {
        "action": "store_true",
        "default": None,
        "help": "existing: do not delete topics and groups at the end",
    },
}

# Options that only some kinds have: the others refuse them.
_ONLY: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("mixed", "security"), ("local",)),
    **dict.fromkeys(("image", "zookeeper"), ("docker",)),
    **dict.fromkeys(("bootstrap", "client_config", "powers", "prefix", "keep_topics"), ("existing",)),
}


@contextmanager
def running(cluster: Cluster) -> Iterator[Cluster]:
    """Start the cluster, and stop it whatever happens; a second Ctrl-C does not interrupt that."""
    cluster.start()
    try:
        yield cluster
    finally:
        with signals.deferred():
            cluster.stop()


class _Add(Protocol):
    def __call__(self, flag: str, **how: Any) -> Any: ...


def add_options(add: _Add, without: Container[str] = ()) -> None:
    """Add the options of a choice to a parser by `add`: argparse's add_argument or pytest's addoption."""
    for name, how in OPTIONS.items():
        if name not in without:
            add(_flag(name), **how)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


# --- Byteman in the brokers --------------------------------------------------------------------------


def laid_out_for(choice: Choice, scenarios: Iterable[Scenario]) -> Choice:
    """Return the choice, with Byteman in the brokers if a fault of these scenarios needs it."""
    return with_byteman(choice) if by_byteman(scenarios, fuse=choice.options.fuse) else choice


def with_byteman(choice: Choice) -> Choice:
    """Return the choice with Byteman in the brokers; an existing cluster cannot be changed."""
    if choice.cluster == "existing":
        return choice
    return replace(choice, options=replace(choice.options, byteman=True))


def by_byteman(scenarios: Iterable[Scenario], *, fuse: bool = False) -> bool:
    """Return True if a fault of these scenarios needs Byteman. With FUSE disks only a slow read does."""
    return any(_needs(fault, fuse) for one in scenarios for fault in _faults(one))


def faults_by_byteman() -> list[str]:
    """Return the names of all faults that Byteman can do."""
    return [name for name in registry.names("fault") if _WAY in registry.load("fault", name).ways]


def _faults(scenario: Scenario) -> Iterator[Fault]:
    for window in scenario.schedule:
        yield window.fault
        inner = getattr(window.fault, "inner", None)  # a fault may wrap another one
        if inner is not None:
            yield inner


def _needs(fault: Fault, fuse: bool) -> bool:
    if _WAY not in fault.ways or getattr(
        fault, "rate_kb_s", None
    ):  # the control group of the container limits a rate
        return False
    return not fuse or getattr(fault, "harm", None) == "read"
