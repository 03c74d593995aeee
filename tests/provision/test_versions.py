"""Versions of brokers: the requested ones, the one that a node reports, and the command that combines them with clients."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli import main
from harness.cluster_options import Choice
from harness.clusters.base.broker_properties import server_properties
from harness.clusters.links.mesh import Mesh, members
from harness.clusters.local import LocalCluster
from harness.clusters.powers.version import Upgraded
from harness.errors import SetupError, UsageError
from harness.provision import kafka_libs
from harness.provision.kafka import numbers_of
from harness.provision.maven import Coordinates, is_missing
from harness.runtime import cache


def test_versions_of_single_nodes_are_read_from_the_option() -> None:
    choice = Choice(kafka="4.2.0", mixed="broker-1=4.3.1,controller-2=3.9.2")
    assert choice.mixed_versions() == {"broker-1": "4.3.1", "controller-2": "3.9.2"}
    assert str(choice) == "Kafka 4.2.0, broker-1 4.3.1, controller-2 3.9.2 (local)"
    assert choice.words() == ["--kafka", "4.2.0", "--mixed", "broker-1=4.3.1,controller-2=3.9.2"]
    assert Choice().mixed_versions() == {}
    for wrong in ("broker-1", "=4.3.1", "broker-1="):
        with pytest.raises(UsageError, match=rf"^--mixed {wrong}: write NODE=VERSION"):
            Choice(mixed=wrong).mixed_versions()


def test_a_version_for_an_unknown_node_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"no node broker-4 to run Kafka 3\.9\.2; there are: broker-1, broker-2"
    ):
        LocalCluster(tmp_path, combined=True, mixed={"broker-4": "3.9.2"})
    with pytest.raises(
        UsageError, match=r"Kafka 2\.8\.2 has no KRaft ready for production; use --cluster zookeeper"
    ):
        LocalCluster(tmp_path, kafka_version="2.8.2")
    cluster = LocalCluster(tmp_path, combined=True, kafka_version="4.2.0", mixed={"broker-2": "3.9.2"})
    assert cluster.describe().kafka_version == "3.9.2, 4.2.0", "the oldest first"


def test_a_version_is_made_of_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONCEPROOF_CACHE", str(tmp_path))
    monkeypatch.delenv("KAFKA_LIBS", raising=False)
    for wrong in ("newest", "4.3", "../4.3.1", "4.3.1-rc0"):
        with pytest.raises(UsageError, match="a release is named by its numbers"):
            kafka_libs(wrong, cache.silent)
    assert numbers_of("3.9.2") < numbers_of("3.10.0") < numbers_of("4.0.0")
    assert numbers_of("unknown") == ()


def test_jars_of_another_version_are_refused_for_mixed_clusters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kafka_2.13-3.9.2.jar").touch()
    monkeypatch.setenv("KAFKA_LIBS", str(tmp_path))
    assert kafka_libs("4.3.1") == kafka_libs("3.9.2", exactly=True) == tmp_path
    with pytest.raises(
        SetupError, match=r"^Kafka 4\.3\.1 was requested, but KAFKA_LIBS=\S+ has 3\.9\.2; unset it"
    ):
        kafka_libs("4.3.1", exactly=True)


def test_missing_artifacts_are_recognised_for_both_tools() -> None:
    kafka = Coordinates("org.apache.kafka", "kafka_2.13", "9.9.9")
    for said in (
        "[ERROR] Could not find artifact org.apache.kafka:kafka_2.13:jar:9.9.9 in central",
        "org.apache.kafka:kafka_2.13:jar:9.9.9 was not found in a registry during a previous attempt",
        "\t\t:: org.apache.kafka#kafka_2.13;9.9.9: not found",
    ):
        assert is_missing(kafka, said)
    for other in ("Could not transfer artifact org.apache.kafka:kafka_2.13:jar:9.9.9", "", "9.9.9 not found"):
        assert not is_missing(kafka, other)


class LoggedNode(Upgraded):
    """A node that has only a log."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder


def test_a_node_reports_the_version_of_its_last_start(tmp_path: Path) -> None:
    node = LoggedNode(tmp_path)
    assert node.version() == "unknown"
    first = "[now] INFO Kafka version: 3.9.2 (org.apache.kafka.common.utils.AppInfoParser)\n"
    node.log.write_text(first)
    assert node.version() == "3.9.2"
    node._log_before = node.log.stat().st_size
    assert node.version() == "unknown", "it has logged nothing since its start"
    node.log.write_text(first + first.replace("3.9.2", "4.3.1"))
    assert node.version() == "4.3.1"


def test_the_controller_listener_is_advertised_only_by_versions_that_support_it(tmp_path: Path) -> None:
    nodes = members(1, 1, combined=False)
    mesh = Mesh(7, nodes)
    for version, advertised in (("3.8.1", False), ("3.9.0", True), ("4.3.1", True)):
        broker, controller = (server_properties(mesh, node, tmp_path, {}, version) for node in nodes)
        assert ("advertised.listeners" in controller) is advertised
        assert "CONTROLLER" not in broker["advertised.listeners"]


def test_the_matrix_combines_brokers_clients_and_modes(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["matrix", "--kafka", "4.3.1,3.9.2", "--client", "2.16.1, 2.10.1,2.16.1", "--list"]
    assert main([*words, "--mode", "exactly_once"]) == 0
    assert capsys.readouterr().out.split() == [
        f"exactly_once-kill-leader-{kafka}-{client}"
        for kafka in ("4.3.1", "3.9.2")
        for client in ("2.16.1", "2.10.1")
    ]
    assert main(words) == 0
    assert len(capsys.readouterr().out.split()) == 2 * 2 * 3


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--mode", "always"], "--mode always: unknown; choose from at_most_once, at_least_once"),
        (["--fault", "none"], "--fault none: unknown; choose from kill-leader, sever-leader"),
    ],
)
def test_the_matrix_names_unknown_values(
    words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["matrix", "--kafka", "4.3.1", *words]) == 2
    heard = capsys.readouterr()
    assert heard.out == ""
    assert complaint in heard.err
    assert heard.err.count("\n") == 1


def test_the_matrix_needs_a_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["matrix", "--kafka", " ,"])
    assert "give at least one value" in capsys.readouterr().err
