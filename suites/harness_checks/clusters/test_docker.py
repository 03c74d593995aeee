"""Real brokers in containers: the modes under faults, powers, and the leftovers of a killed harness.

Skipped only on machines where no engine can be started; root on Debian installs and starts one.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.campaign import Campaign, Execute
from harness.clusters.base.options import Options
from harness.clusters.containers.cluster import DockerCluster
from harness.clusters.containers.labels import OWNER
from harness.clusters.containers.leftovers import sweep_containers
from harness.contracts import Cluster, Mode, Severable, Verdict
from harness.errors import ClusterError
from harness.provision.docker import engine as engines
from harness.provision.docker.engine_folders import left_behind
from harness.provision.docker.private_engine import OwnEngine
from harness.scenario import Scenario
from harness.testing.check_cluster import check_cluster, check_started, check_stop
from harness.testing.leftovers import mounts_of, processes_of
from harness.waiting import wait_until
from suites.scenarios.docker_cases import short_of_memory, throttled
from suites.scenarios.matrix import MODES, crossed
from suites.support.sessions import started_campaign

ROOT = Path(__file__).resolve().parents[3]
AGAIN = "pytest suites/harness_checks/clusters/test_docker.py -k {name} --seed {seed}"
LITTLE = [
    pytest.param(throttled(Mode.AT_LEAST_ONCE, "fsync"), marks=pytest.mark.docker),
    pytest.param(throttled(Mode.EXACTLY_ONCE, "fsync"), marks=pytest.mark.conformance),
    pytest.param(throttled(Mode.AT_LEAST_ONCE, "read"), marks=pytest.mark.conformance),
    *(pytest.param(short_of_memory(mode), marks=pytest.mark.conformance) for mode in MODES),
]
HARNESS = """
import sys
from pathlib import Path
from harness.clusters.containers.cluster import DockerCluster
cluster = DockerCluster(Path(sys.argv[1]), brokers=1, combined=True)
cluster.start()
print("ready", flush=True)
sys.stdin.read()
"""
# The same, with faults in place: a broker that is paused, with its links cut.
PAUSING = HARNESS.replace(
    'print("ready", flush=True)',
    """
node = cluster.nodes()[0]
node.sever([Cut(link) for link in node.links()], by="victim")
node.pause()
""",
).replace("import sys\n", "import sys\nfrom harness.contracts import Cut\n", 1)
KILLS = 20


@pytest.fixture(scope="module", autouse=True)
def engine_is_possible() -> None:
    if why := engines.trouble():
        pytest.skip(why)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with DockerCluster(tmp_path_factory.mktemp("docker") / "cluster", combined=True) as started:
        facts = started.describe()
        print(f"\nready after {facts.steps_s['ready']} s, {facts.more['rss_mb']} MB, {facts.more['engine']}")
        yield started


@pytest.fixture(scope="module")
def campaign(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[Campaign]:
    with started_campaign(request.config, cluster, AGAIN) as campaign:
        yield campaign


@pytest.mark.docker
@pytest.mark.parametrize(
    ("mode", "fault"),
    [*((mode, "kill-leader") for mode in MODES), (Mode.AT_LEAST_ONCE, "sever-leader")],
    ids=str,
)
def test_promises_hold_in_containers(execute: Execute, mode: Mode, fault: str) -> None:
    result = execute(crossed(mode, fault))
    assert result.verdict is Verdict.HELD, result.explain()
    assert result.count("acked") > 0


@pytest.mark.parametrize("scenario", LITTLE, ids=lambda scenario: scenario.name)
def test_promises_hold_in_containers_with_few_resources(
    execute: Execute, scenario: Scenario, cluster: Cluster
) -> None:
    result = execute(scenario)
    assert result.verdict is Verdict.HELD, result.explain()
    assert result.count("acked") > 0
    (window,) = result.reconciled["coverage"]["windows"]
    print(f"\n{window['proof']}; longest without an ack {result.reconciled['unavailable_s_max']} s")
    assert list(cluster.residue()) == []


@pytest.mark.docker
def test_passes_the_check_of_its_contract(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    cluster = DockerCluster(tmp_path / "cluster", brokers=2, controllers=1, options=Options(byteman=True))
    with cluster:
        facts = cluster.describe()
        record_property("steps_s", facts.steps_s)
        record_property("rss_mb", facts.more["rss_mb"])
        node = cluster.nodes()[0]
        assert isinstance(node, Severable)
        kinds = {link.source for link in node.links()}
        assert kinds >= {"produce", "consume", "broker-2"}, "lanes and links between nodes"
        check_cluster(cluster, tmp_path / "logs")
    assert {log.name for log in (tmp_path / "logs").iterdir()} >= {"broker-2.log", "toxiproxy.log"}
    assert not list((tmp_path / "cluster").glob("*/data")), "data goes, logs stay"


@pytest.mark.conformance
@pytest.mark.parametrize("combined", [True, False], ids=["combined", "isolated"])
def test_three_nodes_pass_the_check_of_their_contract(tmp_path: Path, combined: bool) -> None:
    with DockerCluster(tmp_path / "cluster", combined=combined, options=Options(byteman=True)) as cluster:
        facts = cluster.describe()
        print(f"\nready after {facts.steps_s['ready']} s, {facts.more['rss_mb']} MB")
        check_cluster(cluster, tmp_path / "logs")


@pytest.mark.docker
def test_an_image_with_the_official_layout_works(tmp_path: Path) -> None:
    """The same paths, and its obstacles: an entry point, another user, volumes."""
    client = engines.engine().client()
    name = "onceproof-test/kafka:official-layout"
    made = client.images.get(_kafka_image())
    settings = [
        'ENTRYPOINT ["/__cacert_entrypoint.sh"]',
        'CMD ["/etc/kafka/docker/run"]',
        "USER appuser",
        "VOLUME /etc/kafka/secrets /var/lib/kafka/data /mnt/shared/config",
        *(f"ENV {word}" for word in made.attrs["Config"]["Env"]),
    ]
    container = client.containers.create(made, ["/none"], network_mode="none")
    try:
        client.api.import_image_from_stream(
            container.export(), repository=name.partition(":")[0], tag="official-layout", changes=settings
        )
    finally:
        container.remove()
    try:
        with DockerCluster(tmp_path / "cluster", brokers=1, combined=True, image=name) as cluster:
            check_started(cluster)
            assert cluster.describe().more["images"]["kafka"] == name
            assert cluster.view().produce_round_trip_ms("broker-1") > 0
            check_stop(cluster, tmp_path / "logs")
        assert not client.volumes.list(), "volumes of an image go with its containers"
    finally:
        client.images.remove(name, force=True)


@pytest.mark.docker
def test_a_node_that_does_not_start_is_an_immediate_error(tmp_path: Path) -> None:
    cluster = DockerCluster(
        tmp_path, brokers=1, combined=True, broker_settings={"log.retention.bytes": "not-a-number"}
    )
    with pytest.raises(
        ClusterError, match=r"broker-1 ended with code 1: .*not-a-number.*server\.log"
    ) as raised:
        cluster.start()
    assert "\n" not in str(raised.value)


@pytest.mark.docker
def test_containers_of_a_killed_harness_are_swept(tmp_path: Path) -> None:
    """If the engine keeps running, as a user's own does, containers outlive their harness."""
    running = engines.engine()
    client = running.client()
    folder = tmp_path / "cluster"
    before = len(client.networks.list())
    with _harness(folder, {"DOCKER_HOST": running.url}) as harness:
        assert harness.stdout is not None
        assert harness.stdout.readline() == b"ready\n"
        harness.send_signal(signal.SIGKILL)
    assert len(_containers_in(folder)) == 2, "a broker and Toxiproxy"
    assert len([line for line in sweep_containers() if "container" in line and "removed" in line]) >= 2
    assert not _containers_in(folder)
    assert len(client.networks.list()) == before


@pytest.mark.conformance
@pytest.mark.timeout(7200)
def test_kills_at_random_moments_leave_nothing_after_the_next_start(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """Each harness has its own engine, which dies with it; its cluster is up and the broker paused after some seconds."""
    folder, chance = tmp_path / "cluster", random.Random(20)
    engines.installed_dockerd()  # before a harness starts; it also installs iptables-save
    before = _filters()
    for _ in range(pytestconfig.getoption("--times") or KILLS):
        with _harness(folder, {}, PAUSING) as harness:
            time.sleep(chance.uniform(0.3, 20.0))
            assert harness.poll() is None, "it ended by itself"
            harness.send_signal(signal.SIGKILL)
    with _harness(folder, {}) as harness:
        assert harness.stdout is not None
        assert harness.stdout.readline() == b"ready\n"
        assert left_behind() == [], "the next start has removed it"
        harness.communicate(b"")  # the harness ends without stopping its cluster
    assert left_behind() == []
    wait_until(lambda: not processes_of(folder), 10.0, lambda: f"still running: {processes_of(folder)}")
    assert not mounts_of(folder)
    assert _filters() == before


@pytest.mark.docker
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start an engine")
def test_an_engine_started_by_onceproof_leaves_the_machine_as_it_was() -> None:
    engines.engine()  # if an engine already runs here, dockerd is installed
    program = engines._dockerd()
    if program is None:
        pytest.skip("the engine runs on another machine: no dockerd here")
    before = _filters()
    own = OwnEngine.start(program, lambda url: engines._silence(url) is None)
    try:
        network = (
            engines.Engine(own.url)
            .client()
            .networks.create("own", options={"com.docker.network.bridge.name": own.new_bridge()})
        )
        assert network.id
        assert left_behind() == [], "it is in use"
        assert _filters() == before
    finally:
        own.end()
    assert left_behind() == []
    assert _filters() == before


def _filters() -> tuple[list[str], str]:
    """Return the packet filter rules of this machine, and whether it forwards packets."""
    output = subprocess.run(["iptables-save"], capture_output=True, text=True, check=False).stdout
    rules = [line for line in output.splitlines() if line.startswith(("-A", "-N", "-P", ":"))]
    return rules, Path("/proc/sys/net/ipv4/ip_forward").read_text(encoding="ascii")


def _harness(folder: Path, environment: dict[str, str], program: str = HARNESS) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", program, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
        env={**os.environ, **environment},
    )


def _containers_in(folder: Path) -> list[str]:
    client = engines.engine().client()
    found = client.containers.list(all=True, filters={"label": OWNER})
    return [str(each.name) for each in found if str(folder) in each.labels.values()]


def _kafka_image() -> str:
    from harness import provision
    from harness.provision.docker.images import kafka_image
    from harness.provision.kafka import version_of

    libs = provision.kafka_libs()
    return kafka_image(engines.engine().client(), provision.java(), libs, version_of(libs))
