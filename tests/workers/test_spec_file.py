"""The specification of a worker: whole after its way through a file, and refused in one line if it is not as its role needs it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness import registry
from harness.contracts import Mode, WorkerSpec
from harness.errors import OnceproofError, UsageError
from harness.scenario import ChurnSettings, ConsumerSettings, PipelineSettings, Scenario, TransactionSettings
from harness.workers.making import observer_roles
from harness.workers.roles.churning_consumer import ChurningConsumerRoleSpec
from harness.workers.spec_file import read_spec, write_spec
from harness.workers.worker import ROOT, environment
from tests.workers.specs import SPECS

WORKLOADS = registry.names("workload")
SCENARIO = Scenario(
    name="specs",
    mode=Mode.EXACTLY_ONCE,
    observed=True,
    consumers=ConsumerSettings(static=True, auto_commit=True, extra={"fetch.min.bytes": 7}),
    pipeline=PipelineSettings(poison_share=0.25),
    transactions=TransactionSettings(rivals=1, end_limit_s=2),
    churn=ChurnSettings(stall_s=3.0),
)
READER = SPECS["final_reader"]("final-reader")


def specs(workload: str) -> list[WorkerSpec]:
    # Acceptance by a share group is in no transaction.
    scenario = replace(SCENARIO, mode=Mode.IDEMPOTENT) if workload == "share_group" else SCENARIO
    made = [
        *registry.load("workload", workload)(scenario, "t", "g").roles(),
        *observer_roles(scenario, "t", {}),
    ]
    return [replace(one, run=7, bootstrap="b:1", writer=f"{one.name}.0", incarnation=3) for one in made]


@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_specification_comes_back_as_it_was_written(workload: str, tmp_path: Path) -> None:
    for spec in (*specs(workload), READER):
        write_spec(tmp_path / "spec.json", spec)
        read = read_spec(tmp_path / "spec.json")
        assert read == spec
        assert type(read) is type(spec)


def test_every_role_is_named_as_its_file() -> None:
    for name in registry.names("role"):
        assert registry.load("role", name).spec_class.role == name


@pytest.mark.parametrize(
    ("role", "properties"),
    [
        ("producer", {"sends"}),
        ("transactional_producer", {"sends"}),
        ("copier", {"sends", "reads"}),
        ("consumer", {"reads", "stays_in_group"}),
        ("churning_consumer", {"reads"}),
        ("share_consumer", {"reads"}),
        ("observer", {"observes"}),
        ("final_reader", {"ends_by_itself"}),
    ],
)
def test_properties_of_roles(role: str, properties: set[str], tmp_path: Path) -> None:
    spec = SPECS[role]("x")
    assert type(spec) is registry.load("role", role).spec_class
    known = ("sends", "reads", "observes", "stays_in_group", "ends_by_itself")
    assert {name for name in known if getattr(spec, name)} == properties
    write_spec(tmp_path / "spec.json", spec)
    assert read_spec(tmp_path / "spec.json") == spec


def changed(folder: Path, spec: WorkerSpec, **changes: Any) -> Path:
    """Write the specification with changed values; a value of ... removes its key."""
    write_spec(folder / "spec.json", spec)
    found = {**json.loads((folder / "spec.json").read_text()), **changes}
    kept = {name: value for name, value in found.items() if value is not ...}
    (folder / "spec.json").write_text(json.dumps(kept))
    return folder / "spec.json"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"colour": 1}, "unknown key colour; FinalReaderSpec has name, mode, lane, "),
        ({"limit_s": ...}, "missing key limit_s of FinalReaderSpec"),
        ({"limit_s": "9"}, "limit_s is '9': float is expected"),
        ({"run": True}, "run is True: int is expected"),
        ({"mode": "exactly_twice"}, "mode is 'exactly_twice': Mode is expected"),
        ({"topics": {}}, r"topics is \{\}: "),
        ({"topics": [{"name": "t"}]}, r"missing key topics\[0\].partitions of TopicToRead"),
        ({"topics": [{"name": "t", "partitions": 1, "x": 1}]}, r"unknown key topics\[0\].x; TopicToRead has"),
        ({"security": {}}, "unknown key security"),
        ({"role": ...}, "an object with a role is expected"),
    ],
)
def test_a_wrong_key_or_value_is_named(changes: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(
        OnceproofError, match=f"spec.json: not the specification of a worker: {says}"
    ) as wrong:
        read_spec(changed(tmp_path, READER, **changes))
    assert "\n" not in str(wrong.value)


def test_a_wrong_part_of_a_specification_is_named(tmp_path: Path) -> None:
    spec = next(one for one in specs("group_churn") if isinstance(one, ChurningConsumerRoleSpec))
    with pytest.raises(OnceproofError, match=r"missing key churn\.for_s of ChurnSettings"):
        read_spec(changed(tmp_path, spec, churn={}))
    with pytest.raises(UsageError, match="unknown role 'juggler'"):
        read_spec(changed(tmp_path, spec, role="juggler"))


@pytest.mark.parametrize("broken", ["{", "[]", ""])
def test_a_file_that_is_no_specification_ends_the_worker_with_one_line(broken: str, tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text(broken)
    command = [sys.executable, "-m", "harness.workers.main", str(tmp_path / "spec.json")]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=ROOT, check=False, timeout=60
    )
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert "spec.json: not the specification of a worker: " in line


def test_a_worker_process_loads_no_spark() -> None:
    loads = "import sys, harness.workers.main as m; m.wait_for_order(); print(sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", loads], stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=ROOT,
        env=environment(), check=True, timeout=60,
    )  # fmt: skip
    loaded = done.stdout
    assert "'harness.workers.roles.copier'" in loaded
    for heavy in ("pyspark", "py4j", "harness.reconcile", "harness.provision", "harness.clusters"):
        assert f"'{heavy}" not in loaded
