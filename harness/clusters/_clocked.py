"""The power over a node's wall clock: Skewable."""

from __future__ import annotations

from harness.clusters._server import Server


class Clocked(Server):
    pass
