"""A whole night on two releases, on mock brokers: the cluster is replaced where the release changes, and nowhere else; and its option."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from harness.cli import main
from harness.cluster_options import Choice
from harness.commands._night_cluster import releases
from harness.errors import UsageError
from harness.ledger.rundir import RunDir
from harness.nights import shared_cluster
from harness.nights.plan import Plan
from suites.nights import planning
from tests.commands.mock_brokers import CANARY, on_mock_brokers
from tests.commands.test_nightly import HONEST_ONES


@pytest.mark.spark
def test_clusters_change_where_the_release_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    on_mock_brokers(monkeypatch)
    built: list[str] = []
    fetched: list[str] = []
    build = Choice.build

    def recording(self: Choice, folder: Path) -> Any:
        built.append(self.kafka)
        return build(self, folder)

    monkeypatch.setattr(Choice, "build", recording)
    # Mock brokers register nowhere, so each of them would be replaced as unhealthy.
    monkeypatch.setattr(shared_cluster, "why_unusable", lambda cluster: "")
    monkeypatch.setattr(
        "harness.provision.kafka.kafka_libs", lambda release, *_, **__: fetched.append(release)
    )
    scenarios = (HONEST_ONES[0], CANARY, *HONEST_ONES[1:])
    plan = Plan(7, 10.0, scenarios, CANARY.name)
    monkeypatch.setattr(planning, "planned", lambda seed, minutes: plan)
    words = ["nightly", "--seed", "7", "--json", "--runs", str(tmp_path / "runs"), "--kafka", "4.3.1,3.9.2"]
    assert main(words) == 0
    data = json.loads(capsys.readouterr().out)
    assert sorted(built) == sorted(fetched) == ["3.9.2", "4.3.1"]
    assert data["clusters"] == 2
    commands = [RunDir(Path(run["run_dir"])).read_manifest()["command"] for run in data["runs"]]
    old = [command.endswith(" --kafka 3.9.2") for command in commands]
    assert sorted(old) == [False, False, True, True], commands
    assert old in ([True, True, False, False], [False, False, True, True])


def options(**given: object) -> argparse.Namespace:
    return argparse.Namespace(**{"bootstrap": None, "image": None, "mixed": None, **given})


def test_the_first_release_stays_the_one_of_the_options() -> None:
    args = options(kafka="4.3.1,3.9.2,4.3.1")
    assert (releases(args), args.kafka) == (["4.3.1", "3.9.2"], "4.3.1")
    args = options(kafka="3.9.2")
    assert (releases(args), args.kafka) == ([], "3.9.2")
    assert releases(options(kafka=None)) == []


@pytest.mark.parametrize(
    "wrong", [{"kafka": "4.3.1,newest"}, {"kafka": "4.3.1,3.9.2", "bootstrap": "k:9092"}]
)
def test_releases_that_cannot_take_turns_are_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="release"):
        releases(options(**wrong))
