"""The layout of a cluster's nodes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Options:
    """Layout of a cluster's nodes that some faults require. Options that are off cost nothing."""

    fuse: bool = False  # data folders behind our FUSE file system: disk faults, loss of power (root)
    clocks: bool = False  # wall clocks can be set (libfaketime)
    memory: bool = False  # each node has its own control group, so that its memory can be limited (root)
    byteman: bool = False  # an agent in the brokers' JVMs: disk faults without root, and slow reads
    log_folders: int = 1  # of each broker; with several, one can break while the broker goes on

    def folders_in(self, data: Path) -> list[Path]:
        """Return the log folders of a broker, all in its data folder; the first one has the metadata."""
        if self.log_folders == 1:
            return [data]
        return [data / str(number) for number in range(1, self.log_folders + 1)]


PLAIN = Options()
