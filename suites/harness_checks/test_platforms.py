"""Unusual machines: folders of any name, other Pythons, another Java. Tested if this machine has them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.provision.java import JVM_FOLDER, java_version, unfit

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("harness", "faults", "reports", "suites")
OTHER_PYTHONS = [
    version for version in ("3.11", "3.12", "3.13") if version != "{}.{}".format(*sys.version_info)
]
LIMIT_S = 400.0  # of each program; some 20 s on an idle machine

MEMORY_RUN = """
import sys
from pathlib import Path
from harness.runtime import environment
from harness.campaign import Campaign
from harness.clusters.memory import PARTITIONS, MemoryCluster
from harness.contracts import Mode
from harness.scenario import ConsumerSettings, Scenario, TopicSettings
environment.prepare()
folder = Path(sys.argv[1])
scenario = Scenario(
    name="other-python", mode=Mode.IDEMPOTENT, topic=TopicSettings(partitions=PARTITIONS),
    consumers=ConsumerSettings(members=1), produce_s=0.5,
)
with MemoryCluster(folder / "cluster") as cluster, Campaign(cluster, folder / "runs") as campaign:
    result = campaign.run(scenario).result()
print(result.verdict, result.count("acked") > 0)
"""

ONE_BROKER = """
import sys
from pathlib import Path
from harness.clusters.local import LocalCluster
from harness.reconcile.spark import session
with LocalCluster(Path(sys.argv[1]), brokers=1, controllers=1, combined=True) as cluster:
    print(cluster.describe().more["java_version"], len(cluster.view().registered_brokers()))
spark = session.spark()
print(spark._jvm.java.lang.System.getProperty("java.version"), spark.range(3).count())
"""


def run(words: list[str | Path], cwd: Path, env: Mapping[str, str] = {}) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words,
        cwd=cwd,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


@pytest.mark.smoke
def test_prove_works_in_folders_of_any_name(tmp_path: Path) -> None:
    """TRUST R4: brokers, workers, Spark and the report all work below such a name."""
    odd = tmp_path / "a b, größe: 'x' 5%20 $HOME"
    (odd / "tmp").mkdir(parents=True)
    words = ["prove", "--quick", "--only", "at_least_once*", "--json", "--runs", "runs"]
    ended = run(
        [sys.executable, "-P", "-m", "harness.cli", *words], odd,
        {"PYTHONPATH": str(ROOT), "TMPDIR": str(odd / "tmp"), "LC_ALL": "C"},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    summary = json.loads(ended.stdout)
    assert [one["verdict"] for one in summary["runs"]] == ["HELD"]
    assert Path(summary["report"]) == odd / "runs" / "report.html"
    assert "größe" in summary["runs"][0]["run_dir"]


@pytest.mark.smoke
@pytest.mark.parametrize("version", OTHER_PYTHONS)
def test_the_launcher_and_a_whole_run_work_with_another_python(version: str, tmp_path: Path) -> None:
    python = _python(version)
    if python is None:
        pytest.skip(f"NOT TESTED: Python {version} is not on this machine")
    clone = tmp_path / "clone"
    for name in COPIED:
        shutil.copytree(ROOT / name, clone / name, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("onceproof", "requirements.lock", "requirements-uv.lock"):
        shutil.copy2(ROOT / file, clone / file)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(python)
    # The environment of these tests contains uv.
    path = os.pathsep.join([str(tmp_path / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {"PATH": path, "PYTHONPATH": ""}
    doctor = run([clone / "onceproof", "doctor", "--json"], tmp_path, env)
    assert doctor.returncode == 0, doctor.stderr
    facts = {fact["name"]: fact for fact in json.loads(doctor.stdout)["facts"]}
    assert facts["Python"]["ok"]
    assert facts["Python"]["detail"].startswith(f"{version}.")
    assert "tried" not in facts["Python"]["detail"]
    whole = run(
        [clone / ".venv" / "bin" / "python", "-P", "-c", MEMORY_RUN, tmp_path],
        tmp_path,
        {**env, "PYTHONPATH": str(clone)},
    )
    assert whole.returncode == 0, whole.stderr
    assert whole.stdout == "HELD True\n", whole.stderr


@pytest.mark.smoke
def test_brokers_and_spark_start_with_java_25(tmp_path: Path) -> None:
    homes = [
        path.parent.parent
        for path in JVM_FOLDER.glob("*/bin/java")
        if (java_version(path) or "").startswith("25")
    ]
    usable = [home for home in homes if not unfit(java_version(home / "bin" / "java"))]
    if not usable:
        pytest.skip("NOT TESTED: Java 25.0.3 or newer is not on this machine")
    ended = run(
        [sys.executable, "-P", "-c", ONE_BROKER, tmp_path / "cluster"], tmp_path,
        {"PYTHONPATH": str(ROOT), "JAVA_HOME": str(usable[0])},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    lines = [line.split() for line in ended.stdout.splitlines()]
    assert [(version.partition(".")[0], count) for version, count in lines] == [("25", "1"), ("25", "3")]


def _python(version: str) -> Path | None:
    """Return a Python of this version from the path or from pyenv."""
    on_path = shutil.which(f"python{version}")
    of_pyenv = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    for candidate in [*([Path(on_path)] if on_path else []), *of_pyenv]:
        asked = run([candidate, "-c", "import sys; print(sys.executable)"], Path("/"))
        if asked.returncode == 0:  # a shim of pyenv may lead to no Python
            return Path(asked.stdout.strip())
    return None
