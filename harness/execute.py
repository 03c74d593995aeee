"""Execute a run: from a scenario and a cluster to a run folder with its ledger."""

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
from harness.contracts import Cluster, Lane, Mode, Node, TopicSettings, TopicToRead, Workload
from harness.errors import NoRoom, OnceproofError, RunRefusedError, UsageError, WaitTimeout
from harness.injector import Injector
from harness.kafka import lost_record_search
from harness.kafka.connection import prefix_of
from harness.kafka.coordinator_watch import CoordinatorWatch
from harness.kafka.hanging_transactions import report_hanging_transactions
from harness.kafka.topics import GroupWatch, partitions_now, refuse_compaction
from harness.ledger import journal
from harness.ledger.message import run_number
from harness.ledger.rundir import RunDir, write_json
from harness.ledger.transform import INPUT
from harness.processes import ownership
from harness.runtime.disk_space import needed_in
from harness.scenario import Scenario
from harness.workers import client_version
from harness.workers.making import make_workers, observer_roles, refuse_unusable
from harness.workers.pool import Worker, Workers
from harness.workers.roles.final_reader import FinalReaderSpec
from harness.workers.standby import Standby

EVENTS_RESERVED = 1024 * 1024  # bytes, so that healing and errors can be recorded on a full disk, too
OBSERVERS_LIMIT_S = 35.0  # for reading to the end and stopping
# One `step` event each, in this order, when the step of `_Steps` is done (`workers` and `faults`: when it begins).
STEPS = ("begun", "topics", "workers", "warm", "faults", "healed", "stopped", "drained", "read", "ended", "left",
         "collected")  # fmt: skip

ERROR = "harness-error.txt"  # in the logs of a run: the traceback of an internal error

Say = Callable[[str], None]


class BrokenRun(Exception):
    """An error that is not an OnceproofError ended a run: `run` is its folder, the cause is that error."""

    def __init__(self, run: RunDir, error: Exception) -> None:
        super().__init__(f"an error of onceproof: {type(error).__name__}: {error}")
        self.run, self.error = run, error


@dataclass(frozen=True)
class RunArena:
    """The part of a running run that faults and targets may use."""

    cluster: Cluster
    topic: str
    group: str
    workers: Workers
    more_topics: Mapping[str, TopicSettings] = field(default_factory=dict)  # in the order of their numbers
    patience: float = 1.0

    @property
    def topics(self) -> list[str]:
        return [self.topic, *self.more_topics]

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
    """Run the scenario on a cluster that is up, and return the run folder.

    An OnceproofError after the start is recorded in the ledger and makes the run INCONCLUSIVE; the folder is returned all the
    same. Any other error and an interruption are recorded too, but end the run at once and leave the manifest incomplete.
    Raises BrokenRun for such an error.
    """
    with needed_in(runs):
        run = RunDir.create(runs, scenario.name)
    topic = f"{prefix_of(cluster)}{scenario.name}-{run.path.name}"
    group = f"{topic}-group"
    workload: Workload = registry.load("workload", scenario.workload)(scenario, topic, group)
    more_topics = dict(workload.more_topics())
    try:
        refuse_unusable(scenario, [topic, *more_topics], workload.roles())
    except UsageError:
        shutil.rmtree(run.path)  # nothing is in it yet
        raise
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
        roles = [*workload.roles(), *observer_roles(scenario, topic, more_topics)]
        found = make_workers(scenario, cluster, run, roles, book.events, standby)
        workers = stack.enter_context(Workers(found))
        arena = RunArena(cluster, topic, group, workers, more_topics)
        try:
            with needed_in(run.path):
                _Steps(scenario, arena, run, manifest, book.events, say, standby).take()
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
        say(
            f"{error}; the run counts as not complete"
        )  # the manifest of its start stays, which is incomplete
    return run


def _abandon(run: RunDir, manifest: dict[str, Any], events: journal.EventLog, error: BaseException) -> None:
    """Record why the run ends here, so that reconciling its folder gives INCONCLUSIVE with this reason."""
    text = f"{type(error).__name__}: {error}" if isinstance(error, Exception) else "the run was interrupted"
    with suppress(OSError, OnceproofError):  # the disk may be full
        events.write("error", where="harness", text=text)
        manifest["ended"] = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        write_json(run.manifest, manifest)
        if isinstance(error, Exception):
            trace = "".join(traceback.format_exception(error))
            (run.logs / ERROR).write_text(trace, encoding="utf-8", errors="replace")


@dataclass
class _Steps:
    """The twelve steps of a run; `take` has their order."""

    scenario: Scenario
    arena: RunArena
    run: RunDir
    manifest: dict[str, Any]
    events: journal.EventLog
    say: Say
    standby: Standby | None
    real: bool = True  # False: mock brokers, which do not answer every request

    def take(self) -> None:
        """Take all steps. 7 to 12 follow whatever error happens in 4 to 6, and never hide that first error."""
        self._begin()  # 1
        with ExitStack() as stack:
            stack.callback(self._collect_logs)  # 12, also of a run that fails: the logs may show why
            self._create_topics()  # 2
            watch = self._watch_coordinators(stack)
            self._start_workers()  # 3
            first_error = self._break_and_heal()  # 4, 5, 6
            self._stop_producers()  # 7
            self._drain(watch)  # 8
            self._read_log(stack)  # 9
            self._stop_consumers()  # 10
            self._delete_topics()  # 11
            if first_error is None:
                self.arena.workers.check()

    def _record(self, step: str, **fields: object) -> None:
        self.events.write("step", step=step, **fields)

    def _begin(self) -> None:
        """1: the cluster is up. The caller has started it, so that several runs can share it."""
        for text in self.arena.cluster.describe().get("not_checked", ()):
            self.events.write("note", where="cluster", text=text)
        self.arena.cluster.begin_logs()
        self._record("begun")
        self.real = self.arena.cluster.describe()["kind"] != "memory"

    def _create_topics(self) -> None:
        """2: create the topics. Raise RunRefusedError if one is compacted (E8), and leave the cluster as it was."""
        cluster = self.arena.cluster
        for name, settings in {self.arena.topic: self.scenario.topic, **self.arena.more_topics}.items():
            cluster.create_topic(name, settings)
        try:
            for text in refuse_compaction(cluster, self.arena.topics) if self.real else ():
                self.events.write("note", where="topics", text=text)
        except RunRefusedError:
            for name in self.arena.topics:
                cluster.delete_topic(name)
            raise
        self._record("topics")

    def _watch_coordinators(self, stack: ExitStack) -> GroupWatch:
        """Watch the coordinators until the end of the run; return the watch of the group, for step 8."""
        arena, scenario = self.arena, self.scenario
        watch = GroupWatch(
            arena.cluster, arena.topic, scenario.topic.partitions, arena.group, scenario.consumers.isolation
        )
        stack.callback(watch.close)
        if self.real:
            ids = dict.fromkeys(w.transactional_id for w in arena.workers.all if w.transactional_id)
            stack.enter_context(CoordinatorWatch(arena.cluster, arena.group, list(ids), self.events))
        return watch

    def _start_workers(self) -> None:
        """3: start the workers."""
        self._record("workers")
        self.arena.workers.start()

    def _break_and_heal(self) -> OnceproofError | None:
        """4 to 6: warm up, break, heal. Record and return an error, so that the other steps still follow."""
        try:
            self._warm_up()
            self._inject_faults()
            self._recover()
        except OnceproofError as error:
            self.events.write("error", where="faults", text=str(error))
            self.say(str(error))
            return error
        return None

    def _warm_up(self) -> None:
        """4: wait for progress, then run for a while without faults."""
        timings, workers = self.scenario.timings, self.arena.workers
        self.say("warming up")
        warm = workers.wait_for_progress(
            workers.counters(), timings.warm_up_limit_s, "no progress at the start"
        )
        time.sleep(timings.warm_up_s)
        self._record("warm", acked=warm.acked, delivered=warm.delivered)

    def _inject_faults(self) -> None:
        """5 and 6: the fault windows. The injector undoes every fault that it began."""
        self._record("faults")
        if self.scenario.schedule:
            injector = Injector(self.arena, self.events, self.say, self.arena.workers.check)
            injector.inject(self.scenario.schedule)
        else:
            time.sleep(self.scenario.produce_s)
        self._record("healed")

    def _recover(self) -> None:
        """6: wait until the workers make progress again."""
        timings, workers = self.scenario.timings, self.arena.workers
        try:
            workers.wait_for_progress(
                workers.counters(), timings.recovery_limit_s, "no progress after healing"
            )
        except WaitTimeout as error:
            self.events.write("stalled", what="progress", text=str(error))
            raise
        time.sleep(timings.cool_down_s)

    def _stop_producers(self) -> None:
        """7: stop the producers; they flush first."""
        self.say("stopping producers")
        self.arena.workers.stop(self.arena.workers.producers, self.scenario.timings.flush_limit_s + 10)
        self._record("stopped")

    def _drain(self, watch: GroupWatch) -> None:
        """8: wait until the group has committed the ends of all partitions; then stop everything that still writes."""
        arena, timings, workers = self.arena, self.scenario.timings, self.arena.workers
        self.say("draining")
        try:
            ends = watch.wait_until_drained(timings.drain_limit_s, workers.check)
            self.events.write("drain", complete=True, detail="", topic=INPUT, ends=ends)
        except OnceproofError as error:
            self.events.write("drain", complete=False, detail=str(error))
        # Copiers write: they have to end before the log is read.
        workers.stop(workers.copiers, timings.flush_limit_s + 10)
        self._record("drained")
        if self.scenario.mode is Mode.EXACTLY_ONCE and self.real:
            report_hanging_transactions(arena.cluster, arena.topics, timings.hanging_limit_s, self.events)
        workers.stop(workers.observers, OBSERVERS_LIMIT_S)

    def _read_log(self, stack: ExitStack) -> None:
        """9: the final reader, a fresh client, reads the whole log with both isolation levels."""
        arena, made = self.arena, self.scenario.topic.partitions
        self.say("reading the log")
        partitions = partitions_now(arena.cluster, arena.topic, made)  # an operator may have added some
        self.manifest["topic_unchanged"] = partitions == made
        access = arena.cluster.client_settings(Lane.CONTROL)
        spec = _reader_spec(self.scenario, arena, self.run, partitions)
        reader = Worker(spec, self.run, self.events, access, self.standby)
        stack.callback(reader.kill)
        reader.start()
        for consumer in arena.workers.consumers:
            consumer.ask_to_stop()  # the group is drained: its members leave it while the log is read
        reader.wait(self.scenario.timings.final_read_limit_s + 15)
        self._record("read")
        # A lost record may still be in the log of a replica, which is deleted with the topic.
        if count := lost_record_search.examine(self.run, arena.cluster, arena.topic, self.events):
            self.say(f"looked for {count} lost record(s) in the replicas' logs")

    def _stop_consumers(self) -> None:
        """10: stop the consumers, which were asked to stop during the reading."""
        self.arena.workers.stop(self.arena.workers.consumers, 15.0)
        self._record("ended")

    def _delete_topics(self) -> None:
        """11: leave the cluster as it was: other runs may share it."""
        for name in self.arena.topics:
            self.arena.cluster.delete_topic(name)
        self._record("left")

    def _collect_logs(self) -> None:
        """12: copy the logs of the cluster. The verdict does not need them, so a failure is only noted."""
        try:
            self.arena.cluster.collect_logs(self.run.logs / "cluster")
        except OSError as error:
            text = f"the cluster's logs could not be copied: {error}"
            self.events.write("note", where="logs", text=text)
        self._record("collected")


def _reader_spec(scenario: Scenario, arena: RunArena, run: RunDir, partitions: int) -> FinalReaderSpec:
    counts = {arena.topic: partitions}
    for name, settings in arena.more_topics.items():
        counts[name] = partitions_now(arena.cluster, name, settings.partitions)
    return FinalReaderSpec(
        name="final-reader",
        topics=tuple(TopicToRead(name, count) for name, count in counts.items()),
        mode=scenario.mode,
        lane=Lane.CONTROL,
        client=scenario.client,
        run=run_number(run.run_id),
        bootstrap=arena.cluster.bootstrap_servers(Lane.CONTROL),
        limit_s=scenario.timings.final_read_limit_s,
    )


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
    """Return the version of the brokers, `3.9.2 -> 4.3.1` after an upgrade; empty if the cluster does not report it."""
    now = cluster.describe().get("kafka_version")
    return {"kafka": " -> ".join(dict.fromkeys(filter(None, [before, now])))} if now else {}


def _cores() -> int:
    return len(os.sched_getaffinity(0))


def _memory_gib() -> float:
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemTotal:"):
            return round(int(line.split()[1]) / 1024**2, 1)
    return 0.0
