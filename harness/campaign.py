"""A campaign: several runs one after the other on one cluster, reconciled by one Spark session beside them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from harness.assess import assess
from harness.contracts import Cluster, Verdict
from harness.execute import execute
from harness.rundir import RunDir
from harness.scenario import Scenario
from harness.verdict import Judgement

Say = Callable[[str, str], None]  # scenario and what happens to it


@dataclass(frozen=True)
class Result:
    """A run and what became of it."""

    run: RunDir
    scenario: Scenario
    reconciled: Mapping[str, Any]
    judgement: Judgement

    @property
    def verdict(self) -> Verdict:
        return self.judgement.verdict

    @property
    def violations(self) -> set[str]:
        """The anomalies that the guarantee forbids and the run shows."""
        return {v.anomaly for v in self.judgement.violations}

    def count(self, name: str) -> int:
        return int(self.reconciled["counts"].get(name, 0))

    def explain(self) -> str:
        """Why the verdict is what it is, with the evidence, for a failed assertion."""
        lines = [f"{self.scenario.name}: {self.verdict}, expected {self.scenario.expected} ({self.run.path})"]
        lines += [f"  forbidden: {v.anomaly} x {v.count}: {v.reason}" for v in self.judgement.violations]
        lines += [f"  inconclusive: {text}" for text in self.judgement.inconclusive]
        lines += [f"  {f['text']}" for f in self.reconciled.get("findings", [])[:10]]
        return "\n".join(lines)


Execute = Callable[[Scenario], Result]  # the fixture `execute` of suites


class Campaign:
    """Owns the Spark session's thread; the cluster is the caller's."""

    def __init__(
        self,
        cluster: Cluster,
        runs: Path,
        *,
        say: Say = lambda scenario, text: None,
        command_for: Callable[[Scenario], str] = lambda scenario: "",
        versions: Mapping[str, str] | None = None,
    ) -> None:
        self._cluster, self._runs, self._say = cluster, runs, say
        self._command_for, self._versions = command_for, versions
        # One thread: Spark's two cores are shared with the cluster, and the first run is not kept waiting.
        self._spark_thread = ThreadPoolExecutor(1, thread_name_prefix="reconcile")
        self._spark_ready = self._spark_thread.submit(_start_spark)
        self.busy_s = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._spark_thread.shutdown(wait=True, cancel_futures=kind is not None)

    def run(self, scenario: Scenario) -> Future[Result]:
        """Execute now; the future is the reconciled and judged result."""
        began = time.monotonic()
        run = execute(
            scenario,
            self._cluster,
            self._runs,
            say=lambda text: self._say(scenario.name, text),
            command=self._command_for(scenario),
            versions=self._versions,
        )
        self._say(scenario.name, f"ran {time.monotonic() - began:.1f} s, reconciling")
        return self._spark_thread.submit(self._reconcile, scenario, run)

    def _reconcile(self, scenario: Scenario, run: RunDir) -> Result:
        began = time.monotonic()
        reconciled, judgement = assess(run, self._spark_ready.result())
        self.busy_s += time.monotonic() - began
        return Result(run, scenario, reconciled, judgement)


def _start_spark() -> Any:
    from harness.reconcile.session import spark

    return spark()
