"""Which cluster a user asked for: the same options for pytest and for the commands, read in one place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Protocol

from harness import provision, registry
from harness.clusters._options import PLAIN, Options
from harness.contracts import Cluster
from harness.errors import UsageError

FOR_TESTS_OF_THE_HARNESS = ("memory",)


@dataclass(frozen=True)
class Choice:
    """What the options say. Options that a kind of cluster does not know are refused by it, never ignored."""

    cluster: str = "local"
    kafka: str = provision.KAFKA_VERSION
    combined: bool = False
    image: str = ""
    # What a suite asks for, not the user:
    options: Options = PLAIN
    settings: Mapping[str, str] = field(default_factory=dict)  # of the brokers

    @classmethod
    def of(cls, read: Callable[[str], Any], **more: Any) -> Choice:
        """`read` gives the value of an option by the name of its field; None: not given."""
        asked = {each.name: read(each.name) for each in fields(cls) if each.name in _OPTIONS}
        return cls(**{name: value for name, value in asked.items() if value is not None}, **more)

    def build(self, folder: Path) -> Cluster:
        """The chosen cluster, not started yet; its data, logs and sockets go into the folder."""
        kinds = kinds_of_clusters()
        if self.cluster not in kinds:
            raise UsageError(f"--cluster {self.cluster}: there are {', '.join(kinds)}")
        cluster: Cluster = registry.load("cluster", self.cluster).chosen(self, folder)
        return cluster

    def __str__(self) -> str:
        return f"Kafka {self.kafka} ({self.cluster}{', combined nodes' if self.combined else ''})"

    def words(self) -> list[str]:
        """As words of a command line: what differs from the defaults."""
        plain = Choice()
        words: list[str] = []
        for name in _OPTIONS:
            value = getattr(self, name)
            if value == getattr(plain, name):
                continue
            words += [_flag(name)] if value is True else [_flag(name), str(value)]
        return words


# By field: what argparse and pytest both take.
_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "cluster": {"metavar": "KIND", "help": "local (default), docker, zookeeper or existing"},
    "kafka": {"metavar": "VERSION", "help": f"release of the brokers (default: {provision.KAFKA_VERSION})"},
    "combined": {
        "action": "store_true",
        "default": None,
        "help": "nodes that are brokers and controllers at once, instead of three of each",
    },
    "image": {
        "metavar": "IMAGE",
        "help": "with --cluster docker: an image laid out like the official one, instead of one that is made here",
    },
}


@contextmanager
def running(cluster: Cluster) -> Iterator[Cluster]:
    """Start it, and stop it whatever happens."""
    cluster.start()
    try:
        yield cluster
    finally:
        cluster.stop()


class _Add(Protocol):
    def __call__(self, flag: str, **how: Any) -> Any: ...


def add_options(add: _Add) -> None:
    """Give all options of a choice to a parser: argparse's add_argument or pytest's addoption."""
    for name, how in _OPTIONS.items():
        add(_flag(name), **how)


def kinds_of_clusters() -> list[str]:
    return [name for name in registry.names("cluster") if name not in FOR_TESTS_OF_THE_HARNESS]


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
