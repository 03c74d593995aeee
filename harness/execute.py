"""The whole life of a run: from a scenario and a cluster to a run folder with its ledger."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from harness import __version__, registry
from harness.contracts import Cluster, Lane, Mode, Node, TopicSettings, Workload
from harness.errors import NoRoom, OnceproofError, RunRefusedError, UsageError, WaitTimeout
from harness.injector import Injector
from harness.kafka import lost_record_search
from harness.kafka.connection import prefix_of
from harness.kafka.coordinator_watch import CoordinatorWatch
from harness.kafka.hanging_transactions import tell_hanging_transactions
from harness.kafka.topics import GroupWatch, partitions_now, refuse_compaction
from harness.ledger import journal
from harness.ledger.message import run_number
from harness.ledger.rundir import RunDir, write_json
from harness.ledger.transform import INPUT
from harness.processes import ownership
from harness.runtime.disk_space import needed_in
from harness.scenario import Scenario
from harness.workers import client_version
from harness.workers.pool import OBSERVER, Worker, Workers
from harness.workers.skewed_worker import ClockedWorker, workers_with_clocks
from harness.workers.standby import Standby

EVENTS_RESERVED = 1024 * 1024  # bytes: what heals and what went wrong is written down on a full disk, too
LONGEST_TOPIC = 249  # as brokers have it
OBSERVERS_LIMIT_S = 35.0  # until they have read to the end and stopped
# One `step` event each, in this order: what the numbered comments of `_run` say has been done (`workers` and `faults`: begins).
STEPS = ("begun", "topics", "workers", "warm", "faults", "healed", "stopped", "drained", "read", "ended", "left",
         "collected")  # fmt: skip

ERROR = "harness-error.txt"  # in the logs of a run: the trace of an error of ours

Say = Callable[[str], None]


class BrokenRun(Exception):
    """An error that is not an OnceproofError ended a run: `run` is its folder, the cause is that error."""

    def __init__(self, run: RunDir, error: Exception) -> None:
        super().__init__(f"an error of onceproof: {type(error).__name__}: {error}")
        self.run, self.error = run, error


@dataclass(frozen=True)
class RunArena:
    """What faults and targets see of a running run."""

    cluster: Cluster
    topic: str
    group: str
    workers: Workers
    more_topics: Mapping[str, TopicSettings] = field(
        default_factory=dict
    )  # by name, in the order of their numbers

    def nodes(self) -> Sequence[Node]:
        return [*self.cluster.nodes(), *self.workers.all]


def execute(
    scenario: Scenario,
    cluster: Cluster,
    runs: Path,
    *,
    say: Say = lambda _: None,
    command: str = "",
    versions: Mapping[str, str] | None = None,
    standby: Standby | None = None,
) -> RunDir:
    """Run the scenario on a cluster that is up. An error after its start makes the run inconclusive.

    It is then in the ledger, and the run folder is returned all the same: nothing that was seen is lost. An interruption and an
    error that is not an OnceproofError are in the ledger too, but end the run at once: the manifest stays incomplete.
    Raises BrokenRun for the latter.
    """
    with needed_in(runs):
        run = RunDir.create(runs, scenario.name)
    topic = f"{prefix_of(cluster)}{scenario.name}-{run.path.name}"
    group = f"{topic}-group"
    workload: Workload = registry.load("workload", scenario.workload)(scenario, topic, group)
    more_topics = dict(workload.more_topics())
    for name in (topic, *more_topics):
        if len(name) > LONGEST_TOPIC:
            shutil.rmtree(run.path)  # nothing is in it yet
            raise UsageError(
                f"{name}: topics have at most {LONGEST_TOPIC} letters; choose a shorter name or --prefix"
            )
    manifest = _manifest(run, scenario, cluster, topic, group, command, versions or {})
    manifest["topics"] = [topic, *more_topics]
    transform = workload.transform()
    manifest["transform"] = asdict(transform) if transform is not None else None
    with needed_in(runs):
        write_json(run.manifest, manifest)
        ownership.own(run.logs)
    with ExitStack() as stack:
        stack.callback(ownership.disown, run.logs)
        book = stack.enter_context(journal.Ledger(run.ledger, journal.HARNESS, reserve_bytes=EVENTS_RESERVED))
        roles = [*workload.roles(), *_observers(scenario, topic, more_topics)]
        specs = _specs(scenario, cluster, run, roles)
        workers = stack.enter_context(Workers(_workers(scenario, cluster, run, specs, book.events, standby)))
        arena = RunArena(cluster, topic, group, workers, more_topics)
        try:
            with needed_in(run.path):
                _run(scenario, arena, run, manifest, book.events, say, standby)
        except RunRefusedError:
            raise
        except OnceproofError as error:
            book.events.write("error", where="run", text=str(error))
            say(str(error))
        except BaseException as error:
            _abandon(run, manifest, book.events, error)
            if isinstance(error, Exception):
                raise BrokenRun(run, error) from error
            raise
    manifest["versions"] |= client_version.loaded(run, {worker.name for worker in workers.all})
    manifest["versions"] |= _kafka_version(cluster, before=manifest["versions"].get("kafka"))
    manifest["ended"] = time.strftime("%Y-%m-%dT%H:%M:%S%z")
    manifest["complete"] = True
    try:
        with needed_in(run.path):
            write_json(run.manifest, manifest)
    except NoRoom as error:
        say(f"{error}; the run counts as not complete")  # as the manifest of its start says, which stays
    return run


def _abandon(run: RunDir, manifest: dict[str, Any], events: journal.EventLog, error: BaseException) -> None:
    """Write down why the run ends here, so that reconciling its folder gives INCONCLUSIVE with this reason."""
    text = f"{type(error).__name__}: {error}" if isinstance(error, Exception) else "the run was interrupted"
    with suppress(OSError, OnceproofError):  # the disk may be what is full
        events.write("error", where="harness", text=text)
        manifest["ended"] = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        write_json(run.manifest, manifest)
        if isinstance(error, Exception):
            trace = "".join(traceback.format_exception(error))
            (run.logs / ERROR).write_text(trace, encoding="utf-8", errors="replace")


def _run(
    scenario: Scenario,
    arena: RunArena,
    run: RunDir,
    manifest: dict[str, Any],
    events: journal.EventLog,
    say: Say,
    standby: Standby | None,
) -> None:
    timings, workers, partitions = scenario.timings, arena.workers, scenario.topic.partitions
    injector = Injector(arena, events, say, workers.check)
    for text in arena.cluster.describe().get("not_checked", ()):
        events.write("note", where="cluster", text=text)
    # 1 the cluster is up: our caller started it, so that several runs can share it
    arena.cluster.begin_logs()
    events.write("step", step="begun")
    real = arena.cluster.describe()["kind"] != "memory"  # mock brokers cannot be asked for everything
    with ExitStack() as stack:
        stack.callback(
            _collect_logs, arena.cluster, run, events
        )  # also of a run that fails: they may say why
        # 2 topics
        arena.cluster.create_topic(arena.topic, scenario.topic)
        for name, settings in arena.more_topics.items():
            arena.cluster.create_topic(name, settings)
        if real:
            _refuse_compaction(arena, events)
        events.write("step", step="topics")
        watch = GroupWatch(arena.cluster, arena.topic, partitions, arena.group, scenario.consumers.isolation)
        stack.callback(watch.close)
        if real:
            ids = [worker.transactional_id for worker in workers.all if worker.transactional_id]
            stack.enter_context(
                CoordinatorWatch(arena.cluster, arena.group, list(dict.fromkeys(ids)), events)
            )
        # 3 workers
        events.write("step", step="workers")
        workers.start()
        broken: OnceproofError | None = None
        try:
            # 4 warm up until progress is seen
            say("warming up")
            warm = workers.wait_for_progress(
                workers.counters(), timings.warm_up_limit_s, "no progress at the start"
            )
            time.sleep(timings.warm_up_s)
            events.write("step", step="warm", acked=warm.acked, delivered=warm.delivered)
            # 5 fault windows, 6 heal all: the injector undoes whatever it began
            events.write("step", step="faults")
            if scenario.schedule:
                injector.inject(scenario.schedule)
            else:
                time.sleep(scenario.produce_s)
            events.write("step", step="healed")
            try:
                workers.wait_for_progress(
                    workers.counters(), timings.recovery_limit_s, "no progress after healing"
                )
            except WaitTimeout as error:
                events.write("stalled", what="progress", text=str(error))
                raise
            time.sleep(timings.cool_down_s)
        except OnceproofError as error:
            # The rest still happens, and what goes wrong there never hides this first error.
            broken = error
            events.write("error", where="faults", text=str(error))
            say(str(error))
        # 7 stop producers
        say("stopping producers")
        workers.stop(workers.producers, timings.flush_limit_s + 10)
        events.write("step", step="stopped")
        # 8 drain the group to the end offsets
        say("draining")
        try:
            ends = watch.wait_until_drained(timings.drain_limit_s, workers.check)
            events.write("drain", complete=True, detail="", topic=INPUT, ends=ends)
        except OnceproofError as error:
            events.write("drain", complete=False, detail=str(error))
        # What is read in the end is what is written: copiers have to be done with it.
        workers.stop(workers.copiers, timings.flush_limit_s + 10)
        events.write("step", step="drained")
        if scenario.mode is Mode.EXACTLY_ONCE and real:
            topics = [arena.topic, *arena.more_topics]
            tell_hanging_transactions(arena.cluster, topics, timings.hanging_limit_s, events)
        workers.stop(workers.observers, OBSERVERS_LIMIT_S)
        # 9 the final reader reads the whole log with a fresh client, both ways
        say("reading the log")
        there = partitions_now(arena.cluster, arena.topic, partitions)  # an operator may have added some
        manifest["topic_unchanged"] = there == partitions
        access = arena.cluster.client_settings(Lane.CONTROL)
        reader = Worker(_reader_spec(scenario, arena, run, there), run, events, access, standby)
        stack.callback(reader.kill)
        reader.start()
        for consumer in workers.consumers:
            consumer.ask_to_stop()  # the group is drained: its members leave it while the log is read
        reader.wait(timings.final_read_limit_s + 15)
        events.write("step", step="read")
        # What is lost may still lie in a replica's log, which goes with the topic.
        if looked_for := lost_record_search.examine(run, arena.cluster, arena.topic, events):
            say(f"looked for {looked_for} lost record(s) in the replicas' logs")
        # 10 stop workers
        workers.stop(workers.consumers, 15.0)
        events.write("step", step="ended")
        # 11 leave the cluster as it was found: other runs may share it. 12 on the way out logs are collected
        for name in (arena.topic, *arena.more_topics):
            arena.cluster.delete_topic(name)
        events.write("step", step="left")
        if broken is None:
            workers.check()


def _refuse_compaction(arena: RunArena, events: journal.EventLog) -> None:
    """Refuse a run whose topics are compacted (E8), and leave the cluster as it was found."""
    topics = [arena.topic, *arena.more_topics]
    try:
        for text in refuse_compaction(arena.cluster, topics):
            events.write("note", where="topics", text=text)
    except RunRefusedError:
        for name in topics:
            arena.cluster.delete_topic(name)
        raise


def _collect_logs(cluster: Cluster, run: RunDir, events: journal.EventLog) -> None:
    """Keep what the cluster logged during the run. The verdict does not need it, so a failure is only noted."""
    try:
        cluster.collect_logs(run.logs / "cluster")
    except OSError as error:
        events.write("note", where="logs", text=f"the cluster's logs could not be copied: {error}")
    events.write("step", step="collected")


def _workers(
    scenario: Scenario,
    cluster: Cluster,
    run: RunDir,
    specs: Sequence[Mapping[str, Any]],
    events: journal.EventLog,
    standby: Standby | None,
) -> list[Worker]:
    clocked = workers_with_clocks(scenario.schedule)
    settings = [cluster.client_settings(Lane(spec["lane"])) for spec in specs]
    return [
        ClockedWorker(spec, run, events, security)
        if spec["name"] in clocked
        else Worker(spec, run, events, security, standby)
        for spec, security in zip(specs, settings, strict=True)
    ]


def _specs(
    scenario: Scenario, cluster: Cluster, run: RunDir, roles: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    return [
        {
            **role,
            "client": scenario.client,
            "client_version": scenario.client_version,
            "run": run_number(run.run_id),
            "bootstrap": cluster.bootstrap_servers(Lane(role["lane"])),
        }
        for role in roles
    ]


def _observers(
    scenario: Scenario, topic: str, more_topics: Mapping[str, TopicSettings]
) -> list[Mapping[str, Any]]:
    """Two readers beside the group, one of each isolation, if the scenario wants them."""
    topics = {topic: scenario.topic, **more_topics}
    return [
        {
            "role": OBSERVER,
            "name": f"{OBSERVER}-{reads}",
            "lane": Lane.CONSUME,
            "topics": [{"name": name, "partitions": made.partitions} for name, made in topics.items()],
            "mode": scenario.mode,
            "isolation": f"read_{reads}",
        }
        for reads in (("committed", "uncommitted") if scenario.observed else ())
    ]


def _reader_spec(scenario: Scenario, arena: RunArena, run: RunDir, partitions: int) -> Mapping[str, Any]:
    counts = {
        arena.topic: partitions,
        **{
            name: partitions_now(arena.cluster, name, settings.partitions)
            for name, settings in arena.more_topics.items()
        },
    }
    return {
        "role": "final_reader",
        "name": "final-reader",
        "topics": [{"name": name, "partitions": count} for name, count in counts.items()],
        "mode": scenario.mode,
        "client": scenario.client,
        "run": run_number(run.run_id),
        "bootstrap": arena.cluster.bootstrap_servers(Lane.CONTROL),
        "limit_s": scenario.timings.final_read_limit_s,
    }


def _manifest(
    run: RunDir,
    scenario: Scenario,
    cluster: Cluster,
    topic: str,
    group: str,
    command: str,
    versions: Mapping[str, str],
) -> dict[str, Any]:
    return {
        "version": journal.VERSION,
        "run_id": run.run_id,
        "run_number": run_number(run.run_id),
        "scenario": scenario.describe(),
        "expected": scenario.expected,
        "control": scenario.control,
        "seed": scenario.seed,
        "topic": topic,
        "group": group,
        "clock": {
            "monotonic_ns": journal.now_ns(),
            "wall": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
            "unix": time.time(),
        },
        "cluster": dict(cluster.describe()),
        "versions": {
            "onceproof": __version__,
            "python": platform.python_version(),
            **versions,
            **_kafka_version(cluster),
        },
        "machine": {"system": platform.platform(), "cores": _cores(), "memory_gib": _memory_gib()},
        "command": command or " ".join(sys.argv),
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "complete": False,
    }


def _kafka_version(cluster: Cluster, before: str | None = None) -> dict[str, str]:
    """What the brokers run; `3.9.2 -> 4.3.1` where an upgrade changed it. Nothing for a cluster that does not tell."""
    now = cluster.describe().get("kafka_version")
    return {"kafka": " -> ".join(dict.fromkeys(filter(None, [before, now])))} if now else {}


def _cores() -> int:
    return len(os.sched_getaffinity(0))


def _memory_gib() -> float:
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemTotal:"):
            return round(int(line.split()[1]) / 1024**2, 1)
    return 0.0
