"""A fault, and the measured proofs that it took effect and that it is gone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from harness.contracts.cluster import Arena
from harness.contracts.nodes import Node


@dataclass(frozen=True)
class Bite:
    """The measured proof that a fault took effect while it was held. Numbers go into `measured`."""

    bit: bool
    proof: str
    measured: Mapping[str, float] = field(default_factory=dict)
    way: str = ""  # the one of the fault's ways that was used


@dataclass(frozen=True)
class Healing:
    """The measured proof that nothing of the fault is left."""

    healed: bool
    proof: str
    measured: Mapping[str, float] = field(default_factory=dict)


class Fault(Protocol):
    """A fault. A Target chooses the nodes, a Schedule the time. docs/faults.md is made from these classes."""

    needs: ClassVar[type]
    ways: ClassVar[Mapping[str, str]]  # ways to do it, best first: the name of the way, and its requirements
    bites_when: ClassVar[str]  # the effect that is measured while it is held, in words

    def hold(self, arena: Arena, nodes: Sequence[Node]) -> AbstractContextManager[Bite]:
        """Begin the fault; yield when the effect was measured or its limit has passed; undo on exit.

        The undo is registered before the fault begins and is idempotent.
        """
        ...

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        """Wait, within a limit, until no effect can be measured any more. Called after the hold has ended."""
        ...

    def describe(self) -> Mapping[str, Any]:
        """Return the fault as data, for the manifest: its name and settings."""
        ...
