"""Work between the runs of a night: keep its run folders within the disk budget, and record its resources."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness.nights.disk_budget import GIB, kept_within, run_folders, size_of
from harness.nights.journal import NightJournal
from harness.nights.minimising import smaller_name
from harness.nights.resources import sampled

EVERY_S = 60.0  # a sample


@dataclass
class Upkeep:
    """Call it after each run."""

    journal: NightJournal
    runs: Path
    disk_gb: float | None
    note: Callable[[str], None]
    every_s: float = EVERY_S
    _sampled_at_s: float | None = None
    _only_evidence_noted: bool = False  # that only evidence is left

    def __call__(self) -> None:
        now_s = self.journal.used_s
        due = self._sampled_at_s is None or now_s - self._sampled_at_s >= self.every_s
        if self.disk_gb is None and not due:
            return  # measuring all run folders after each run would cost more with each run
        names = [each.name for each in self.journal.state.plan.scenarios]
        folders = run_folders(self.runs, (*names, *map(smaller_name, names)))
        total = self._within_budget(folders)
        if due:
            self._sampled_at_s = now_s
            self.journal.write("resources", **sampled(self.runs, total))

    def _within_budget(self, folders: list[Path]) -> int:
        """Return the bytes of the run folders, at most those of the budget if that is possible."""
        if self.disk_gb is None:
            return sum(map(size_of, folders))
        limit = round(self.disk_gb * GIB)
        kept = kept_within(limit, folders)
        if kept.smaller:
            self.journal.write("reduced", runs=[str(each) for each in kept.smaller])
            self.note(
                f"--disk-gb {self.disk_gb:g}: {len(kept.smaller)} runs that are as promised were reduced"
            )
        if kept.total > limit and not self._only_evidence_noted:
            self._only_evidence_noted = True
            self.note(
                f"the run folders take {kept.total / GIB:.2f} GiB, more than --disk-gb {self.disk_gb:g}: what is left is evidence"
            )
        return kept.total
