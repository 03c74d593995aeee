"""The evidence of a hunt: one folder to attach to a bug report, with one README.

It has the README, `result.json`, and a folder for each of the first findings: a run folder that `explain` and `reconcile` read,
with the explained findings, the logs of the nodes during the run, and the lines of these logs that match the pattern of the
hunt. A hunt that found nothing has such lines of its first run, so that a reader sees what was tried.
"""

from __future__ import annotations

import re
import shutil
import tarfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from harness.campaign import Result
from harness.explain.questions import overview, overview_text
from harness.hunts.hunt import Hunt, HuntedRun, HuntResult
from harness.ledger.rundir import RunDir, write_json

MOST_FINDINGS = 5  # whose files are copied; the others are in result.json
MOST_LINES = 5000
_TIME = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\]")  # of brokers
_CLIENT_TIME = re.compile(r"%\d\|(\d+)\.(\d{3})\|")  # of librdkafka
LINES, EXPLAINED = "log-lines.txt", "explained.txt"


class EvidenceFolder:
    """A new folder below that of the hunt, named by the time of its start."""

    def __init__(self, of_hunt: Path, hunt: Hunt) -> None:
        self._hunt = hunt
        stamp = time.strftime("%Y%m%d-%H%M%S")
        self.path = of_hunt / stamp
        number = 1
        while self.path.exists():
            self.path, number = of_hunt / f"{stamp}-{number}", number + 1
        self._kept: list[str] = []

    def keep(self, run: HuntedRun, result: Result) -> None:
        """Copy the files of a finding, or the log lines of the first other run, before the run is packed."""
        if run.is_finding and len(self._kept) < MOST_FINDINGS:
            name = f"finding-{len(self._kept) + 1}"
            copy_run(result.run, self.path / name, self._hunt.log_lines)
            self._kept.append(name)
        elif run.counts and not (self.path / LINES).exists() and self._hunt.log_lines:
            lines = list(marked_lines(result.run.logs, self._hunt.log_lines))
            self.path.mkdir(parents=True, exist_ok=True)
            heading = f"Run {result.run.run_id}, seed {run.seed}: {run.verdict}"
            _write_lines(self.path / LINES, [heading, *lines])

    def write(self, result: HuntResult, versions: Mapping[str, str], command: str) -> Path:
        """Write the README and the result."""
        self.path.mkdir(parents=True, exist_ok=True)
        write_json(
            self.path / "result.json", {**result.as_data(), "versions": dict(versions), "command": command}
        )
        text = readme(result, versions, command, self._kept, (self.path / LINES).exists())
        (self.path / "README.md").write_text(text, encoding="utf-8")
        return self.path


def copy_run(run: RunDir, into: Path, log_lines: str) -> None:
    """Copy the run as a packed run folder, with its explained findings and the logs of the nodes."""
    into.mkdir(parents=True)
    for path in (run.manifest, run.reconciled, run.verdict):
        if path.exists():
            shutil.copyfile(path, into / path.name)
    if run.findings.exists():
        shutil.copytree(run.findings, into / run.findings.name)
    (into / EXPLAINED).write_text(overview_text(overview(run)) + "\n", encoding="utf-8")
    for folder, packed in ((run.ledger, run.packed_ledger), (run.logs, run.packed_logs)):
        if packed.exists():
            shutil.copyfile(packed, into / packed.name)
        elif folder.is_dir():
            _pack(folder, into / packed.name)
    if log_lines:
        _write_lines(into / LINES, marked_lines(run.logs, log_lines))


def marked_lines(logs: Path, pattern: str) -> Iterator[str]:
    """Yield the lines that match in the logs of nodes and clients, in order of time, each with the name of its writer."""
    wanted, found = re.compile(pattern), []
    for log in sorted([*logs.glob("cluster/*.log"), *logs.glob("*.out")]):
        moment = ""
        for number, line in enumerate(log.read_text(encoding="utf-8", errors="replace").splitlines()):
            moment = _moment(line) or moment
            if wanted.search(line):
                found.append((moment, log.stem, number, line))
    for moment, writer, _, line in sorted(found)[:MOST_LINES]:
        yield f"{writer:14} {line if _TIME.match(line) else f'[{moment}] {line}'}"
    if len(found) > MOST_LINES:
        yield f"… and {len(found) - MOST_LINES} more"


def _moment(line: str) -> str:
    """Return the time that a line begins with, as brokers write it; empty if it has none."""
    if stamp := _TIME.match(line):
        return stamp[1]
    if stamp := _CLIENT_TIME.match(line):
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(int(stamp[1]))) + f",{stamp[2]}"
    return ""


def readme(
    result: HuntResult, versions: Mapping[str, str], command: str, findings: list[str], has_lines: bool
) -> str:
    """Return the README of an evidence folder."""
    hunt, rate = result.hunt, result.rate
    found = ", ".join(f"{name} in {count} run(s)" for name, count in result.anomalies.items())
    rows = [
        ("findings", str(rate)),
        ("anomalies", found or "none"),
        ("runs that prove nothing, not counted", str(len(result.runs) - rate.runs)),
        ("messages attempted, acked", f"{result.total('attempted'):,}, {result.total('acked'):,}"),
        ("faults that took effect", f"{result.total('faults'):,}"),
        ("seconds of runs", f"{sum(run.seconds for run in result.runs):,.0f}"),
        ("versions", ", ".join(f"{name} {version}" for name, version in versions.items())),
    ]
    lines = [
        f"# {hunt.title}", "",
        hunt.suspicion, "",
        f"Sources: {', '.join(hunt.sources)}. It would show as {', '.join(hunt.shows)}.", "",
        "## Result", "",
        "| what | number |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows), "",
    ]  # fmt: skip
    if not findings:
        bound = f"The true rate of runs like these is at most {rate.interval[1]:.1%} (upper end of the {rate.level:.0%} interval)."
        lines += [f"Nothing was found. {bound}", ""]
    lines += [f"Not tried: {hunt.not_tried}", ""]
    lines += ["## Repeat it", "", "```", command, "```", ""]
    lines += ["A run of the same seed repeats its schedule, not its timing. Each run:", ""]
    lines += ["| seed | verdict | found | acked | faults | seconds |", "|---|---|---|---|---|---|"]
    lines += [_row(run) for run in result.runs]
    lines += ["", "## Files", "", "- `result.json`: these numbers as data"]
    if has_lines:
        lines += [
            f"- `{LINES}`: lines from the logs of nodes and clients in a run without a finding, in order of time"
        ]
    for name in findings:
        reads = f"`./onceproof explain {name}` and `./onceproof reconcile {name}` read it."
        files = f"`{EXPLAINED}`: the findings in plain sentences. `logs.tar.gz`: logs of nodes and clients during the run."
        lines.append(f"- `{name}/`: a run folder. {files} {reads}")
        lines += [f"- `{name}/{LINES}`: the lines of these logs that matter"] if hunt.log_lines else []
    return "\n".join(lines) + "\n"


def _row(run: HuntedRun) -> str:
    what = ", ".join(f"{name} {count}" for name, count in run.found.items())
    doubts = " ".join("; ".join(run.doubts[:1]).replace("|", "/").split())[:200]
    return (
        f"| {run.seed} | {run.verdict or 'broke off'} | {what or doubts or '-'} | {run.acked:,} | {run.faults} | "
        f"{run.seconds:.0f} |"
    )


def _write_lines(path: Path, lines: Iterator[str] | list[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _pack(folder: Path, archive: Path) -> None:
    with tarfile.open(archive, "w:gz") as file:
        for path in sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()):
            file.add(path, str(path.relative_to(folder)), recursive=False)
