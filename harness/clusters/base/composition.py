"""The class of a node: a server, and the powers that the options of its cluster and this machine give it.

A node without a power does not have its methods, so `isinstance(node, fault.needs)` is true for exactly the nodes that can
do it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypeVar, cast

from harness.clusters.base.options import Options
from harness.clusters.base.server import Server

S = TypeVar("S", bound=Server)


@dataclass(frozen=True)
class Site:
    """The options and the place of a cluster, which decide the powers of its nodes."""

    options: Options
    folder: Path  # of the cluster
    security: str = "plaintext"  # protocol of the client listeners


class Power(Server):
    """A mix-in that gives a server one power, where that is possible."""

    gives: ClassVar[type]  # a protocol of harness.contracts.powers

    @classmethod
    def why_not(cls, _site: Site, /) -> str | None:
        """Return why a node there does not have the power, with the remedy; None if it has it.

        The machine's reason comes first: an option does not help if the machine cannot do it.
        """
        return None


def with_powers(server: type[S], powers: Sequence[type[Power]], site: Site) -> type[S]:
    """Return the class of a server with those of the powers that it can have there; `lacks` has the other reasons.

    The hooks of the first power run first and contain those of the later ones.
    """
    reasons = {power: power.why_not(site) for power in powers}
    able = [power for power, reason in reasons.items() if reason is None]
    lacks: Mapping[type, str] = {
        **server.lacks,
        **{power.gives: reason for power, reason in reasons.items() if reason is not None},
    }
    return cast(type[S], type(server.__name__, (*able, server), {"lacks": lacks}))


def without(option: str) -> str:
    """Return the reason of a power that its cluster could have and was not started with."""
    return f"the cluster was started without it; start it with Options({option})"
