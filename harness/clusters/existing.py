"""A running cluster that has other users too: topics and groups under a prefix, and powers by commands.

It is never started or stopped. Each topic is recorded before it is created, and deleted at the end.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from harness.clusters.base.log_marks import LogMarks
from harness.clusters.base.options import PLAIN
from harness.clusters.base.started import StartedByWith
from harness.clusters.external import created_objects
from harness.clusters.external.action_log import ActionLog
from harness.clusters.external.client_properties import read_properties, secrets_in
from harness.clusters.external.discovery import Finding, servers
from harness.clusters.external.held_powers import Uses
from harness.clusters.external.node import ASK_LIMIT_S, CommandedNode
from harness.clusters.external.power_commands import Powers
from harness.clusters.external.preflight import Preflight
from harness.clusters.external.undo import undo_left
from harness.clusters.external.view import ExistingView
from harness.contracts import ClusterDescription, Lane, Node, TopicSettings
from harness.errors import ClusterError, OnceproofError, UsageError
from harness.kafka import connection, topics
from harness.kafka.optional_requests import TRANSACTIONS, fitted, lacking, not_checked
from harness.kafka.protocol import raw_client
from harness.kafka.protocol.addresses import shown
from harness.kafka.protocol.security import Security

if TYPE_CHECKING:
    from harness.cluster_options import Choice

_PREFIX = re.compile(r"[A-Za-z0-9._-]{1,60}")


class ExistingCluster(StartedByWith):
    """`bootstrap` is HOST:PORT,…; `client_config` the file with the client settings; `powers` the file with commands."""

    def __init__(
        self,
        folder: Path,
        *,
        bootstrap: str,
        client_config: Path | None = None,
        powers: Path | None = None,
        prefix: str = connection.TOPIC_PREFIX,
        keep_topics: bool = False,
    ) -> None:
        if not _PREFIX.fullmatch(prefix):
            raise UsageError(f"--prefix {prefix!r}: must be 1 to 60 letters, digits, dots, _ or -")
        self.folder = folder.absolute()
        self.prefix = prefix
        self._bootstrap = ",".join(shown(server) for server in servers(bootstrap))
        self._settings = read_properties(client_config.absolute()) if client_config is not None else {}
        self._security = Security.of(self._settings)
        secrets = secrets_in(self._settings)
        self._log = ActionLog(self.folder / "existing.log", secrets)
        self._powers = Powers.read(powers) if powers is not None else None
        self._uses = Uses(self._bootstrap, powers, client_config, secrets) if powers is not None else None
        self._keep_topics = keep_topics
        self._record: created_objects.CreatedTopics | None = None
        self._admin_client: AdminClient | None = None
        self._nodes: list[CommandedNode] = []
        self._probe_topic = ""
        self._lacking: dict[str, str] = {}  # requests that the brokers lack: the consequences
        self._refused_settings: list[str] = []  # of topics
        self._steps_s: dict[str, float] = {}
        self._log_marks = LogMarks()

    @classmethod
    def chosen(cls, choice: Choice, folder: Path) -> Self:
        """Return the cluster that the user's options name; refuse options of clusters that onceproof starts."""
        plain = type(choice)()
        if choice.kafka != plain.kafka or choice.combined:
            raise UsageError("--cluster existing starts no brokers; leave out --kafka and --combined")
        if choice.options != PLAIN or choice.settings:
            raise UsageError("this suite starts brokers with its own settings; leave out --cluster existing")
        if not choice.bootstrap:
            raise UsageError("--cluster existing needs --bootstrap HOST:PORT,…")
        return cls(
            folder,
            bootstrap=choice.bootstrap,
            client_config=Path(choice.client_config) if choice.client_config else None,
            powers=Path(choice.powers) if choice.powers else None,
            prefix=choice.prefix,
            keep_topics=choice.keep_topics,
        )

    def start(self) -> None:
        """Find the nodes, check the permissions, and delete what crashed sessions left on the cluster."""
        if self._record is not None:
            raise ClusterError(f"the cluster at {self._bootstrap} is already in use")
        self.folder.mkdir(parents=True, exist_ok=True)
        begun = time.monotonic()
        self._record = created_objects.CreatedTopics(self._bootstrap)
        undo_left(self._log.write)  # first, as a broker that is paused or down would not be found
        try:
            self._find_nodes(begun)
            self._sweep()
            self._try_rights(begun)
        except BaseException:
            with suppress(ClusterError):  # the next start sweeps what could not be deleted
                self.stop()
            raise
        self._step("ready", begun)

    def stop(self) -> None:
        """Delete the topics and groups of this session and forget the nodes; the cluster goes on."""
        record, self._record = self._record, None
        admin, self._admin_client = self._admin_client, None
        nodes, self._nodes = self._nodes, []
        for node in nodes:
            try:
                node.bring_back()
            except OnceproofError as error:  # the next start retries
                self._log.write(f"{node.name} is not back: {error}")
        if record is None:
            return
        made = [self._probe_topic] if self._keep_topics else record.topics
        if admin is not None and record.topics:
            try:
                self._log.write_each("deleted", created_objects.remove(admin, made, self._ours))
            except ClusterError as error:
                raise ClusterError(
                    f"{error}; retry with ./onceproof sweep --bootstrap {self._bootstrap}"
                ) from error
        record.remove()

    def bootstrap_servers(self, lane: Lane) -> str:
        return self._bootstrap

    def client_settings(self, lane: Lane) -> Mapping[str, Any]:
        return self._settings

    def nodes(self) -> Sequence[Node]:
        return tuple(self._nodes)

    def view(self) -> ExistingView:
        return ExistingView(self._nodes, self._probe_topic, self._admin)

    def create_topic(self, name: str, settings: TopicSettings) -> None:
        """Create the topic, with fewer copies if there are fewer brokers; `not_checked` says so."""
        self._write_down(self._ours(name))
        topics.create_topic(self, name, fitted(settings, self._brokers()), self._refused_settings)

    def delete_topic(self, name: str) -> None:
        if not self._keep_topics:
            topics.delete_topic(self, name)
            self._log.write(f"deleted topic {name}")

    def begin_logs(self) -> None:
        self._log_marks = LogMarks({"existing": self._log.path})

    def collect_logs(self, into: Path) -> None:
        """Write the log of our actions since `begin_logs`; the logs of the cluster stay with it."""
        self._log_marks.copy({"existing": self._log.path}, into)

    def residue(self) -> list[str]:
        return [what for node in self._nodes for what in node.residue()]

    def describe(self) -> ClusterDescription:
        members = [node.member for node in self._nodes]
        more = {
            "bootstrap": self._bootstrap,
            "brokers": self._brokers(),
            "controllers": len([m for m in members if m.controller]),
            "combined": any(m.broker and m.controller for m in members),
            "security": self._security.protocol if self._security is not None else "plaintext",
            "prefix": self.prefix,
            "powers": {node.name: list(node.powers) for node in self._nodes},
        }
        return ClusterDescription(
            "existing",
            dict(self._steps_s),
            lacking=sorted(self._lacking),
            not_checked=self._not_checked(),
            more=more,
        )

    def sweep(self, approve: Callable[[Sequence[str]], bool]) -> list[str]:
        """Delete all topics and groups under the prefix that no session may use, if `approve` agrees; return them."""
        self.folder.mkdir(parents=True, exist_ok=True)
        Finding(self._bootstrap, self._security, None, self._log.write).reach()
        self._admin_client = self._connect()
        try:
            names = created_objects.under(self._admin, self.prefix)
            if not names or not approve(names):
                return []
            return created_objects.remove(self._admin, names, self._ours, exactly=True)
        finally:
            self._admin_client = None

    # --- the steps of a start ---

    def _find_nodes(self, begun: float) -> None:
        finding = Finding(self._bootstrap, self._security, self._powers, self._log.write)
        reached = finding.reach()
        self._step("reached", begun)
        self._admin_client = self._connect()
        self._nodes = finding.nodes(self._admin, reached)
        for node in self._nodes:
            node.uses = self._uses
        self._lacking = lacking(
            raw_client.offered(node.control, ASK_LIMIT_S) for node in self._nodes if node.member.broker
        )
        self._step("brokers_answer", begun)

    def _connect(self) -> AdminClient:
        try:
            return AdminClient(connection.settings(self))
        except KafkaException as problem:
            raise UsageError(f"--client-config: {problem.args[0].str()}") from problem

    def _sweep(self) -> None:
        for record, names in created_objects.crashed(self._bootstrap).items():
            ours = [name for name in names if name.startswith(self.prefix)]
            if ours == names:
                self._log.write_each("swept", created_objects.remove(self._admin, ours, self._ours))
                record.unlink(missing_ok=True)

    def _try_rights(self, begun: float) -> None:
        session = uuid.uuid4().hex[:8]
        preflight = Preflight(connection.settings(self), self._admin, self.prefix)
        brokers = [node.member.id for node in self._nodes if node.member.broker]
        self._probe_topic, gone = f"{self.prefix}probe-{session}", f"{self.prefix}rights-{session}"
        for name in (gone, self._probe_topic):
            self._write_down(name)
            preflight.make_topic(name, brokers)
        self._refused_settings = preflight.refused
        preflight.delete_topic(gone)
        preflight.use(self._probe_topic, transactions=not set(TRANSACTIONS) & set(self._lacking))
        self._log.write_each("not checked:", self._not_checked())
        self._step("rights", begun)

    # --- small things ---

    def _brokers(self) -> int:
        return len([node for node in self._nodes if node.member.broker])

    def _not_checked(self) -> list[str]:
        if not self._nodes:  # not started, or stopped
            return []
        return not_checked(self._lacking, self._brokers(), self._refused_settings)

    @property
    def _admin(self) -> AdminClient:
        if self._admin_client is None:
            raise ClusterError(f"the cluster at {self._bootstrap} is not in use")
        return self._admin_client

    def _ours(self, name: str) -> str:
        return connection.ours(self, name)

    def _write_down(self, topic: str) -> None:
        if self._record is None:
            raise ClusterError(f"the cluster at {self._bootstrap} is not in use")
        self._record.add(topic)
        self._log.write(f"topic {topic}")

    def _step(self, name: str, begun: float) -> None:
        self._steps_s[name] = round(time.monotonic() - begun, 2)


cluster_class = ExistingCluster
