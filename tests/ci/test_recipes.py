"""The recipes of docs/ci are valid where they are read: schemas of both CI systems, systemd's own check, bash, our own options.

The whole jobs run in suites/harness_checks/ci, on real clusters.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from harness import cli
from suites.support import ci_recipes
from suites.support.ci_recipes import CRON, FOLDER, GITHUB, GITLAB, SERVICE, TIMER, Job

ROOT = Path(__file__).parents[2]
JOBS = ci_recipes.jobs()
SCHEMAS = {GITHUB: "vendor.github-workflows", GITLAB: "vendor.gitlab-ci"}
KEYS = {
    "Unit": {"Description", "Wants", "After"},
    "Service": {
        "Type", "User", "WorkingDirectory", "StateDirectory", "CacheDirectory", "CacheDirectoryMode", "Environment",
        "ExecStart", "KillMode", "TimeoutStopSec", "LimitNOFILE", "Nice",
    },
    "Timer": {"OnCalendar", "Persistent"},
    "Install": {"WantedBy"},
}  # fmt: skip
CRON_FIELDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))


def validated(file: Path, schema: str) -> int:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(file)]
    return subprocess.run(command, capture_output=True, timeout=120, check=False).returncode


@pytest.mark.parametrize("file", SCHEMAS, ids=lambda file: file.name)
def test_both_ci_files_fit_their_schema_and_a_damaged_one_does_not(file: Path, tmp_path: Path) -> None:
    assert validated(file, SCHEMAS[file]) == 0
    content = ci_recipes.yaml_of(file)
    if file == GITHUB:
        del content["jobs"]["nightly"]["runs-on"]
    else:
        content["onceproof-nightly"]["artifacts"] = {"when": "sometimes"}
    damaged = tmp_path / file.name
    YAML().dump(content, damaged)
    assert validated(damaged, SCHEMAS[file]) == 1


def test_there_is_a_short_run_and_a_night_for_each_system() -> None:
    commands = {job.name: job.commands[-1] for job in JOBS}
    assert set(commands) == {
        "github smoke",
        "github nightly",
        "gitlab onceproof-smoke",
        "gitlab onceproof-nightly",
        "systemd",
        "cron",
    }
    for name, command in commands.items():
        assert (" prove --quick " if "smoke" in name else " nightly --minutes ") in command


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_every_command_is_bash_and_has_options_that_exist(job: Job) -> None:
    checked = subprocess.run(["bash", "-n"], input=job.script, text=True, capture_output=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")
    calls = re.findall(r"onceproof ((?:doctor|prove|nightly)\b[^>\n]*)", job.script)
    assert calls
    for call in calls:
        for name, value in job.variables.items():
            call = call.replace(f"${{{name}}}", value).replace(f"${name}", value)
        args = cli.parse(cli.build_parser(), shlex.split(call))
        assert getattr(args, "minutes", 60) >= 60


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_the_results_are_among_the_artifacts(job: Job) -> None:
    (junit,) = re.findall(r"--junit (\S+)", job.script)
    assert junit in job.artifacts or f"{Path(junit).parent}" in job.artifacts
    if job.name.startswith("git"):
        assert "runs" in job.artifacts, "the report, the journal and the run folders"


def run(script: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script as a CI system does, in a folder that looks like a clone."""
    (folder / "onceproof").symlink_to(ROOT / "onceproof")
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_doctor_of_the_recipes_answers(tmp_path: Path) -> None:
    (command,) = {job.commands[0] for job in JOBS if len(job.commands) > 1}
    done = run(command, tmp_path)
    assert "prove can run here" in done.stdout or done.returncode == 2, done.stderr


@pytest.mark.parametrize(
    "job", [each for each in JOBS if "nightly --" in each.script], ids=lambda job: job.name
)
def test_the_night_of_each_recipe_has_a_list(job: Job, tmp_path: Path) -> None:
    """The command as it is, with --list: no cluster is started."""
    command = job.commands[-1].partition(" >")[0]
    for name, place in {
        "/opt/onceproof/onceproof": "./onceproof",
        "%S/onceproof/": "",
        'cd "$HOME/onceproof" && ': "",
    }.items():
        command = command.replace(name, place)
    done = run(f"mkdir -p .git; {command} --list", tmp_path, **{**job.variables, "MINUTES": "1"})
    assert done.returncode == 0, done.stderr
    assert re.search(r"seed \d+, 1 minutes: \d+ scenarios, one of them unsafe$", done.stdout.rstrip())


@pytest.mark.parametrize(
    ("file", "section"), [(SERVICE, "Service"), (TIMER, "Timer")], ids=lambda each: str(each)[-7:]
)
def test_units_have_keys_that_systemd_knows(file: Path, section: str) -> None:
    sections = ci_recipes.unit(file)
    assert section in sections
    assert {name: set(keys) - KEYS[name] for name, keys in sections.items()} == {
        name: set() for name in sections
    }


def systemd() -> str:
    """Return the program that checks units."""
    if (found := shutil.which("systemd-analyze")) is None:
        pytest.skip("systemd-analyze is not here (Debian: systemd): only the keys of the units were checked")
    return found


def verified(folder: Path, service: str) -> subprocess.CompletedProcess[str]:
    (folder / SERVICE.name).write_text(service, encoding="utf-8")
    shutil.copy(TIMER, folder)
    units = [str(folder / file.name) for file in (SERVICE, TIMER)]
    return subprocess.run(
        [systemd(), "verify", *units], capture_output=True, text=True, timeout=120, check=False
    )


def test_systemd_accepts_the_units_and_no_damaged_one(tmp_path: Path) -> None:
    here = SERVICE.read_text(encoding="utf-8").replace("/opt/onceproof", str(ROOT))
    done = verified(tmp_path, here)
    assert (done.returncode, "onceproof" in done.stderr) == (0, False), done.stderr
    assert "KillsMode" in verified(tmp_path, here.replace("KillMode=", "KillsMode=")).stderr
    assert verified(tmp_path, here.replace(str(ROOT), "/nowhere")).returncode != 0


def test_the_timer_has_a_time_that_systemd_reads() -> None:
    (time,) = ci_recipes.unit(TIMER)["Timer"]["OnCalendar"]
    for given, code in ((time, 0), (time.replace("22", "25"), 1)):
        done = subprocess.run([systemd(), "calendar", given], capture_output=True, timeout=60, check=False)
        assert done.returncode == code, given


def cron_problems(line: str) -> list[str]:
    """Return what is wrong with the times of a cron line: numbers, `*`, lists, ranges and steps are known."""
    *times, command = line.split(None, 5)
    found = [] if len(times) == len(CRON_FIELDS) else [f"{len(times)} fields"]
    for text, (least, most) in zip(times, CRON_FIELDS, strict=False):
        for part in text.split(","):
            numbers = re.fullmatch(r"(?:\*|(\d+)(?:-(\d+))?)(?:/(\d+))?", part)
            if numbers is None or not all(least <= int(n) <= most for n in numbers.groups()[:2] if n):
                found.append(part)
    return found + (["a bare %"] if re.search(r"(?<!\\)%", command) else [])


def test_the_cron_line_has_five_times_and_a_command() -> None:
    lines = [
        line for line in CRON.read_text(encoding="utf-8").splitlines() if not re.match(r"#|[A-Z]+=|$", line)
    ]
    assert [cron_problems(line) for line in lines] == [[]]
    assert cron_problems("60 22 * * 1-9 date +%F") == ["60", "1-9", "a bare %"]
    assert cron_problems("0 22 * * ./onceproof") == ["4 fields"]


def test_no_recipe_names_a_host() -> None:
    for file in sorted(FOLDER.iterdir()):
        text = file.read_text(encoding="utf-8")
        assert not re.findall(r"https?:|\b[\w-]+\.(?:com|org|io|net|dev)\b", text), file.name
