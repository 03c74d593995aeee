"""TLS and SASL on the client lanes of real brokers: the same promises, and a one-line error for each refusal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its types leave them out
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from faults.hold_requests import HoldRequests
from harness.campaign import Campaign
from harness.clusters.base import certificates
from harness.clusters.external.preflight import Preflight
from harness.clusters.links.mesh import Port
from harness.clusters.local import LocalCluster
from harness.contracts import (
    Ending,
    Lane,
    Mode,
    Questions,
    RequestHolding,
    Severable,
    Shapeable,
    Verdict,
)
from harness.errors import ClusterError
from harness.injector import why_not_applicable
from harness.kafka import connection
from harness.kafka.protocol import admin_requests
from harness.kafka.topics import PROBE_TOPIC
from harness.scenario import Scenario
from harness.schedule import once
from harness.targets import leader_of
from harness.testing.check_cluster import check_started
from harness.testing.powers.links import check_severable
from harness.waiting import wait_until
from suites.harness_checks.clusters.test_existing import files_with, onceproof
from suites.scenarios.matrix import crossed


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("secured"), combined=True, security="sasl_ssl") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """A cluster of one broker, for tests that need no more."""
    folder = tmp_path_factory.mktemp("one")
    with LocalCluster(folder, brokers=1, combined=True, security="sasl_ssl") as cluster:
        yield cluster


def client_config(folder: Path, cluster: LocalCluster, **other: str) -> Path:
    """Write the settings of a valid client, with some of them changed."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = {**cluster.client_settings(Lane.CONTROL), **{k.replace("_", "."): v for k, v in other.items()}}
    file = folder / "client.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), encoding="utf-8")
    return file


def refused(cluster: LocalCluster, folder: Path, *more: str | Path) -> str:
    """Return the last line that a refused user sees; it has to come soon and with a failure."""
    begun = time.monotonic()
    done = onceproof(
        "prove", "--quick", "--cluster", "existing", "--bootstrap", cluster.bootstrap_servers(Lane.CONTROL),
        "--runs", folder, *more,
    )  # fmt: skip
    assert done.returncode == 2, done.stdout + done.stderr
    assert time.monotonic() - begun < 120
    assert "Traceback" not in done.stderr
    return done.stderr.strip().splitlines()[-1]


@pytest.mark.smoke
@pytest.mark.parametrize(
    "scenario",
    [crossed(Mode.EXACTLY_ONCE, "kill-leader"), crossed(Mode.AT_LEAST_ONCE, "sever-leader")],
    ids=lambda s: s.name,
)
def test_a_mode_holds_through_tls(secured: LocalCluster, tmp_path: Path, scenario: Scenario) -> None:
    with Campaign(secured, tmp_path / "runs") as campaign:
        result = campaign.run(scenario).result()
    assert result.verdict is Verdict.HELD, result.explain()
    password = secured.client_settings(Lane.CONTROL)["sasl.password"]
    assert files_with(password, tmp_path / "runs", secured.folder) == []


@pytest.mark.smoke
def test_a_refused_client_gets_the_reason_in_one_line(one: LocalCluster, tmp_path: Path) -> None:
    wrong = client_config(tmp_path / "wrong", one, sasl_password="not-it")
    assert "refused sasl.username=onceproof: " in (line := refused(one, tmp_path, "--client-config", wrong))
    assert "invalid credentials" in line
    assert "not-it" not in line
    stranger = client_config(tmp_path / "stranger", one, sasl_mechanism="PLAIN")
    line = refused(one, tmp_path, "--client-config", stranger)
    assert line.endswith("does not offer sasl.mechanism=PLAIN")
    line = refused(one, tmp_path)
    assert "no broker answers" in line
    assert line.endswith("if it requires TLS or SASL, set --client-config")
    certificates.make(tmp_path / "other", ["127.0.0.1"], 1)
    other = client_config(tmp_path / "untrusted", one, ssl_ca_location=str(tmp_path / "other/authority.pem"))
    assert "its certificate is refused: " in refused(one, tmp_path, "--client-config", other)


@pytest.mark.conformance
def test_links_pass_and_are_cut_through_tls(one: LocalCluster) -> None:
    check_started(one)
    node = one.nodes()[0]
    assert isinstance(node, Severable)
    assert isinstance(node, Shapeable)
    lane = node.links()[0]
    assert lane.source in list(Lane), "with one broker all links are those of clients"
    check_severable(one, node)
    talk = node.talk(lane, Questions(count=200, padding=1000, at_once=50, limit_s=30.0))
    assert (talk.ending, talk.answers) == (Ending.ANSWERED, 200)
    with node.long_question(lane, PROBE_TOPIC, 0, 3.0) as answered:
        assert not answered(0.5)
        assert answered(30.0)
        assert answered(0.0), "it stays answered"


@pytest.mark.conformance
def test_encrypted_requests_cannot_be_held(one: LocalCluster) -> None:
    assert not any(isinstance(node, RequestHolding) for node in one.nodes())
    held = Scenario(name="held", mode=Mode.AT_LEAST_ONCE, schedule=once(HoldRequests(), on=leader_of(0)))
    assert "requests are encrypted (sasl_ssl)" in (why_not_applicable(held, one) or "")


@pytest.mark.conformance
def test_an_expired_certificate_is_reported(tmp_path: Path) -> None:
    with LocalCluster(tmp_path / "cluster", brokers=1, combined=True, security="ssl") as cluster:
        lanes = [f"{cluster.bootstrap_servers(lane)}".split(":")[0] for lane in Lane]
        expired = certificates.make(tmp_path / "expired", lanes, -1)
        expired.server.replace(tmp_path / "cluster" / "certificates" / "server.pem")
        node = cluster._nodes[0]
        node.kill()
        node.launch()
        config = client_config(tmp_path, cluster, ssl_ca_location=str(expired.authority))
        wait_until(
            lambda: "cannot be reached" not in (refused(cluster, tmp_path, "--client-config", config)),
            100.0,
            "",
        )
        line = refused(cluster, tmp_path, "--client-config", config)
        assert line.endswith("its certificate is refused: certificate has expired")


@pytest.mark.conformance
def test_a_cluster_that_starts_with_an_expired_certificate_says_so_at_once(tmp_path: Path) -> None:
    begun = time.monotonic()
    cluster = LocalCluster(tmp_path, brokers=1, combined=True, security="sasl_ssl", certificate_days=-1)
    with pytest.raises(ClusterError, match=r"its certificate is refused: certificate has expired$"):
        cluster.start()
    assert time.monotonic() - begun < 80


GUARDED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:onceproof",
}
# In the order of the checks: the missing permission, and the rule that grants it.
RIGHTS = [
    ("create topics", ResourceType.TOPIC, AclOperation.CREATE),
    ("delete topics", ResourceType.TOPIC, AclOperation.DELETE),
    ("use transactional ids", ResourceType.TRANSACTIONAL_ID, AclOperation.WRITE),
    ("write", ResourceType.TOPIC, AclOperation.WRITE),
    ("commit as a group", ResourceType.GROUP, AclOperation.READ),
    # Committing offsets needs the permission to read the topic; the error names the topic.
    ("commit as a group", ResourceType.TOPIC, AclOperation.READ),
]


@pytest.mark.conformance
def test_each_missing_permission_is_named(tmp_path: Path) -> None:
    with LocalCluster(
        tmp_path, brokers=1, combined=True, security="sasl_plaintext", broker_settings=GUARDED
    ) as cluster:
        internal = (cluster._nodes[0].address, int(Port.INTERNAL))
        admin_requests.make_user(internal, "guest", "welcome", "SCRAM-SHA-512", 20.0)
        host = AdminClient(connection.settings(cluster))
        guest = {**connection.settings(cluster), "sasl.username": "guest", "sasl.password": "welcome"}
        for number, (what, kind, operation) in enumerate(RIGHTS):
            complaint = f"the user of --client-config may not {what} under the prefix onceproof-: "
            with pytest.raises(ClusterError, match=complaint):
                _try_all(Preflight(guest, AdminClient(guest), "onceproof-"), f"onceproof-{number}")
            allowed = AclBinding(
                kind, "onceproof-", ResourcePatternType.PREFIXED, "User:guest", "*", operation,
                AclPermissionType.ALLOW,
            )  # fmt: skip
            host.create_acls([allowed])[allowed].result(20)
        _try_all(Preflight(guest, AdminClient(guest), "onceproof-"), "onceproof-all")


def _try_all(preflight: Preflight, name: str) -> None:
    preflight.make_topic(name, [1])
    preflight.make_topic(f"{name}-gone", [1])
    preflight.delete_topic(f"{name}-gone")
    preflight.use(name)
