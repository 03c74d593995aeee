"""The twelve steps of a run."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from typing import Any

from harness.contracts import Lane, Mode, TopicToRead
from harness.errors import OnceproofError, RunRefusedError, WaitTimeout
from harness.injector import Injector
from harness.kafka import coordinator_watch, leader_watch, lost_record_search
from harness.kafka.group_watch import GroupWatch
from harness.kafka.hanging_transactions import report_hanging_transactions
from harness.kafka.repeatedly import repeatedly
from harness.kafka.share_groups import ShareGroupWatch
from harness.kafka.topics import partitions_now, refuse_compaction
from harness.ledger import journal
from harness.ledger.message import run_number
from harness.ledger.rundir import RunDir
from harness.ledger.transform import INPUT
from harness.running.arena import RunArena
from harness.running.recovery import bring_back
from harness.scenario import Scenario
from harness.workers.roles.final_reader import FinalReaderSpec
from harness.workers.standby import Standby
from harness.workers.worker import Worker

OBSERVERS_LIMIT_S = 35.0  # for reading to the end and stopping
CONSUMERS_LIMIT_S = 45.0  # for stopping, which they were asked for before the log was read
# One `step` event each, in this order, when the step of `RunSteps` is done (`workers` and `faults`: when it begins).
STEPS = ("begun", "topics", "workers", "warm", "faults", "healed", "stopped", "drained", "read", "ended", "left",
         "collected")  # fmt: skip

Say = Callable[[str], None]


@dataclass
class RunSteps:
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
            with self._leaders_watched():
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
        """1: the cluster is up. The caller has started it, so that several runs can share it; nodes that one of them left
        ended or paused are brought back.
        """
        for text in bring_back(self.arena.cluster):
            self.say(f"{text} after an earlier run; it runs again")
            self.events.write("note", where="cluster", text=f"{text} after an earlier run")
        for text in self.arena.cluster.describe().not_checked:
            self.events.write("note", where="cluster", text=text)
        self.arena.cluster.begin_logs()
        self._record("begun")
        self.real = not self.arena.cluster.describe().mock

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

    def _watch_coordinators(self, stack: ExitStack) -> GroupWatch | ShareGroupWatch:
        """Watch the coordinators until the end of the run; return the watch of the group, for step 8."""
        arena, scenario = self.arena, self.scenario
        watch: GroupWatch | ShareGroupWatch
        if any(worker.spec.shares for worker in arena.workers.consumers):
            watch = ShareGroupWatch(arena.cluster, arena.topic, arena.group)
        else:
            partitions, isolation = scenario.topic.partitions, scenario.consumers.isolation
            watch = GroupWatch(arena.cluster, arena.topic, partitions, arena.group, isolation)
        stack.callback(watch.close)
        if self.real:
            ids = dict.fromkeys(w.transactional_id for w in arena.workers.all if w.transactional_id)
            look = coordinator_watch.CoordinatorWatch(arena.cluster, arena.group, list(ids), self.events).look
            stack.enter_context(repeatedly(look, coordinator_watch.LOOK_EVERY_S, "coordinators"))
        return watch

    def _leaders_watched(self) -> AbstractContextManager[None]:
        """Record leaders and in-sync sets during the `with`."""
        if not self.real:
            return nullcontext()
        watch = leader_watch.LeaderWatch(self.arena.cluster, self.arena.topics, self.events)
        return repeatedly(watch.look, leader_watch.LOOK_EVERY_S, "leaders")

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

    def _drain(self, watch: GroupWatch | ShareGroupWatch) -> None:
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
        self.arena.workers.stop(self.arena.workers.consumers, CONSUMERS_LIMIT_S)
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
