"""The recipes of docs/ci: their jobs with the commands, variables and artifacts, as CI systems, systemd and cron read them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from configparser import ConfigParser
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "docs" / "ci"
GITHUB, GITLAB = FOLDER / "github-actions.yml", FOLDER / "gitlab-ci.yml"
SERVICE, TIMER = FOLDER / "onceproof-nightly.service", FOLDER / "onceproof-nightly.timer"
CRON = FOLDER / "onceproof.cron"


@dataclass(frozen=True)
class Job:
    """The commands of one job, in bash, and the files that it keeps."""

    name: str
    commands: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict)
    artifacts: tuple[str, ...] = ()

    @property
    def script(self) -> str:
        return "\n".join(self.commands)


def jobs() -> list[Job]:
    """Return the jobs of all recipes."""
    return [*github_jobs(), *gitlab_jobs(), service_job(), cron_job()]


def github_jobs() -> list[Job]:
    found = []
    for name, job in yaml_of(GITHUB)["jobs"].items():
        steps = job["steps"]
        uploads = [step["with"]["path"] for step in steps if "upload-artifact" in step.get("uses", "")]
        # `${{ inputs.minutes || '60' }}` is 60 on a schedule
        variables = {
            key: re.sub(r"\$\{\{.*\|\| '(.*)' }}", r"\1", str(value))
            for key, value in job.get("env", {}).items()
        }
        commands = tuple(step["run"] for step in steps if "run" in step)
        paths = tuple(path for upload in uploads for path in upload.split())
        found.append(Job(f"github {name}", commands, variables, paths))
    return found


def gitlab_jobs() -> list[Job]:
    content = yaml_of(GITLAB)
    found = []
    for name, job in content.items():
        if name.startswith(".") or "script" not in job:
            continue
        base = content[job["extends"]]
        whole = {**base, **job, "variables": {**base.get("variables", {}), **job.get("variables", {})}}
        artifacts = whole["artifacts"]
        found.append(
            Job(
                f"gitlab {name}",
                (*whole["before_script"], *whole["script"]),
                {key: str(value) for key, value in whole["variables"].items()},
                (*artifacts["paths"], artifacts["reports"]["junit"]),
            )
        )
    return found


def service_job() -> Job:
    """Return what the service starts. systemd replaces `${MINUTES}` by itself, as bash would."""
    service = unit(SERVICE)["Service"]
    variables = dict(each.split("=", 1) for each in service["Environment"])
    return _kept_where_it_says("systemd", service["ExecStart"][0], variables)


def cron_job() -> Job:
    """Return the command of the only line with a time."""
    variables: dict[str, str] = {}
    for line in CRON.read_text(encoding="utf-8").splitlines():
        if assigned := re.fullmatch(r"([A-Z_]+)=(.*)", line):
            variables[assigned[1]] = assigned[2]
        elif line and not line.startswith("#"):
            return _kept_where_it_says("cron", line.split(None, 5)[5], variables)
    raise AssertionError(f"{CRON}: no line with a time")


def _kept_where_it_says(name: str, command: str, variables: Mapping[str, str]) -> Job:
    words = shlex.split(command)
    return Job(name, (command,), variables, (words[words.index("--junit") + 1],))


def unit(file: Path) -> dict[str, dict[str, Sequence[str]]]:
    """Return the sections of a unit file: keys may occur again, and every value is a list."""
    parser = ConfigParser(strict=True, interpolation=None, delimiters=("=",), comment_prefixes=("#",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    seen: dict[str, int] = {}
    lines = []
    for line in file.read_text(encoding="utf-8").splitlines():
        key, is_set, value = line.partition("=")
        if is_set and not line.startswith("#"):
            seen[key] = seen.get(key, 0) + 1
            line = f"{key}#{seen[key]}={value}"
        lines.append(line)
    parser.read_string("\n".join(lines))
    sections: dict[str, dict[str, Sequence[str]]] = {}
    for section in parser.sections():
        made: dict[str, list[str]] = {}
        for key, value in parser[section].items():
            made.setdefault(key.partition("#")[0], []).append(value)
        sections[section] = {key: tuple(values) for key, values in made.items()}
    return sections


def yaml_of(file: Path) -> Any:
    from ruamel.yaml import YAML

    return YAML(typ="safe").load(file)
