"""A cluster and a campaign for tests, from the settings of the session; a suite may want its own."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import onceproof
from harness.pytest_plugin import settings

if TYPE_CHECKING:
    from harness.campaign import Campaign
    from harness.cluster_options import Choice
    from harness.clusters.base.options import Options
    from harness.contracts import Cluster
    from harness.scenario import Scenario
    from harness.trends.recorder import SessionRecorder


def chosen(
    config: pytest.Config, options: Options | None = None, brokers: Mapping[str, str] = {}, **fixed: Any
) -> Choice:
    """The cluster that the settings name, laid out as a suite needs it; `fixed`: what the suite itself chooses."""
    from harness.cluster_options import Choice
    from harness.clusters.base.options import PLAIN

    given = Choice.of(lambda name: settings.value(config, name), options=options or PLAIN, settings=brokers)
    choice = replace(given, **fixed)
    # The brokers of an existing cluster cannot be changed; tests that need more are skipped with the reason.
    return replace(choice, options=PLAIN, settings={}) if choice.cluster == "existing" else choice


def runs_of(config: pytest.Config) -> Path:
    """The folder of the run folders."""
    return Path(settings.value(config, "runs"))


def needs_byteman(items: Sequence[pytest.Item]) -> bool:
    """Return True if a test breaks disks by Byteman: by a marker, its scenario or fault, or a fault in its name."""
    from harness.cluster_options import by_byteman, faults_by_byteman
    from harness.scenario import Scenario

    faults = faults_by_byteman()

    def one(item: pytest.Item) -> bool:
        marker = item.get_closest_marker("onceproof")
        if item.get_closest_marker("byteman") or (marker is not None and marker.kwargs.get("byteman")):
            return True
        if any(name in item.name for name in faults):
            return True
        call = getattr(item, "callspec", None)
        values = call.params.values() if call is not None else ()
        return any(
            by_byteman([each]) if isinstance(each, Scenario) else "byteman" in getattr(each, "ways", ())
            for each in values
        )

    return any(one(item) for item in items)


@contextmanager
def started_cluster(
    config: pytest.Config,
    options: Options | None = None,
    settings: Mapping[str, str] = {},
    *,
    byteman: bool = False,
    **fixed: Any,
) -> Iterator[Cluster]:
    """A real cluster, with Byteman in its brokers if a test needs it; what crashed sessions left is swept first."""
    onceproof.pin("faults")
    from harness.cluster_options import running, with_byteman
    from harness.clusters.external.undo import undo_left
    from harness.processes import ownership
    from harness.runtime import signals

    signals.install()
    runs = runs_of(config)
    undo_left(lambda text: print(text, file=sys.stderr))
    ownership.sweep(runs)
    folder = ownership.new_cluster_folder(runs)
    choice = chosen(config, options, settings, **fixed)
    with running((with_byteman(choice) if byteman else choice).build(folder)) as started:
        yield started
    ownership.remove(folder)


@contextmanager
def started_campaign(
    config: pytest.Config, cluster: Cluster, command_for: Callable[[Scenario], str]
) -> Iterator[Campaign]:
    """A campaign on the cluster; `command_for` gives the command that repeats a run."""
    from harness.campaign import Campaign
    from harness.provision.versions import versions

    with Campaign(
        cluster,
        runs_of(config),
        command_for=command_for,
        versions=versions(),
        keep=settings.value(config, "keep"),
        trends=_recorder(config),
    ) as campaign:
        yield campaign


_RECORDER = pytest.StashKey["SessionRecorder"]()


def _recorder(config: pytest.Config) -> SessionRecorder:
    """The one recorder of this process; the workers of xdist are one session."""
    from harness.trends.recorder import SessionRecorder

    if _RECORDER not in config.stash:
        together = getattr(config, "workerinput", {}).get("testrunuid", "")
        config.stash[_RECORDER] = SessionRecorder(
            runs_of(config),
            "pytest",
            lambda text: print(text, file=sys.stderr),
            f"pytest-{together}" if together else "",
        )
    return config.stash[_RECORDER]


def repeat_command(config: pytest.Config, scenario: Scenario) -> str:
    """The command that repeats the test that runs now, on the same kind of cluster and with the same seed."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    words = [
        word.replace("--", settings.flag(""), 1) if word.startswith("--") else word
        for word in chosen(config).words()
    ]
    return shlex.join(["pytest", test, settings.flag("seed"), str(scenario.seed), *words])
