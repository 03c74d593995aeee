"""A finder: the questions about one anomaly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
    from harness.reconcile.screen.spaces import Space, Why


class Finder(Protocol):
    """Finds one anomaly in the rows of blocks that are not sound (harness.reconcile.screen.screen).

    It is called only if screening found one of the reasons in `woken_by`. The number of compared items (E9) is the sum of the
    counts in `compared`, made by the screening, which sees every row.

    Its questions are methods from the tables of a subject (harness.reconcile.find.tables) to a table of findings, one or
    several of: of_positions, of_steps, of_messages, of_order, of_keys, of_transactions, of_history.
    """

    anomaly: ClassVar[str]
    asked_of: ClassVar[tuple[str, ...]]  # harness.reconcile.find.findings.LEDGER, HISTORY or both
    compared: ClassVar[tuple[str, ...]]  # names of harness.reconcile.screen.summaries.Count
    woken_by: ClassVar[Mapping[Space, Why]]

    def explain(self, row: Mapping[str, Any]) -> str: ...
