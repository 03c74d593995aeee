"""A campaign: several runs in sequence on one cluster, reconciled in the background by one Spark session."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

from harness.assessment import assess_each
from harness.contracts import Cluster, Verdict
from harness.execute import BrokenRun, execute
from harness.expectation import requirement_text
from harness.ledger import packing
from harness.ledger.rundir import RunDir
from harness.scenario import Scenario
from harness.trends.recorder import SessionRecorder
from harness.verdict import Judgement
from harness.workers.standby import Standby
from harness.workers.worker import environment

Say = Callable[[str, str], None]  # name of a scenario, and its progress


@dataclass(frozen=True)
class Result:
    """A run, its reconciliation and its verdict."""

    run: RunDir
    scenario: Scenario
    reconciled: Mapping[str, Any]
    judgement: Judgement

    @property
    def verdict(self) -> Verdict:
        return self.judgement.verdict

    @property
    def as_expected(self) -> bool:
        """True if the run is what its scenario expects and requires: the one rule of harness/expectation.py."""
        return self.judgement.as_expected

    @property
    def violations(self) -> set[str]:
        """The anomalies that the guarantee forbids and the run shows."""
        return {v.anomaly for v in self.judgement.violations}

    def count(self, name: str) -> int:
        return int(self.reconciled["counts"].get(name, 0))

    def explain(self) -> str:
        """Explain the verdict, with the evidence, for a failed assertion."""
        lines = [f"{self.scenario.name}: {self.verdict}, expected {self.scenario.expected} ({self.run.path})"]
        lines += [f"  forbidden: {v.anomaly} x {v.count}: {v.reason}" for v in self.judgement.violations]
        if self.judgement.required:
            lines.append(f"  {requirement_text(self.judgement.required, self.judgement.found)}")
        lines += [f"  not as required: {shortfall.text}" for shortfall in self.judgement.shortfalls]
        lines += [f"  inconclusive: {text}" for text in self.judgement.inconclusive]
        lines += [f"  stalled: {text}" for text in self.judgement.stalled]
        lines += [f"  {f['text']}" for f in self.reconciled.get("findings", [])[:10]]
        return "\n".join(lines)


Execute = Callable[[Scenario], Result]  # the fixture `execute` of suites


class Campaign:
    """Executes runs and reconciles them in a background thread, all waiting runs in one job.

    A job of ten runs costs little more than a job of one, so reconciliation keeps up however slow the machine is.
    The caller starts and stops the cluster. `keep` chooses the files of run folders that stay (harness.ledger.packing); with
    `pack_at_once` the others are removed as soon as a run is judged, else when `pack` is called or the campaign ends.
    `trends` gets every run that is judged.
    """

    def __init__(
        self,
        cluster: Cluster,
        runs: Path,
        *,
        say: Say = lambda scenario, text: None,
        command_for: Callable[[Scenario], str] = lambda scenario: "",
        versions: Mapping[str, str] | None = None,
        keep: str = "all",
        pack_at_once: bool = False,
        trends: SessionRecorder | None = None,
    ) -> None:
        self._cluster, self._runs, self._say = cluster, runs, say
        self._command_for, self._versions = command_for, versions
        self._keep, self._pack_at_once, self._trends = keep, pack_at_once, trends
        self._to_pack: dict[Path, Result] = {}
        self.runs: list[RunDir] = []  # the executed runs, in order, broken ones included
        self.broken: list[BrokenRun] = []
        self._waiting: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._standby = Standby(runs, environment())
        self._thread = threading.Thread(target=self._reconcile_all, name="reconcile", daemon=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._standby.close()
        self._waiting.put(None)
        if kind is None and self._thread.ident:
            self._thread.join()  # after an error the results are not needed: the thread ends with the process
            for result in list(self._to_pack.values()):
                self.pack(result)

    def run(self, scenario: Scenario) -> Future[Result]:
        """Execute a scenario now. The future has its result when the run is reconciled and judged.

        A run that an internal error ended is reconciled too, as far as it came; its future raises BrokenRun.
        """
        if not self._thread.ident:
            self._thread.start()  # not sooner: Spark's start would slow down the start of the cluster
        began = time.monotonic()
        broken: BrokenRun | None = None
        try:
            run = execute(
                scenario,
                self._cluster,
                self._runs,
                say=lambda text: self._say(scenario.name, text),
                command=self._command_for(scenario),
                versions=self._versions,
                standby=self._standby,
            )
        except BrokenRun as error:
            broken, run = error, error.run
            self.broken.append(error)
        self.runs.append(run)
        self._say(scenario.name, f"ran {time.monotonic() - began:.1f} s, reconciling")
        future: Future[Result] = Future()
        self._waiting.put(_Waiting(scenario, run, future, broken))
        return future

    def pack(self, result: Result) -> None:
        """Remove the files of a run that `keep` does not include. The end of the campaign does this for all other runs."""
        if self._to_pack.pop(result.run.path, None) and (left := packing.pack(result.run, self._keep)):
            self._say(result.scenario.name, left)

    def leave(self, result: Result) -> None:
        """Keep all files of the run, whatever its verdict."""
        self._to_pack.pop(result.run.path, None)

    def _reconcile_all(self) -> None:
        from harness.reconcile.spark.session import start_in_background

        start_in_background()  # beside the first run
        while (first := self._waiting.get()) is not None:
            batch, more = [first], True
            while more and not self._waiting.empty():
                following = self._waiting.get()
                if following is None:
                    self._waiting.put(None)  # for the loop above
                    more = False
                else:
                    batch.append(following)
            self._reconcile(batch)

    def _reconcile(self, batch: Sequence[_Waiting]) -> None:
        from harness.reconcile.spark.session import spark

        try:
            # An error of one run goes to the caller that waits for it, and must not hide the other runs.
            answers = assess_each([one.run for one in batch], spark(), Exception)
        except Exception as error:  # noqa: BLE001  Spark itself failed
            answers = [error for _ in batch]
        for one, answer in zip(batch, answers, strict=True):
            if self._trends is not None and not isinstance(answer, Exception):
                self._trends.add(one.run, *answer)
            if one.broken is not None or isinstance(answer, Exception):
                one.future.set_exception(one.broken or cast(Exception, answer))
                continue
            result = Result(one.run, one.scenario, *answer)
            self._to_pack[one.run.path] = result
            if self._pack_at_once:
                self.pack(result)
            one.future.set_result(result)


@dataclass(frozen=True)
class _Waiting:
    scenario: Scenario
    run: RunDir
    future: Future[Result]
    broken: BrokenRun | None = None
