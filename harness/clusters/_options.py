"""How the nodes of a cluster are laid out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """How the nodes of a cluster are laid out, so that faults find a way in. What is not asked for costs nothing."""

    fuse: bool = False  # data folders behind a file system of ours: disk faults, loss of power (root)
    clocks: bool = False  # wall clocks can be set (libfaketime)
    memory: bool = False  # each has a control group of its own, so that its memory can be taken away (root)


PLAIN = Options()
