"""A Kafka server that is a process of this machine."""

from __future__ import annotations

from pathlib import Path

from harness import paths
from harness.clusters._jvm import Jvm
from harness.clusters._links import Links
from harness.clusters._mesh import Member
from harness.clusters._options import Options
from harness.clusters._process import ServerProcess


class KafkaProcess(ServerProcess):
    def __init__(
        self, member: Member, address: str, links: Links, folder: Path, options: Options, jvm: Jvm
    ) -> None:
        super().__init__(member, address, links, folder, options)
        self.jvm = jvm

    def command(self) -> list[str | Path]:
        seen = paths.seen_from(self.folder, self.folder)
        return self.jvm.command(self.member, seen, byteman=self.options.byteman)
