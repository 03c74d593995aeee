"""Packet filter rules that cut links between nodes with networks of their own. Nothing here has an effect.

A cut is a rule where the packets arrive, so that for the sender they are lost on the way, as in a real network. What is
lost is named: BOTH ways loses all `packets` of the link, and no connection can be made. One way loses only `data`:
segments with content. Losing all packets one way would lose the acknowledgements for the other way as well and stall it;
so the ones without content pass, and the other way stays open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from harness.clusters.links.mesh import Member
from harness.clusters.links.one_way_probe import LET_PASS_DSCP
from harness.contracts import Cut, Direction

TABLE = "ip onceproof"
_LONGEST_COMMENT = 128  # what the kernel keeps of it
_IP_HEADER_BYTES = 20
# TCP tells the size of its header in words of four bytes; whatever is longer than both headers has content.
_DATA_RULES = tuple(
    f"tcp doff {words} meta length > {_IP_HEADER_BYTES + 4 * words} drop" for words in range(5, 16)
)


class Loss(StrEnum):
    """What a cut loses."""

    PACKETS = "packets"
    DATA = "data"


@dataclass(frozen=True)
class End:
    """A node at the end of links. `pid`: of a process in its network; None while it does not run."""

    member: Member
    address: str
    pid: Callable[[], int | None]

    @property
    def name(self) -> str:
        return self.member.name


def loss(direction: Direction) -> Loss:
    return Loss.PACKETS if direction is Direction.BOTH else Loss.DATA


def ruleset(rules: Sequence[str]) -> str:
    """For `nft -f`: instead of whatever is in our table now, in one step; without rules there is no table."""
    fresh = f"add table {TABLE}\ndelete table {TABLE}\n"
    if not rules:
        return fresh
    return "\n".join(
        [
            f"{fresh}table {TABLE} {{",
            "chain data {",
            *_DATA_RULES,
            "}",
            "chain arriving {",
            "type filter hook input priority -300; policy accept;",
            *rules,
            "}",
            "}\n",
        ]
    )


def rules_at(end: End, cut: Cut, ends: Mapping[str, End], ports: Sequence[int], by: str) -> list[str]:
    """What this end of the link has to lose of what arrives: requests at the destination, answers at the source.

    `ports`: those of the link, at its destination.
    """
    link, lost = cut.link, loss(cut.direction)
    told = f'comment "{f"{by} {link} {cut.direction} {lost}"[:_LONGEST_COMMENT]}"'
    if end.name == link.destination and cut.direction is not Direction.ANSWERS:
        packets = f"ip saddr {ends[link.source].address} tcp dport"
        # The probe of answers has to ask for them; see harness.clusters.links.one_way_probe.
        act = "drop" if lost is Loss.PACKETS else f"ip dscp != {LET_PASS_DSCP} jump data"
    elif end.name == link.source and cut.direction is not Direction.REQUESTS:
        packets = f"ip saddr {ends[link.destination].address} tcp sport"
        act = "drop" if lost is Loss.PACKETS else "jump data"
    else:
        return []
    return [f"{packets} {port:d} {act} {told}" for port in ports]
