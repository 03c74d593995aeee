"""The journal of a night: one line per event, on the disk before the next event.

After a SIGKILL the state of the night is exactly what its whole lines say; a torn last line is ignored.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.contracts import Verdict
from harness.errors import LedgerError, UsageError
from harness.expectation import Standing
from harness.nights.coverage import Exercised
from harness.nights.plan import Plan
from harness.nights.resources import UNITS, Sample

NIGHTS = ".nights"  # in the folder of the runs
FILE = "journal.jsonl"
_MOST_BYTES = 1 << 28


@dataclass
class NightState:
    """The events of a night, by scenario where they are about one."""

    plan: Plan
    used_s: float = 0.0  # of the time of the night, in all its sessions
    begun: list[str] = field(default_factory=list)
    executed: dict[str, str] = field(default_factory=dict)  # run folders
    seconds: dict[str, float] = field(default_factory=dict)
    kafka: dict[str, str] = field(default_factory=dict)  # releases, as the clusters reported them
    judged: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    troubles: dict[str, str] = field(default_factory=dict)  # stuck, broken or not reconciled
    replayed: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    minimised: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    cut: list[str] = field(default_factory=list)  # begun when the program was killed, and run again
    leaks: list[str] = field(default_factory=list)
    clusters: int = 0
    resources: list[Sample] = field(default_factory=list)
    reduced: list[str] = field(default_factory=list)  # run folders, to stay within the disk budget
    ended: bool = False

    def apply(self, event: Mapping[str, Any]) -> None:
        """Update the state by one event of the journal."""
        name = str(event.get("scenario", ""))
        self.used_s = max(self.used_s, float(event.get("used_s", 0.0)))
        match event["event"]:
            case "session":
                self.cut += [each for each in self.unfinished if each not in self.cut]
                self.begun = [each for each in self.begun if each not in self.unfinished]
            case "began":
                self.begun.append(name)
            case "executed":
                self.executed[name], self.seconds[name] = str(event["run_dir"]), float(event["seconds"])
                self.kafka[name] = str(event.get("kafka", ""))
            case "judged":
                self.judged[name] = self._judgement(event)
            case "skipped":
                self.skipped[name] = str(event["reason"])
            case "trouble":
                self.troubles[name] = str(event["text"])
                if event.get("run_dir"):
                    self.executed.setdefault(name, str(event["run_dir"]))
            case "replayed":
                self.replayed[name] = event
            case "minimised":
                self.minimised[name] = event
            case "cluster":
                self.clusters += 1
                self.leaks += list(event["leaks"])
            case "resources":
                self.resources.append({name: float(event[name]) for name in ("used_s", *UNITS)})
            case "reduced":
                self.reduced += [str(each) for each in event["runs"]]
            case "ended":
                self.ended = True
            case _:
                raise LedgerError(
                    f"journal of a night: unknown event {event['event']!r}; use the onceproof that wrote it"
                )

    def _judgement(self, event: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the checked fields of a judged run: readers of a state rely on them."""
        if event["scenario"] not in {each.name for each in self.plan.scenarios}:
            raise ValueError(f"{event['scenario']!r:.80} is not in its plan")
        return {
            "verdict": str(event["verdict"]),
            "standing": str(event["standing"]),
            "anomalies": {str(name): int(count) for name, count in event["anomalies"].items()},
            "bitten": [bool(each) for each in event["bitten"]],
            "run_dir": str(event["run_dir"]),
        }

    @property
    def done(self) -> set[str]:
        """The scenarios that are never run again."""
        return {*self.executed, *self.skipped, *self.troubles}

    @property
    def unfinished(self) -> list[str]:
        return [name for name in self.begun if name not in self.done]

    @property
    def to_judge(self) -> dict[str, str]:
        """The folders of runs that were executed and not judged."""
        closed = {*self.judged, *self.troubles}
        return {name: path for name, path in self.executed.items() if name not in closed}

    @property
    def canary_found(self) -> bool:
        return self.judged.get(self.plan.canary, {}).get("standing") == Standing.AS_PROMISED

    @property
    def findings(self) -> list[str]:
        """The scenarios that showed an anomaly that their mode forbids, in order; the canary is not among them."""
        return [name for name, event in self.judged.items() if event["standing"] == Standing.BROKEN]

    @property
    def inconclusive(self) -> list[str]:
        unproven = [name for name, event in self.judged.items() if event["standing"] == Standing.UNPROVEN]
        return [*unproven, *self.troubles]

    def exercised(self) -> list[Exercised]:
        """Return the judged runs, for the coverage."""
        by_name = {scenario.name: scenario for scenario in self.plan.scenarios}
        return [
            Exercised(
                by_name[name],
                tuple(event["bitten"]),
                event["verdict"] != Verdict.INCONCLUSIVE,
                self.kafka.get(name, ""),
            )
            for name, event in self.judged.items()
        ]


class NightJournal:
    """Appends events to the journal of one night and keeps its state."""

    def __init__(self, file: Path, state: NightState) -> None:
        self.file, self.state = file, state
        self._before_s, self._began = state.used_s, time.monotonic()

    @classmethod
    def begin(cls, runs: Path, plan: Plan) -> NightJournal:
        """Make the journal of a new night, with its plan as the first line."""
        folder = runs / NIGHTS / f"{time.strftime('%Y%m%d-%H%M%S')}-{plan.seed}"
        folder.mkdir(parents=True)
        journal = cls(folder / FILE, NightState(plan))
        journal._append({"event": "night", **plan.as_data()})
        return journal

    @classmethod
    def resume(cls, runs: Path) -> NightJournal:
        """Open the journal of the newest night that has not ended; scenarios that were cut will run again."""
        for file in sorted((runs / NIGHTS).glob(f"*/{FILE}"), reverse=True):
            state = read(file)
            if not state.ended:
                _drop_torn_line(file)
                journal = cls(file, state)
                journal.write("session")
                return journal
        raise UsageError(f"--resume: no unfinished night in {runs}; start one without --resume")

    @property
    def used_s(self) -> float:
        return self._before_s + time.monotonic() - self._began

    def write(self, event: str, **fields: Any) -> None:
        line = {"event": event, "used_s": round(self.used_s, 3), **fields}
        self._append(line)
        self.state.apply(json.loads(json.dumps(line)))

    def _append(self, line: Mapping[str, Any]) -> None:
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())


def read(file: Path) -> NightState:
    """Return the state that the lines of a journal describe."""
    if file.stat().st_size > _MOST_BYTES:
        raise LedgerError(f"{file}: larger than {_MOST_BYTES} bytes; is this the journal of a night?")
    lines = file.read_bytes().split(b"\n")[:-1]  # without a torn last line
    try:
        return state_of(json.loads(line) for line in lines)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LedgerError(f"{file}: not the journal of a night: {error!r}; remove its folder") from error


def state_of(events: Iterable[Mapping[str, Any]]) -> NightState:
    state: NightState | None = None
    for event in events:
        if state is None:
            state = NightState(Plan.of(event))
        else:
            state.apply(event)
    if state is None:
        raise ValueError("it is empty")
    return state


def nights(runs: Path) -> Iterator[NightState]:
    """Yield all nights in a folder of runs, the newest one first; skip journals that cannot be read."""
    for file in sorted((runs / NIGHTS).glob(f"*/{FILE}"), reverse=True):
        with suppress(LedgerError, UsageError, OSError):
            yield read(file)


def earlier(runs: Path) -> list[Exercised]:
    """Return the judged runs of all nights in a folder of runs."""
    return [each for state in nights(runs) for each in state.exercised()]


def _drop_torn_line(file: Path) -> None:
    content = file.read_bytes()
    if (whole := content.rfind(b"\n") + 1) < len(content):
        with file.open("r+b") as torn:
            torn.truncate(whole)
