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
    way: str = ""  # which of the fault's ways was taken


@dataclass(frozen=True)
class Healing:
    """The measured proof that nothing of the fault is left."""

    healed: bool
    proof: str
    measured: Mapping[str, float] = field(default_factory=dict)


class Fault(Protocol):
    """What breaks. Whom is a Target's business, when is the Schedule's. docs/faults.md is made of these."""

    needs: ClassVar[type]
    ways: ClassVar[
        Mapping[str, str]
    ]  # how it is done, best first: the way's name, and what that needs on the machine
    bites_when: ClassVar[str]  # in words: what is measured while it is held

    def hold(self, arena: Arena, nodes: Sequence[Node]) -> AbstractContextManager[Bite]:
        """Break; yield once the effect was measured or its limit has passed; undo on the way out.

        The undo is registered before the act and is idempotent.
        """
        ...

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        """Called after the hold has ended: wait, within a limit, until nothing of it can be measured."""
        ...

    def describe(self) -> Mapping[str, Any]:
        """The fault as data, for the manifest: its name and settings."""
        ...
