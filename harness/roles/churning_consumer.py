"""A member of the group that comes and goes: it leaves and joins again, or stops polling for too long and is thrown out."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from typing import Any

from harness.board import Board
from harness.contracts import Batch, Client, Consumer
from harness.ledger import Ledger, RowJournal
from harness.roles.consumer import ConsumerRole


class ChurningConsumerRole(ConsumerRole):
    def __init__(self, spec: Mapping[str, Any], board: Board) -> None:
        super().__init__(spec, board)
        self._churn = spec["churn"]
        self._random = random.Random(spec["seed"])

    def work(self, client: Client, ledger: Ledger, until: Callable[[], bool]) -> None:
        journal = ledger.deliveries()
        stays_from = (
            time.monotonic() + self._churn["for_s"]
        )  # then it stays, so that the group can come to the end
        while not until():
            leave_at = time.monotonic() + self._random.uniform(0.5, 1.5) * self._churn["stay_s"]
            if leave_at > stays_from:
                leave_at = float("inf")
            self._stall_at = (
                leave_at if self._churn["stall_s"] and self._random.random() < 0.5 else float("inf")
            )
            leaves = float("inf") if self._stall_at < float("inf") else leave_at
            self._be_a_member(
                client,
                ledger,
                journal,
                lambda leaves=leaves: until() or time.monotonic() > leaves,  # type: ignore[misc]
            )
            if not until():
                time.sleep(self._churn["away_s"])

    def _work_then_commit(
        self, batch: Batch, consumer: Consumer, journal: RowJournal, ledger: Ledger
    ) -> None:
        super()._work_then_commit(batch, consumer, journal, ledger)
        self._stall_when_due()

    def _commit_then_work(
        self, batch: Batch, consumer: Consumer, journal: RowJournal, ledger: Ledger
    ) -> None:
        super()._commit_then_work(batch, consumer, journal, ledger)
        self._stall_when_due()

    def _stall_when_due(self) -> None:
        """As an application that works on one batch for too long."""
        if time.monotonic() > self._stall_at:
            self._stall_at = float("inf")
            time.sleep(self._churn["stall_s"])


role_class = ChurningConsumerRole
