"""Share groups (KIP-932): what a client offers that can be a member of one."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from harness.contracts.client import Batch, ConsumerSpec
from harness.contracts.outcomes import Outcome


class ShareMember(Protocol):
    """A member of a share group (KIP-932)."""

    def poll(self, timeout_s: float) -> Batch: ...  # without positions: a share group has none
    def accept(
        self, timeout_s: float
    ) -> tuple[Outcome, str]: ...  # all of the last poll; and the error's name
    def close(self) -> None: ...


@runtime_checkable
class Sharing(Protocol):
    """A client that can be a member of a share group."""

    def open_share_member(self, settings: ConsumerSpec) -> ShareMember: ...
