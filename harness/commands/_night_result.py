"""Carry a night out and publish its result: the report, the summary, the JSON object and the exit code."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from harness.commands import _night_cluster, _outputs
from harness.errors import OnceproofError
from harness.nights.coverage import PairCoverage, described
from harness.nights.journal import NightJournal, earlier
from harness.nights.night import Night, outcome
from harness.nights.resources import lines as lines_of_resources
from harness.nights.upkeep import Upkeep
from harness.runtime import exits
from harness.trends.recorder import SessionRecorder
from harness.trends.row import NIGHTLY

if TYPE_CHECKING:
    from harness.commands._progress import Progress
    from harness.provision.background_archive import Making
    from harness.scenario import Scenario
    from reports.ci.junit import Case

_PROGRESS_EVERY_S = 60.0
_ON_FINISH_LIMIT_S = 120.0
_STDERR = 2


@dataclass
class NightResult:
    args: argparse.Namespace
    progress: Progress
    journal: NightJournal
    archive: Making | None
    _began: float = field(default_factory=time.monotonic)
    _started: str = field(default_factory=lambda: time.strftime("%Y-%m-%d %H:%M:%S %z"))
    _kafka: list[str] = field(default_factory=list)
    _publish_for_ci: Callable[[], None] = lambda: None  # set when the result is known
    _error: str | None = None  # that ended the night

    def carry_out(self) -> int:
        """Run the night and publish its result; an interruption or an error is raised again after that."""
        plan = self.journal.state.plan
        self.progress.note(f"seed {plan.seed}, {plan.minutes:g} minutes; journal: {self.journal.file}")
        ended: BaseException | None = None
        name = self.journal.file.parent.name
        trends = SessionRecorder(self.args.runs, NIGHTLY, self.progress.note, name, plan.canary)
        try:
            with _night_cluster.shared_cluster(
                self.args, self.progress, plan.scenarios, self._replay_command, trends, self._changed
            ) as cluster:
                night = Night(self.journal, cluster, self.progress.note)
                self._kafka = cluster.kafka
                cluster.after_run = Upkeep(
                    self.journal, self.args.runs, self.args.disk_gb, self.progress.note
                )
                with self._each_minute(night):
                    night.go()
        except (Exception, KeyboardInterrupt) as error:
            if not self.journal.state.executed:
                raise
            ended = error
            if not isinstance(error, KeyboardInterrupt):
                self._error = str(error) if isinstance(error, OnceproofError) else exits.unforeseen(error)
                self.progress.note(f"the night ended early: {self._error}")
        code = self._publish(ended)
        if self.archive is not None:
            self.archive.give_up() if ended is not None else self.archive.finish()
        if ended is not None and (code != exits.VIOLATED or isinstance(ended, KeyboardInterrupt)):
            raise ended
        return code

    @contextmanager
    def _each_minute(self, night: Night) -> Iterator[None]:
        """Print a line of progress each minute until the end of the block."""
        over = threading.Event()

        def print_lines() -> None:
            while not over.wait(_PROGRESS_EVERY_S):
                with suppress(RuntimeError):  # the state changed meanwhile; the next line follows in a minute
                    self.progress.note(night.progress())

        thread = threading.Thread(target=print_lines, name="progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            self.progress.close()

    def _changed(self, why: str, found: Sequence[str]) -> None:
        for line in found:
            self.progress.note(f"left by the cluster: {line}")
        self.journal.write("cluster", why=why, leaks=list(found))

    def _replay_command(self, scenario: Scenario) -> str:
        return f"./onceproof replay {self.args.runs / scenario.name}"

    # --- the result ---

    def _publish(self, ended: BaseException | None) -> int:
        """Write the report, print the result, call the command of --on-finish; return the exit code."""
        data, text, code = self._result(ended)
        rendered = json.dumps(data)
        (self.journal.file.parent / "result.json").write_text(rendered + "\n", encoding="utf-8")
        _outputs.print_result(
            rendered if self.args.json else text, interrupted=isinstance(ended, KeyboardInterrupt)
        )
        self._publish_for_ci()
        self._on_finish(rendered)
        return code

    def _result(self, ended: BaseException | None) -> tuple[dict[str, Any], str, int]:
        from harness.commands import _night_report
        from harness.provision.versions import versions
        from reports import summary
        from reports.build import build
        from reports.course import COMPLETE, FAILED, INTERRUPTED
        from reports.model import read_runs
        from suites.nights.choices import possible

        state, plan, name = self.journal.state, self.journal.state.plan, self.journal.file.parent.name
        how = COMPLETE if ended is None else INTERRUPTED if isinstance(ended, KeyboardInterrupt) else FAILED
        course = _night_report.course_of(state, how, self._error)
        runs = _night_report.runs_of(self.args.runs, state)
        every_run = earlier(self.args.runs)
        report = build(
            runs,
            self.args.report or self.args.runs / "report.html",
            title="onceproof nightly",
            command=_night_report.nightly_command(state),
            seed=plan.seed,
            versions=versions(", ".join(dict.fromkeys(self._kafka))),
            started=self._started,
            seconds=time.monotonic() - self._began,
            course=course,
            night=_night_report.facts(name, state, self.args.runs, PairCoverage.of(every_run)),
            differences=_night_report.differences_of(name, self.args.runs),
        )
        read = read_runs(runs)
        data = {
            "seed": plan.seed,
            "minutes": plan.minutes,
            "runs": [summary.row(run) for run in read],
            **outcome(state),
            "coverage": {
                "night": described(state.exercised()),
                "all_nights": described(every_run, possible()),
            },
            "report": str(report),
            "journal": str(self.journal.file),
            "ended": how,
            "error": self._error,
        }
        (self.journal.file.parents[1] / "coverage.json").write_text(
            json.dumps(data["coverage"]["all_nights"], indent=1) + "\n", encoding="utf-8"
        )
        code = summary.exit_code(read)
        if not state.canary_found:
            code = exits.VIOLATED
        closing = self._closing(data)
        self._publish_for_ci = partial(
            _outputs.publish_for_ci,
            self.args,
            "onceproof nightly",
            self._started,
            read,
            course,
            self._cases(),
            closing[:1],
        )
        table = summary.table(read, sys.stdout.isatty(), course)
        return data, "\n".join([table, *closing]), code

    def _cases(self) -> list[Case]:
        """Return the test cases besides the runs: an unsafe scenario that was not run fails the night."""
        from reports.ci.junit import FAILURE, Case

        state = self.journal.state
        if state.plan.canary in state.executed:
            return []
        message = "it was not run, so this night proves nothing"
        return [Case(state.plan.canary, "onceproof.canary", FAILURE, "not found", message)]

    def _closing(self, data: dict[str, Any]) -> list[str]:
        canary, coverage = data["canary"], data["coverage"]["all_nights"]
        found = "was found" if canary["found"] else "was NOT found: this night proves nothing"
        lines = [f"the unsafe scenario {canary['scenario']} {found}"]
        for each in data["findings"]:
            lines.append(f"finding: {each['scenario']}: {', '.join(each['anomalies'])} ({each['run_dir']})")
            if each["replayed"]:
                lines.append(
                    f"  replayed: {each['replayed']['shown']} of {each['replayed']['conclusive']} runs show it"
                )
            if each["minimised"] and each["minimised"]["shows"]:
                lines += ["  smallest scenario:", each["minimised"]["test"]]
        lines.append(
            f"pairs of mode, fault, target, workload and setting: {coverage['exercised']} exercised, {coverage['bit']} "
            f"with effect, in all nights; of those with a fault {coverage['uncovered_with_faults']} of "
            f"{coverage['possible_with_faults']} pairs and {coverage['triples']['uncovered_with_faults']} of "
            f"{coverage['triples']['possible_with_faults']} triples are left"
        )
        lines += lines_of_resources(data["resources"])
        return [*lines, f"seed {data['seed']}; report: {data['report']}"]

    def _on_finish(self, rendered: str) -> None:
        """Give the result to the user's command. A command that fails is noted and changes nothing."""
        if not self.args.on_finish:
            return
        try:
            done = subprocess.run(
                self.args.on_finish,
                shell=True,
                input=rendered + "\n",
                text=True,
                stdout=_STDERR,  # stdout has the result
                timeout=_ON_FINISH_LIMIT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            self.progress.note(f"--on-finish: {error}")
        else:
            if done.returncode:
                self.progress.note(f"--on-finish: {self.args.on_finish}: exit code {done.returncode}")
