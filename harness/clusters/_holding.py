"""The power over single requests on their way to a broker: RequestHolding."""

from __future__ import annotations

from harness.clusters._server import Server


class Holding(Server):
    pass
