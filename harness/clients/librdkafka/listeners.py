"""The listeners of a group's member, as the loaded library knows them."""

from __future__ import annotations

from typing import Any

from confluent_kafka import libversion

from harness.contracts import OnAssignment

REPORTS_LOST = 0x01060000  # the first library that reports lost partitions apart from revoked ones


def listeners(on_assignment: OnAssignment) -> dict[str, Any]:
    """Return the arguments of `subscribe` that report every assignment."""

    def listener(how: str) -> Any:
        return lambda _, partitions: on_assignment(how, sorted(p.partition for p in partitions))

    found = {"on_assign": listener("assigned"), "on_revoke": listener("revoked")}
    return found | ({"on_lost": listener("lost")} if libversion()[1] >= REPORTS_LOST else {})
