"""The cluster for scenarios with any fault: every power that this machine allows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from harness.cluster_options import Choice, laid_out_for
from harness.clusters.base.options import Options
from harness.clusters.disk.mount import possible
from harness.provision.docker.engine import find_engine
from harness.scenario import Scenario
from suites.scenarios.groups import BROKERS_FOR_GROUPS

# Retention that is checked every five minutes would bite long after the run.
SETTINGS = {"log.retention.check.interval.ms": "500", "log.initial.task.delay.ms": "500"}
LAID_OUT = ("local", "docker")
ON_FUSE = frozenset({"power_loss", "broken_disk", "full_disk", "slow_disk", "wipe_disk"})


def every_power(kind: str) -> Options:
    """Return the layout with FUSE disks, adjustable clocks, limited memory, Byteman, and two log folders per broker."""
    docker = kind == "docker"
    return Options(
        fuse=not (docker and _others_engine()) and possible(),
        clocks=not docker,
        memory=True,
        byteman=True,
        log_folders=1 if docker else 2,
    )


def for_scenarios(choice: Choice, scenarios: Iterable[Scenario]) -> Choice:
    """Return the choice with the powers that the faults of these scenarios need, as far as this machine allows.

    Powers that no scenario needs slow a cluster down. Clusters of other kinds stay as they are, and lack some faults.
    """
    if choice.cluster not in LAID_OUT or choice.zookeeper:
        return choice
    every, needed = every_power(choice.cluster), list(scenarios)
    faults = [window.fault.describe() for scenario in needed for window in scenario.schedule]
    names = {str(fault["fault"]) for fault in faults}
    options = Options(
        fuse=every.fuse and bool(names & ON_FUSE),
        clocks=every.clocks and "skew_clock" in names,
        memory=any(fault.get("memory_mb") for fault in faults),
        log_folders=max([1, *(int(fault.get("folder") or 1) for fault in faults)])
        if every.log_folders > 1
        else 1,
    )
    laid_out = replace(choice, options=options, settings={**SETTINGS, **BROKERS_FOR_GROUPS})
    return laid_out_for(laid_out, needed)


def _others_engine() -> bool:
    """Return True if containers run on an engine that onceproof did not start: it would keep FUSE disks after a crash."""
    found = find_engine()
    return found is not None and found.own is None
