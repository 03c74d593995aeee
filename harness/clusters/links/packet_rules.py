"""Packet filter rules that cut links between nodes with separate networks. Nothing here has an effect.

A cut is a rule where the packets arrive, so that for the sender they are lost on the way, as in a real network. A cut of
BOTH directions drops all `packets` of the link, and no connection can be made. A cut of one direction drops only `data`:
segments with content. Dropping all packets of one direction would drop the acknowledgements for the other direction too and
stall it; so segments without content pass, and the other direction stays open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from harness.clusters.links.mesh import Member
from harness.clusters.links.one_way_probe import LET_PASS_DSCP
from harness.contracts import Cut, Direction

TABLE = "ip onceproof"
_LONGEST_COMMENT = 128  # the kernel's limit
_IP_HEADER_BYTES = 20
# The size of a TCP header is given in words of four bytes; a packet longer than both headers has content.
_DATA_RULES = tuple(
    f"tcp doff {words} meta length > {_IP_HEADER_BYTES + 4 * words} drop" for words in range(5, 16)
)


class Loss(StrEnum):
    """The packets that a cut drops."""

    PACKETS = "packets"
    DATA = "data"


@dataclass(frozen=True)
class End:
    """A node at the end of links. `pid` is a process in its network; None while the node does not run."""

    member: Member
    address: str
    pid: Callable[[], int | None]

    @property
    def name(self) -> str:
        return self.member.name


def loss(direction: Direction) -> Loss:
    return Loss.PACKETS if direction is Direction.BOTH else Loss.DATA


def ruleset(rules: Sequence[str]) -> str:
    """Return the input of `nft -f` that replaces our table in one step; without rules there is no table."""
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
    """Return the rules for packets that arrive at this end: requests at the destination, answers at the source.

    `ports` are the link's ports at its destination.
    """
    link, lost = cut.link, loss(cut.direction)
    comment = f'comment "{f"{by} {link} {cut.direction} {lost}"[:_LONGEST_COMMENT]}"'
    if end.name == link.destination and cut.direction is not Direction.ANSWERS:
        packets = f"ip saddr {ends[link.source].address} tcp dport"
        # The probe of answers has to ask for them; see harness.clusters.links.one_way_probe.
        act = "drop" if lost is Loss.PACKETS else f"ip dscp != {LET_PASS_DSCP} jump data"
    elif end.name == link.source and cut.direction is not Direction.REQUESTS:
        packets = f"ip saddr {ends[link.destination].address} tcp sport"
        act = "drop" if lost is Loss.PACKETS else "jump data"
    else:
        return []
    return [f"{packets} {port:d} {act} {comment}" for port in ports]
