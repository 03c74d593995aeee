"""A Kafka server that is a process of this machine."""

from __future__ import annotations

from pathlib import Path

from harness.clusters.base.options import Options
from harness.clusters.links.links import Links
from harness.clusters.links.mesh import Member
from harness.clusters.processes.java import Jvm
from harness.clusters.processes.server_process import ServerProcess
from harness.runtime import plain_paths


class KafkaProcess(ServerProcess):
    def __init__(
        self, member: Member, address: str, links: Links, folder: Path, options: Options, jvm: Jvm
    ) -> None:
        super().__init__(member, address, links, folder, options)
        self.jvm = jvm

    def command(self) -> list[str | Path]:
        seen = plain_paths.seen_from(self.folder, self.folder)
        return self.jvm.command(self.member, seen, byteman=self.options.byteman)
