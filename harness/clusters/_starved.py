"""The power over a node's share of the processors and of memory: Starvable."""

from __future__ import annotations

from harness.clusters._server import Server


class Starved(Server):
    pass
