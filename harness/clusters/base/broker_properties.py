"""The settings of a test cluster: small, quick to fail over, strict about acknowledgements."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from harness.clusters.links.mesh import LANE_PORTS, Member, Mesh, Port
from harness.contracts import Lane
from harness.provision.kafka import KAFKA_VERSION, numbers_of

_CONTROLLERS_ADVERTISED = (3, 9)  # older servers do not start with an advertised controller listener
CONSOLE_PATTERN = "[%d] %p %m (%c)%n"


def server_properties(
    mesh: Mesh, member: Member, data: Path, extra: Mapping[str, str], version: str = KAFKA_VERSION
) -> dict[str, str]:
    """Return the server.properties of one node; `extra` overrides everything here.

    Older versions ignore settings that they do not know; the few that they refuse are left out here.
    """
    settings = {
        **(_ensemble(mesh, member) if mesh.zookeeper_connect() else _quorum(mesh, member)),
        "log.dirs": str(data),
        **_listeners(mesh, member, advertised=numbers_of(version) >= _CONTROLLERS_ADVERTISED),
    }
    if member.broker:
        settings |= _broker(len([m for m in mesh.members if m.broker]))
    if member.controller:
        settings |= {"broker.session.timeout.ms": "3000", "auto.create.topics.enable": "false"}
    return {**settings, **extra}


def zookeeper_properties(mesh: Mesh, member: Member, data: Path) -> dict[str, str]:
    """Return the settings of one ZooKeeper server. The others reach it by its name, which may resolve to their proxies."""
    ports = f"{Port.ZOOKEEPER_PEER:d}:{Port.ZOOKEEPER_ELECTION:d}"
    return {
        **{f"server.{peer.place}": f"{peer.name}:{ports}" for peer in mesh.members if peer.zookeeper},
        "clientPort": f"{Port.ZOOKEEPER:d}",
        "clientPortAddress": mesh.listen_address(member),
        "dataDir": str(data),
        # A session lasts 2 to 20 ticks; a leader without a majority gives up after 4.
        "tickTime": "500",
        "initLimit": "20",
        "syncLimit": "4",
        "admin.enableServer": "false",
        "4lw.commands.whitelist": "ruok,srvr",
        "maxClientCnxns": "0",  # no limit, as all brokers and probes connect from one address
    }


def _ensemble(mesh: Mesh, member: Member) -> dict[str, str]:
    return {
        "broker.id": str(member.id),
        "zookeeper.connect": mesh.zookeeper_connect(),
        "zookeeper.session.timeout.ms": "3000",
        "zookeeper.connection.timeout.ms": "60000",  # the default is as short as a session, too short when all servers start at once
    }


def _quorum(mesh: Mesh, member: Member) -> dict[str, str]:
    return {
        "process.roles": ",".join(
            role for role, has in (("broker", member.broker), ("controller", member.controller)) if has
        ),
        "node.id": str(member.id),
        "controller.quorum.voters": mesh.quorum_voters(),
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.election.timeout.ms": "500",
        "controller.quorum.election.backoff.max.ms": "500",
        "controller.quorum.fetch.timeout.ms": "1500",
        "controller.quorum.request.timeout.ms": "1500",
        # Each partition has index files that are mapped at full size; the log of metadata stays small.
        "metadata.log.segment.bytes": str(16 * 1024 * 1024),
    }


def _listeners(mesh: Mesh, member: Member, *, advertised: bool) -> dict[str, str]:
    """Return the settings of the listeners; with `advertised`, also the address of the controller."""
    place = mesh.listen_address(member)
    listeners = {}
    advertise = {}
    if member.broker:
        listeners["INTERNAL"] = f"{place}:{Port.INTERNAL:d}"
        advertise["INTERNAL"] = f"{member.name}:{Port.INTERNAL:d}"
        for lane in Lane:
            port = LANE_PORTS[lane]
            listeners[port.name] = f"{place}:{port:d}"
            advertise[port.name] = f"{mesh.lane_address(lane, member)}:{port:d}"
    if member.controller:
        listeners["CONTROLLER"] = f"{place}:{Port.CONTROLLER:d}"
        # By its name, too: a node that learns the leader of the quorum would otherwise bypass the proxies.
        if advertised:
            advertise["CONTROLLER"] = f"{member.name}:{Port.CONTROLLER:d}"
    names = ["INTERNAL", "CONTROLLER", *(port.name for port in LANE_PORTS.values())]
    settings = {
        "listeners": ",".join(f"{name}://{where}" for name, where in listeners.items()),
        "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in names),
    }
    if advertise:
        settings["advertised.listeners"] = ",".join(f"{name}://{where}" for name, where in advertise.items())
    if member.broker:
        settings["inter.broker.listener.name"] = "INTERNAL"
    return settings


def _broker(brokers: int) -> dict[str, str]:
    copies, in_sync = str(min(3, brokers)), str(min(2, brokers))
    return {
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
        "auto.create.topics.enable": "false",
        "unclean.leader.election.enable": "false",
        "default.replication.factor": copies,
        "min.insync.replicas": in_sync,
        "offsets.topic.replication.factor": copies,
        "offsets.topic.num.partitions": "3",
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": in_sync,
        "transaction.state.log.num.partitions": "3",
        "share.coordinator.state.topic.replication.factor": copies,
        "share.coordinator.state.topic.min.isr": in_sync,
        "share.coordinator.state.topic.num.partitions": "3",
        "group.initial.rebalance.delay.ms": "0",
        # Memory and threads: the defaults are for a big dedicated machine.
        "num.network.threads": "2",
        "num.io.threads": "4",
        "group.coordinator.threads": "1",
        "share.coordinator.threads": "1",
        "num.recovery.threads.per.data.dir": "1",
        "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
        "log.index.size.max.bytes": str(1024 * 1024),
        # Fetch from a returning peer soon, not after a second.
        "replica.fetch.backoff.ms": "200",
    }


def render(settings: Mapping[str, str]) -> str:
    """Return the text of a properties file. Java reads it as Latin-1, so other letters are written as `\\u00fc`."""
    return "".join(f"{key}={_escaped(value)}\n" for key, value in sorted(settings.items()))


def _escaped(value: str) -> str:
    text = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    text = re.sub(r"^[ \t]", lambda blank: f"\\{blank[0]}", text)  # Java drops blanks before a value
    if text.isascii():
        return text
    units = text.encode("utf-16-be")
    codes = (int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2))
    return "".join(chr(code) if code < 0x80 else f"\\u{code:04x}" for code in codes)


LOG4J2 = f"""\
status = warn
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = {CONSOLE_PATTERN}
rootLogger.level = INFO
rootLogger.appenderRef.console.ref = console
"""

LOG4J1 = f"""\
log4j.rootLogger=INFO, console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern={CONSOLE_PATTERN}
"""
