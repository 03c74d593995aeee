"""A member of the group that comes and goes: it leaves and joins again, or stops polling for too long and is thrown out."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from harness.contracts import Batch, Client, Consumer
from harness.ledger.journal import Ledger, RowJournal
from harness.scenario import ChurnSettings
from harness.workers.counters import Board
from harness.workers.roles.consumer import ConsumerRole, ConsumerRoleSpec

NEVER = float("inf")


@dataclass(frozen=True, kw_only=True)
class ChurningConsumerRoleSpec(ConsumerRoleSpec):
    role: ClassVar[str] = "churning_consumer"
    stays_in_group: ClassVar[bool] = False

    churn: ChurnSettings
    seed: int


class ChurningConsumerRole(ConsumerRole):
    spec_class = ChurningConsumerRoleSpec

    def __init__(self, spec: ChurningConsumerRoleSpec, board: Board) -> None:
        super().__init__(spec, board)
        self._churn = spec.churn
        self._random = random.Random(spec.seed)
        self._settles_at: float | None = None  # it stays from then on; set when its first record arrives
        self._leaves_at = self._stalls_at = NEVER

    def work(self, client: Client, ledger: Ledger, until: Callable[[], bool]) -> None:
        journal = ledger.deliveries()
        while not until():
            self._leaves_at = self._stalls_at = NEVER
            self._plan()
            self._be_a_member(client, ledger, journal, lambda: until() or time.monotonic() > self._leaves_at)
            if not until():
                time.sleep(self._churn.away_s)

    def _plan(self) -> None:
        """Set the time of the next leave or stall."""
        if self._settles_at is None:
            return
        due = time.monotonic() + self._random.uniform(0.5, 1.5) * self._churn.stay_s
        if due > self._settles_at:
            return
        if self._churn.stall_s > 0 and self._random.random() < 0.5:
            self._stalls_at = due
        else:
            self._leaves_at = due

    def _record(self, batch: Batch, journal: RowJournal) -> None:
        super()._record(batch, journal)
        if self._settles_at is None and len(batch.rows):
            self._settles_at = time.monotonic() + self._churn.for_s
            self._plan()

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
        """Stop polling, as an application does that works on one batch for too long; then go on, removed from the group or not."""
        if time.monotonic() > self._stalls_at:
            self._stalls_at = NEVER
            time.sleep(self._churn.stall_s)
            self._plan()


role_class = ChurningConsumerRole
