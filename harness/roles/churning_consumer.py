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

NEVER = float("inf")


class ChurningConsumerRole(ConsumerRole):
    def __init__(self, spec: Mapping[str, Any], board: Board) -> None:
        super().__init__(spec, board)
        self._churn = spec["churn"]
        self._random = random.Random(spec["seed"])
        self._stalls_at = NEVER

    def work(self, client: Client, ledger: Ledger, until: Callable[[], bool]) -> None:
        journal = ledger.deliveries()
        settles_at = time.monotonic() + self._churn["for_s"]  # so that the group can come to the end
        while not until():
            due = time.monotonic() + self._random.uniform(0.5, 1.5) * self._churn["stay_s"]
            due = due if due < settles_at else NEVER
            stalls = self._churn["stall_s"] > 0 and self._random.random() < 0.5
            self._stalls_at = due if stalls else NEVER
            leaves_at = due + self._churn["stall_s"] + self._churn["stay_s"] if stalls else due
            self._be_a_member(
                client, ledger, journal, lambda leaves_at=leaves_at: until() or time.monotonic() > leaves_at  # type: ignore[misc]
            )  # fmt: skip
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
        if time.monotonic() > self._stalls_at:
            self._stalls_at = NEVER
            time.sleep(self._churn["stall_s"])


role_class = ChurningConsumerRole
