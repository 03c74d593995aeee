"""The sizes that decide how much the driver does alone, and how Spark divides the rest among tasks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """Limits of what the driver does alone. Results do not depend on them, only time and memory."""

    merged_in_driver: int = 6_000_000  # records whose summaries the driver merges: some megabytes
    judged_in_driver: int = (
        1 << 13
    )  # blocks in doubt, of 64 messages or positions, whose rows the driver judges
    stretch_bits: int = 14  # 2 ** 14 neighbouring messages or positions are in one share


USUAL = Sizes()
ALL_IN_TASKS = Sizes(merged_in_driver=-1, judged_in_driver=-1)  # however few rows there are
