"""The power to run another version of Kafka from the next start on: Upgradable."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import ClassVar

from harness.clusters.base.composition import Power
from harness.clusters.base.server import ASK_LIMIT_S, STOP_LIMIT_S
from harness.clusters.processes.java import Jvm
from harness.clusters.processes.kafka_process import KafkaProcess
from harness.contracts import Upgradable
from harness.kafka.protocol import features as protocol_features
from harness.provision.kafka import UNKNOWN_VERSION

_VERSION = re.compile(rb"Kafka version: (\S+)")
_LOOK_BYTES = 4 * 1024 * 1024  # the version is among its first lines, after its settings


class Upgraded(Power, KafkaProcess):
    """The cluster sets `programs_of`, which fetches a version, and `lay_out_as`, which writes the settings for it."""

    gives: ClassVar[type] = Upgradable
    programs_of: Callable[[str], Jvm]
    lay_out_as: Callable[[str], None]
    _log_before: int = 0  # bytes of the log from earlier starts

    def launch(self) -> None:
        self._log_before = self.log.stat().st_size if self.log.exists() else 0
        super().launch()

    # Upgradable

    def upgrade(self, version: str, limit_s: float = STOP_LIMIT_S) -> int:
        jvm = self.programs_of(version)  # first, while the node still runs: fetching takes time
        code = self.shut_down(limit_s)
        self.jvm = jvm
        self.lay_out_as(version)
        self.restart()
        return code

    def version(self) -> str:
        if not self.log.exists():
            return UNKNOWN_VERSION
        with self.log.open("rb") as log:
            log.seek(self._log_before)
            found = _VERSION.search(log.read(_LOOK_BYTES))
        return found[1].decode(errors="replace") if found else UNKNOWN_VERSION

    def features(self) -> Mapping[str, tuple[int, int]]:
        asked = self.control if self.member.broker else self.controller
        return protocol_features.features(asked, ASK_LIMIT_S).supported
