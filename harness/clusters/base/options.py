"""How the nodes of a cluster are laid out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Options:
    """How the nodes of a cluster are laid out, so that faults find a way in. What is not asked for costs nothing."""

    fuse: bool = False  # data folders behind a file system of ours: disk faults, loss of power (root)
    clocks: bool = False  # wall clocks can be set (libfaketime)
    memory: bool = False  # each has a control group of its own, so that its memory can be taken away (root)
    byteman: bool = False  # an agent in the brokers' JVMs: disk faults without root, and slow reads
    log_folders: int = 1  # of each broker; with several, one can break and the broker lives on

    def folders_in(self, data: Path) -> list[Path]:
        """The log folders of a broker, the one with the metadata first. All are in its data folder."""
        if self.log_folders == 1:
            return [data]
        return [data / str(number) for number in range(1, self.log_folders + 1)]


PLAIN = Options()
