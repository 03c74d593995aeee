"""A SAMPLE night: a journal as `nightly` writes it, and made-up run folders of its scenarios. Nothing here was measured."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from faults.kill import Kill
from faults.pause import Pause
from faults.sever import Sever
from faults.slow_disk import SlowDisk
from harness.contracts import Mode, Verdict
from harness.ledger.rundir import RunDir
from harness.nights.journal import NightJournal
from harness.nights.plan import Plan
from harness.scenario import Scenario
from harness.schedule import Schedule, Window
from harness.targets import follower_of, leader_of
from tests.reports.sample import sample_run

SEED = 7
SCHEDULES: tuple[Schedule, ...] = (
    (),
    (Window(Kill(), leader_of(0), 0.5, 1.5),),
    (Window(Sever(), leader_of(0), 0.5, 1.5),),
    (Window(SlowDisk(), leader_of(0), 0.5, 1.5), Window(Pause(), follower_of(0), 1.0, 2.0)),
)
TEST = (
    "def test_exactly_once_shows_no_lost(execute):\n    assert execute(Scenario(…)).verdict is Verdict.HELD\n"
)


def scenarios() -> tuple[Scenario, ...]:
    """Two modes under four schedules, and a canary as the third."""
    found = [
        Scenario(name="x", mode=mode, schedule=schedule)
        for schedule in SCHEDULES
        for mode in (Mode.AT_LEAST_ONCE, Mode.EXACTLY_ONCE)
    ]
    canary = Scenario(
        name="x", mode=Mode.AT_MOST_ONCE, schedule=SCHEDULES[1], judged_as=Mode.AT_LEAST_ONCE,
        expected=Verdict.VIOLATED, requires={"lost": 1}, control=True,
    )  # fmt: skip
    found.insert(2, canary)
    return tuple(_named(each, number) for number, each in enumerate(found, 1))


def _named(scenario: Scenario, number: int) -> Scenario:
    faults = "-".join(str(window.fault) for window in scenario.schedule) or "none"
    name = f"night-{SEED}-{number:03}-{scenario.mode}-{faults}"
    return Scenario(**{**vars(scenario), "name": name, "seed": number})


def sample_night(
    root: Path,
    planned: Sequence[Scenario] = (),
    *,
    broken: Mapping[str, Mapping[str, int]] | None = None,
    quiet: Collection[str] = (),
    blind: bool = False,
    not_reached: int = 0,
    ended: bool = True,
    text: str = "",
    minutes: float = 10.0,
) -> tuple[NightJournal, list[RunDir]]:
    """Write a night into a folder of runs.

    `broken`: anomalies by scenario; `quiet`: scenarios whose faults did not bite; `blind`: the canary was not found;
    `text` is added to texts that come from outside.
    """
    planned = planned or scenarios()
    canary = next(each.name for each in planned if each.control)
    journal = NightJournal.begin(root, Plan(SEED, minutes, tuple(planned), canary))
    made, luck = [], random.Random(SEED)
    for scenario in planned[: len(planned) - not_reached]:
        found = dict((broken or {}).get(scenario.name, {}))
        if scenario.control and not blind:
            found = dict.fromkeys(scenario.requires, 41)
        run = _run(root, scenario, luck, found, scenario.name not in quiet, text)
        made.append(run)
        for event, fields in _events(scenario, run, found, scenario.name not in quiet, blind, text):
            journal.write(event, scenario=scenario.name, **fields)
    if ended:
        journal.write("ended")
    return journal, made


def _events(
    scenario: Scenario, run: RunDir, found: Mapping[str, int], bit: bool, blind: bool, text: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    unproven = not bit and bool(scenario.schedule)
    verdict = "VIOLATED" if found else "INCONCLUSIVE" if unproven else "HELD"
    broken = found and not scenario.control
    standing = "promise violated" if broken else "not caught" if scenario.control and blind else (
        "proves nothing" if unproven else "as promised")  # fmt: skip
    yield "executed", {"run_dir": str(run.path), "seconds": 18.0}
    yield "judged", {
        "verdict": verdict, "standing": standing, "anomalies": dict(found), "run_dir": str(run.path),
        "bitten": [bit] * len(scenario.schedule),
    }  # fmt: skip
    if broken:
        yield "replayed", {"shown": 2, "conclusive": 2, "inconclusive": 0}
        yield "minimised", {
            "shows": True, "complete": True, "faults": 1, "taken": ["without pause"], "test": TEST + text,
            "rate": {"shown": 3, "conclusive": 3},
        }  # fmt: skip


def _run(
    root: Path, scenario: Scenario, luck: random.Random, found: Mapping[str, int], bit: bool, text: str
) -> RunDir:
    return sample_run(
        root, seed=luck.randrange(1000), text=text, name=scenario.name, mode=str(scenario.mode),
        judged_as=str(scenario.guarantee), fault=scenario.fault_name, expected=str(scenario.expected),
        control=scenario.control, anomalies=found, forbidden=tuple(found), required=dict(scenario.requires),
        crashed=False, bit=bit, whole=scenario.describe(),
        blows=[(str(window.fault.describe()["fault"]), str(window.on), bit) for window in scenario.schedule],
    )  # fmt: skip
