"""An existing cluster, without one: client properties, powers by commands, the prefix, options that belong together."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.cimpl import NewTopic

from faults.delete_records import DeleteRecords
from harness.cluster_options import Choice
from harness.clusters.external import created_objects
from harness.clusters.external.client_properties import read_properties, secrets_in
from harness.clusters.external.node import CommandedNode, commanded
from harness.clusters.external.power_commands import Commands, Powers
from harness.clusters.external.preflight import Preflight
from harness.clusters.links.mesh import Member
from harness.contracts import Killable, Mode, Node, Pausable, Severable, Shared, Stoppable, TopicSettings
from harness.errors import ClusterError, FaultError, UsageError
from harness.injector import why_not_applicable
from harness.kafka import connection, optional_requests
from harness.kafka.admin import Administrator
from harness.kafka.optional_requests import fitted
from harness.schedule import once
from harness.targets import leader_of
from suites.scenarios import matrix
from tests.fake_arena import FakeCluster, make_arena

GIVEN = {"node": "broker-1", "id": 1, "host": "h", "port": 9}


# --- client properties ---


def _config(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "client.properties"
    file.write_text(text, encoding="utf-8")
    return file


def test_properties_of_java_clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", "from-env")
    (tmp_path / "ca.pem").touch()
    file = _config(
        tmp_path,
        "# ours\nbootstrap.servers=elsewhere:1\nsecurity.protocol = SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\n"
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\\n"
        '   username="alice" password="${env:KAFKA_PASSWORD}";\n'
        "ssl.truststore.type=PEM\nssl.truststore.location=ca.pem\nssl.endpoint.identification.algorithm=\n",
    )
    assert read_properties(file) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "alice",
        "sasl.password": "from-env",
        "ssl.ca.location": str(tmp_path / "ca.pem"),
        "ssl.endpoint.identification.algorithm": "none",
    }


def test_a_secret_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("s3cret\n", encoding="ascii")
    read = read_properties(_config(tmp_path, "sasl.username=a\nsasl.password=${file:password}\n"))
    assert read["sasl.password"] == "s3cret"
    assert secrets_in(read) == ["s3cret"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("sasl.password=${env:NO_SUCH_VARIABLE}", r"sasl\.password: the environment has no variable NO_SUCH"),
        ("sasl.password=${file:nowhere}", r"sasl\.password: the file nowhere cannot be read"),
        ("acks=0", r"acks: not a setting of a connection"),
        ("group.id=others", r"group\.id: not a setting of a connection"),
        ("security.protocol", r"entry 1 is not of the form key=value"),
        ("ssl.truststore.location=a.jks", r"ssl\.truststore\.type=JKS: only PEM"),
        ("ssl.ca.location=nowhere.pem", r"ssl\.ca\.location: there is no file .*nowhere\.pem"),
        ("sasl.jaas.config=Krb5LoginModule required;", r"sasl\.jaas\.config: unknown login module"),
        ("security.protocol=sasl_ssl\nsasl.mechanism=OAUTHBEARER", r"sasl\.mechanism=OAUTHBEARER"),
    ],
)
def test_a_bad_setting_is_one_line(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint) as raised:
        read_properties(_config(tmp_path, text))
    assert "\n" not in str(raised.value)


# --- powers ---


def _powers(tmp_path: Path, text: str) -> Powers:
    file = tmp_path / "powers.toml"
    file.write_text(text, encoding="utf-8")
    return Powers.read(file)


def test_variables_and_commands_of_a_node_override_those_for_all(tmp_path: Path) -> None:
    powers = _powers(
        tmp_path,
        '[powers]\nkill = "ssh {host} kill {what}"\nrestart = "ssh {host}:{port} start {node} {id}"\n'
        '[nodes.broker-1]\nwhat = "a b"\n'
        '[nodes.broker-2]\nhost = "other"\nkill = "false"\n',
    )
    first = powers.of("broker-1", GIVEN).lines
    assert first == {
        "kill": ("ssh", "h", "kill", "a b"),  # a blank in a value does not split it
        "restart": ("ssh", "h:9", "start", "broker-1", "1"),
    }
    second = powers.of("broker-2", {**GIVEN, "node": "broker-2"}).lines
    assert second == {"kill": ("false",), "restart": ("ssh", "other:9", "start", "broker-2", "1")}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[powers\n", r"--powers .*powers\.toml: "),
        ("kill = 'x'\n", r"kill: unknown table; use \[powers\] and \[nodes\.NAME\]"),
        ("[powers]\nkil = 'x'\n", r"powers\.kil: unknown key; choose from kill, restart"),
        ("[powers]\nkill = 'x'\n", r"powers\.kill needs restart as well"),
        ("[powers]\npause = 'x'\n", r"powers\.pause needs resume as well"),
        ("[powers]\nkill = 3\nrestart = 'x'\n", r"powers\.kill: a command must be a string"),
        ("[powers]\nlimit_s = 0\n", r"powers\.limit_s: must be a number of seconds above 0"),
        (
            "[powers]\nkill = 'x {pid}'\nrestart = 'x'\n",
            r"powers\.kill: unknown placeholder \{pid\}; available: node, id, host, port",
        ),
        ("[powers]\nkill = \"x '\"\nrestart = 'x'\n", r"powers\.kill: No closing quotation"),
        ("[nodes.broker-1]\nhots = 'x'\n", r"nodes\.broker-1\.hots: not a power .* no command uses it"),
        ("[nodes.broker-1]\nkill = 'x'\n", r"nodes\.broker-1\.kill needs restart as well"),
    ],
)
def test_a_bad_file_is_one_line_with_file_and_key(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint) as raised:
        _powers(tmp_path, text).of("broker-1", GIVEN)
    assert "\n" not in str(raised.value)
    assert "powers.toml" in str(raised.value)


def test_a_table_for_an_unknown_node_is_refused(tmp_path: Path) -> None:
    powers = _powers(tmp_path, "[nodes.broker-9]\n")
    with pytest.raises(
        UsageError, match=r"nodes\.broker-9: the cluster has no such node; it has broker-1, broker-2"
    ):
        powers.must_be_nodes(["broker-1", "broker-2"])


@pytest.mark.parametrize(
    ("text", "has"),
    [
        ("", set()),
        ("kill = 'true'\nrestart = 'true'\n", {Killable}),
        ("kill = 'true'\nrestart = 'true'\nshut_down = 'true'\n", {Killable, Stoppable}),
        ("pause = 'true'\nresume = 'true'\n", {Pausable}),
    ],
)
def test_a_node_has_exactly_the_powers_that_are_configured(tmp_path: Path, text: str, has: set[type]) -> None:
    node = _node(tmp_path, text, ("127.0.0.1", 1))
    powers: tuple[type, ...] = (Killable, Stoppable, Pausable, Severable)
    assert {power for power in powers if isinstance(node, power)} == has
    assert isinstance(node, Node)


def test_an_unreachable_controller_is_killable_only_with_a_running_command(
    tmp_path: Path,
) -> None:
    text = "kill = 'true'\nrestart = 'true'\n"
    assert not isinstance(_node(tmp_path, text, None), Killable)
    assert isinstance(_node(tmp_path, text + "running = 'true'\n", None), Killable)


def test_a_command_without_effect_is_no_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.clusters.external.node._GONE_LIMIT_S", 0.2)
    said: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        node = _node(tmp_path, "kill = 'echo done'\nrestart = 'true'\n", server.getsockname(), said.append)
        assert isinstance(node, Killable)
        node.kill()
        assert node.running(), "its port still answers"
    assert not node.running()
    assert said == ["kill of broker-1: echo done ended with code 0: done"]


def test_commands_that_fail_or_do_not_end_raise(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = server.getsockname()
        failing = _node(tmp_path, "kill = 'false'\nrestart = 'true'\n", place)
        missing = _node(tmp_path, "kill = 'no-such-program-here'\nrestart = 'true'\n", place)
        slow = _node(tmp_path, "limit_s = 0.2\nkill = 'sleep 60'\nrestart = 'true'\n", place)
        piped = _node(tmp_path, "shell = true\nkill = 'exit 3 | exit 4'\nrestart = 'true'\n", place)
        for node, complaint in (
            (failing, "kill of broker-1 failed with code 1: false"),
            (missing, "kill of broker-1 cannot be run: No such file.*: no-such-program-here"),
            (slow, r"kill of broker-1 did not end within 0\.2 s: sleep 60"),
            (piped, r"kill of broker-1 failed with code 4"),
        ):
            assert isinstance(node, Killable)
            begun = time.monotonic()
            with pytest.raises(FaultError, match=complaint):
                node.kill()
            assert time.monotonic() - begun < 30


def _node(
    tmp_path: Path,
    commands: str,
    place: tuple[str, int] | None,
    report: Callable[[str], None] = lambda text: None,
) -> CommandedNode:
    powers = _powers(tmp_path, f"[powers]\n{commands}")
    return commanded(
        Member("broker-1", 1, place is not None, False), place, powers.of("broker-1", GIVEN), report
    )


# --- the prefix, and the owners of topics ---


@dataclass
class SharedCluster(FakeCluster):
    prefix: str = "ours-"


def test_nothing_outside_the_prefix_is_touched() -> None:
    arena = make_arena()
    shared = SharedCluster(arena.cluster.brokers, arena.cluster.replicas)
    assert isinstance(shared, Shared)
    assert connection.prefix_of(shared) == "ours-"
    assert connection.ours(shared, "ours-topic") == "ours-topic"
    for act in (lambda: connection.ours(shared, "orders"), lambda: Administrator(shared, "orders")):
        with pytest.raises(UsageError, match=r"orders: onceproof only touches names with the prefix ours-"):
            act()
    assert connection.ours(arena.cluster, "orders") == "orders"
    assert connection.prefix_of(arena.cluster) == "onceproof-"


def test_a_record_outlives_a_crash_and_names_its_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONCEPROOF_CACHE", str(tmp_path / "cache"))
    record = created_objects.CreatedTopics("a:1,b:2")
    record.add("onceproof-one")
    record.add("onceproof-two")
    assert created_objects.alive() == {"onceproof-one", "onceproof-two"}
    assert created_objects.crashed("b:2") == {}, "its session is alive"
    monkeypatch.setattr("harness.processes.child_process.Identity.alive", lambda self: False)
    assert list(created_objects.crashed("b:2,c:3").values()) == [["onceproof-one", "onceproof-two"]]
    assert created_objects.crashed("c:3") == {}
    record.remove()
    assert created_objects.crashed("a:1") == {}


@pytest.mark.parametrize(
    ("choice", "complaint"),
    [
        (Choice(cluster="existing"), r"needs --bootstrap HOST:PORT"),
        (Choice(cluster="existing", bootstrap="nohost"), r"--bootstrap nohost: HOST:PORT"),
        (Choice(cluster="existing", bootstrap="a:1", kafka="3.9.2"), r"--kafka and --combined"),
        (Choice(cluster="existing", bootstrap="a:1", prefix="a b"), r"--prefix 'a b': must be 1 to 60"),
        (
            Choice(cluster="existing", bootstrap="a:1", powers="nowhere.toml"),
            r"--powers nowhere\.toml cannot",
        ),
        (
            Choice(cluster="existing", bootstrap="a:1", client_config="nowhere"),
            r"--client-config .*nowhere cannot",
        ),
        (Choice(cluster="existing", bootstrap="a:1", security="ssl"), r"--security is for --cluster local"),
        (Choice(bootstrap="a:1"), r"--bootstrap is for --cluster existing, not local"),
        (Choice(keep_topics=True), r"--keep-topics is for --cluster existing, not local"),
    ],
)
def test_conflicting_options_are_refused(tmp_path: Path, choice: Choice, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        choice.build(tmp_path)


def test_a_fault_without_a_suitable_node_is_not_applicable() -> None:
    class Powerless(FakeCluster):
        def nodes(self) -> list[Node]:
            return [
                commanded(
                    Member("broker-1", 1, True, True), ("h", 1), Powers(Path("p")).of("broker-1", {}), print
                )
            ]

        def describe(self) -> dict[str, str]:
            return {"kind": "existing"}

    cluster = Powerless(make_arena().cluster.brokers, {})
    reasons = [why_not_applicable(scenario, cluster) for scenario in matrix.QUICK]
    assert all(reason and "kill on leader needs a power that no node" in reason for reason in reasons)
    assert why_not_applicable(matrix.HAZARDS[-1], cluster) is None, "it has no fault"


# TRUST T4: if the leader cannot be stopped first, whether the kill loses records would be luck.
def test_losses_are_not_required_of_nodes_that_cannot_be_stopped() -> None:
    class Killing(FakeCluster):
        lines: Mapping[str, tuple[str, ...]] = {}

        def nodes(self) -> list[Node]:
            return [commanded(Member("broker-1", 1, True, True), ("h", 1), Commands(self.lines), print)]

        def describe(self) -> dict[str, str]:
            return {"kind": "existing"}

    cluster = Killing(make_arena().cluster.brokers, {})
    at_most_once, at_least_once = (
        matrix.crossed(mode, "kill-leader") for mode in (Mode.AT_MOST_ONCE, Mode.AT_LEAST_ONCE)
    )
    cluster.lines = dict.fromkeys(("kill", "restart"), ("true",))
    assert "(PausableAndKillable)" in (why_not_applicable(at_most_once, cluster) or "")
    assert why_not_applicable(at_least_once, cluster) is None
    cluster.lines = dict.fromkeys(("kill", "restart", "pause", "resume"), ("true",))
    assert why_not_applicable(at_most_once, cluster) is None


# --- brokers of any make: TRUST T13 ---

EVERYTHING = dict.fromkeys(range(100), (0, 99))


def test_unsupported_requests_are_reported_with_their_consequences() -> None:
    assert optional_requests.lacking([EVERYTHING, EVERYTHING]) == {}
    old = {key: span for key, span in EVERYTHING.items() if key not in (55, 61)}
    assert list(optional_requests.lacking([EVERYTHING, old])) == ["DescribeProducers", "DescribeQuorum"], (
        "one of them lacks it"
    )
    too_new = {**EVERYTHING, 61: (5, 9)}
    assert list(optional_requests.lacking([too_new])) == ["DescribeProducers"], (
        "no version of it is known here"
    )
    plain = {key: span for key, span in EVERYTHING.items() if key not in (24, 25, 26, 28)}
    (line,) = optional_requests.consequences(optional_requests.lacking([plain]))
    assert line == (
        "the brokers do not offer AddPartitionsToTxn, AddOffsetsToTxn, EndTxn, TxnOffsetCommit: exactly-once cannot be run"
    )


class Poor(FakeCluster):
    def describe(self) -> dict[str, object]:
        return {"kind": "existing", "lacking": ["EndTxn", "DeleteRecords"]}


def test_scenarios_that_need_unsupported_requests_are_skipped_with_the_reason() -> None:
    there = make_arena().cluster
    cluster = Poor(there.brokers, there.replicas)
    exactly, at_least = (matrix.fault_free(mode) for mode in (Mode.EXACTLY_ONCE, Mode.AT_LEAST_ONCE))
    assert why_not_applicable(at_least, cluster) is None
    assert (
        why_not_applicable(exactly, cluster)
        == "exactly_once-none: exactly_once needs EndTxn, which the brokers do not offer"
    )
    deleted = replace(at_least, name="d", schedule=once(DeleteRecords(), on=leader_of(0), hold_s=1.0))
    assert (
        why_not_applicable(deleted, cluster)
        == "d: delete_records needs DeleteRecords, which the brokers do not offer"
    )


@pytest.mark.parametrize(("brokers", "replicas", "in_sync"), [(1, 1, 1), (2, 2, 1), (3, 3, 2), (9, 3, 2)])
def test_topics_have_no_more_replicas_than_there_are_brokers(
    brokers: int, replicas: int, in_sync: int
) -> None:
    made = fitted(TopicSettings(replication_factor=3, min_insync_replicas=2), brokers)
    assert (made.replication_factor, made.min_insync_replicas) == (replicas, in_sync)


def test_a_topic_is_created_without_a_setting_or_placement_that_brokers_refuse() -> None:
    """Not every broker has min.insync.replicas, or lets its clients place replicas."""
    asked: list[tuple[bool, bool]] = []

    class Picky:
        codes: ClassVar[list[int]] = [KafkaError.INVALID_REPLICA_ASSIGNMENT, KafkaError.INVALID_CONFIG]

        def create_topics(self, new: list[NewTopic], **_: object) -> dict[str, Future[None]]:
            (topic,) = new
            asked.append((bool(topic.replica_assignment), bool(topic.config)))
            future: Future[None] = Future()
            if self.codes:
                future.set_exception(KafkaException(KafkaError(self.codes.pop(0))))
            else:
                future.set_result(None)
            return {topic.topic: future}

    preflight = Preflight({}, Picky(), "onceproof-")  # type: ignore[arg-type]
    preflight.make_topic("onceproof-probe", [1, 2])
    assert asked == [(True, True), (False, True), (False, False)]
    assert preflight.refused == ["min.insync.replicas"]
    Picky.codes = [KafkaError.TOPIC_AUTHORIZATION_FAILED]
    with pytest.raises(ClusterError, match="may not create topics under the prefix onceproof-"):
        preflight.make_topic("onceproof-probe", [1])
