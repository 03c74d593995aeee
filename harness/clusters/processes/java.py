"""The command line of a broker's JVM."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.clusters.base.broker_properties import LOG4J1, LOG4J2
from harness.clusters.disk import byteman as disk_byteman
from harness.clusters.links.mesh import Member

ZOOKEEPER_CLASS = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
_ZOOKEEPER_LOG_KB = (
    "-Dzookeeper.preAllocSize=1024"  # initial size of each log file in KB; the default is 64 MB
)


@dataclass(frozen=True)
class Jvm:
    """The programs and jars that all nodes of a cluster run."""

    java: Path
    java_version: str
    libs: Path
    kafka_version: str
    agent: Path | None = None  # Byteman's jar, for brokers of clusters with Options(byteman=True)
    rules: Path | None = None  # the script that goes with it
    archive: Path | None = None  # prepared classes
    train: Path | None = None  # write such an archive when the process ends; excludes agents

    @property
    def classpath(self) -> str:
        """Return all jars by name and sorted: a class archive is only valid for exactly the same class path."""
        return ":".join(str(jar) for jar in sorted(self.libs.glob("*.jar")))

    def command(self, member: Member, folder: Path, *, byteman: bool = False) -> list[str | Path]:
        """Return the command that starts the node in `folder` (see `lay_out`); with `byteman`, brokers load the agent."""
        heap = 256 if member.broker else 64 if member.zookeeper else 128
        words: list[str | Path] = [self.java, f"-Xmx{heap}m", f"-Xms{min(heap, 48)}m"]
        # Only C1 and the serial collector: quick to start and small, as three JVMs share two cores.
        words += ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xshare:auto"]
        if self.archive is not None:
            words += [f"-XX:SharedArchiveFile={self.archive}"]
        if self.train is not None:
            words += [f"-XX:ArchiveClassesAtExit={self.train}"]
        elif byteman and member.broker and self.agent is not None and self.rules is not None:
            words += disk_byteman.options(self.agent, self.rules, folder)
        words += [
            f"-Djdk.net.hosts.file={folder / 'hosts'}",
            f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}",
            f"-Dlog4j.configuration=file:{folder / 'log4j.properties'}",
            "-Djava.awt.headless=true",
            "-cp",
            self.classpath,
            *([_ZOOKEEPER_LOG_KB, ZOOKEEPER_CLASS] if member.zookeeper else ["kafka.Kafka"]),
            folder / "server.properties",
        ]
        return words


def lay_out(folder: Path, properties: str, hosts: str) -> None:
    """Write the files that a node's JVM reads when it starts."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "server.properties").write_text(properties, encoding="utf-8")
    (folder / "hosts").write_text(hosts, encoding="utf-8")
    (folder / "log4j2.properties").write_text(LOG4J2, encoding="utf-8")
    (folder / "log4j.properties").write_text(LOG4J1, encoding="utf-8")
