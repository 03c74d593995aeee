"""Execute a run: from a scenario and a cluster to a run folder with its ledger."""

from __future__ import annotations

import shutil
import time
import traceback
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness import registry
from harness.contracts import Cluster, Workload
from harness.errors import NoRoom, OnceproofError, RunRefusedError, UsageError
from harness.kafka.connection import prefix_of
from harness.ledger import journal
from harness.ledger.rundir import RunDir, write_json
from harness.processes import ownership
from harness.running.arena import RunArena
from harness.running.manifest import begun_manifest, kafka_version
from harness.running.steps import RunSteps, Say
from harness.runtime.disk_space import needed_in
from harness.scenario import Scenario
from harness.workers import client_version
from harness.workers.making import make_workers, observer_roles, refuse_unusable
from harness.workers.pool import Workers
from harness.workers.standby import Standby

EVENTS_RESERVED = 1024 * 1024  # bytes, so that healing and errors can be recorded on a full disk, too
ERROR = "harness-error.txt"  # in the logs of a run: the traceback of an internal error


class BrokenRun(Exception):
    """An error that is not an OnceproofError ended a run: `run` is its folder, the cause is that error."""

    def __init__(self, run: RunDir, error: Exception) -> None:
        super().__init__(f"an error of onceproof: {type(error).__name__}: {error}")
        self.run, self.error = run, error


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
    manifest = begun_manifest(run, scenario, cluster, topic, group, command, versions or {})
    manifest["topics"] = [topic, *more_topics]
    transform = workload.transform()
    manifest["transform"] = asdict(transform) if transform is not None else None
    with needed_in(runs):
        write_json(run.scenario, scenario.describe())
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
                RunSteps(scenario, arena, run, manifest, book.events, say, standby).take()
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
    manifest["versions"] |= kafka_version(cluster, before=manifest["versions"].get("kafka"))
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
