"""Security settings reach a worker, but nothing that is stored or shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from harness.clusters.memory import PARTITIONS, MemoryCluster
from harness.contracts import Lane, Mode, TopicSettings
from harness.ledger.journal import EventLog
from harness.ledger.message import run_number
from harness.ledger.rundir import RunDir
from harness.scenario import ProducerSettings, Scenario
from harness.waiting import wait_until
from harness.workers.worker import Worker
from harness.workloads.produce_consume import ProduceConsume

SECRET = "hush-2f9c1d"
SCENARIO = Scenario(
    name="secrets",
    mode=Mode.AT_LEAST_ONCE,
    topic=TopicSettings(partitions=PARTITIONS),
    producers=ProducerSettings(keyed=0, keyless=1),
)


def test_a_secret_is_in_no_file_argument_or_environment(tmp_path: Path) -> None:
    run, topic = RunDir.create(tmp_path / "runs", "secrets"), "onceproof-secrets"
    with MemoryCluster(tmp_path / "cluster") as memory:
        memory.create_topic(topic, SCENARIO.topic)
        [role] = ProduceConsume(SCENARIO, topic, "g").producers()
        spec = replace(role, run=run_number(run.run_id), bootstrap="nowhere.invalid:1")
        events = EventLog(run.ledger / "harness.events", "harness")
        # The address is among the secrets: only a worker that got them finds the brokers.
        secrets = {"bootstrap.servers": memory.bootstrap_servers(Lane.PRODUCE), "sasl.password": SECRET}
        worker = Worker(spec, run, events, secrets)
        try:
            worker.start()
            wait_until(lambda: worker.counters().acked > 0, 30.0, "the settings did not arrive")
            process = Path(f"/proc/{worker._process.pid}")  # type: ignore[union-attr]
            assert SECRET.encode() not in (process / "cmdline").read_bytes()
            assert SECRET.encode() not in (process / "environ").read_bytes()
        finally:
            worker.kill()
    files = [file for file in run.path.rglob("*") if file.is_file()]
    assert len(files) > 3
    assert not [file for file in files if SECRET.encode() in file.read_bytes()]
