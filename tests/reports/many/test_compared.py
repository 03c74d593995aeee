"""Two sets are compared kind by kind, and a mark means more than noise."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.ledger.rundir import RunDir
from reports.headline import headline_of
from reports.many.compared import Compared, Kind, Measure, compared
from reports.many.comparison import Comparison
from reports.model import Report, RunReport
from tests.reports.sample import sample_runs


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[RunReport]:
    """Twelve runs of each of nine kinds, and controls."""
    made: list[RunDir] = sample_runs(tmp_path_factory.mktemp("set"), copies=12)
    return [RunReport.read(run) for run in made]


def slower(run: RunReport, times: float) -> RunReport:
    return replace(
        run, windows=tuple(replace(w, recovered_s=(w.recovered_s or 0) * times) for w in run.windows)
    )


def measure(kind: Kind, name: str) -> Measure:
    return next(each for each in kind.measures if each.name == name)


def broken(run: RunReport) -> RunReport:
    return replace(run, verdict="VIOLATED", counts={**run.counts, "lost": 3})


def test_a_set_does_not_differ_from_itself(runs: list[RunReport]) -> None:
    found = compared(runs, runs)
    assert found.differences == {}
    assert found.comparisons > 50
    assert len(found.kinds) == 9
    assert found.total.runs == (108, 108), "controls are left out"


def test_a_slower_recovery_is_marked_and_nothing_else(runs: list[RunReport]) -> None:
    found = compared(runs, [slower(run, 1.8) for run in runs])
    assert set(found.differences) == {"recovery"}
    total = measure(found.total, "recovery")
    assert total.differs
    assert total.higher
    first, second = total.values
    assert first is not None
    assert second == pytest.approx(1.8 * first)
    assert total.of == (108, 108)


def test_one_bad_run_of_twelve_is_noise_and_twelve_are_not(runs: list[RunReport]) -> None:
    kind = [run for run in runs if run.scenario == "exactly_once-kill-leader"]
    one = compared(kind, [broken(kind[0]), *kind[1:]])
    assert measure(one.total, "violated").second == "1 of 12"
    assert one.differences == {}
    every = compared(kind, [broken(run) for run in kind])
    assert {"violated", "lost"} <= set(every.differences)
    assert every.anomalies[0].first.startswith("0 of 12 (0.0%; 95% interval"), "rates have intervals"


def test_few_values_are_never_beyond_noise(runs: list[RunReport]) -> None:
    kind = [run for run in runs if run.scenario == "exactly_once-kill-leader"][:4]
    found = compared(kind, [slower(run, 100.0) for run in kind])
    assert measure(found.total, "recovery").p is None
    assert found.differences == {}


def test_another_mix_of_faults_is_no_difference(runs: list[RunReport]) -> None:
    """Slow disks recover faster than kills: a set with more of them is not a faster one."""
    kills = [run for run in runs if run.scenario == "exactly_once-kill-leader"]
    disks = [run for run in runs if run.scenario == "exactly_once-slow_disk-leader"]
    found = compared([*kills, *disks[:6]], [*kills[:6], *disks])
    first, second = measure(found.total, "recovery").values
    assert first is not None
    assert second is not None
    assert second < first / 2, "the medians differ"
    assert not measure(found.total, "recovery").differs


def test_what_only_one_set_has_is_named(runs: list[RunReport]) -> None:
    kills = [run for run in runs if run.fault == "kill-leader"]
    others = [run for run in runs if run.fault != "kill-leader"]
    found = compared(kills, others)
    assert found.kinds == ()
    assert found.only[0] == ("at-most-once, kill", "at-least-once, kill", "exactly-once, kill")
    assert len(found.only[1]) == 6


def sentence(first: list[RunReport], second: list[RunReport]) -> tuple[str, str]:
    report = Report("t", "", 7, {}, None, None, (*first, *second),
                    comparison=Comparison("a", "b", len(first)))  # fmt: skip
    head = headline_of(report)
    return head.sentence, head.tone


def test_the_headline_answers_whether_they_differ(runs: list[RunReport]) -> None:
    slow = [slower(run, 1.8) for run in runs]
    assert sentence(runs, runs) == ("No difference beyond noise between A and B", "good")
    assert sentence(runs, slow) == ("A and B differ beyond noise", "unsure")
    lost = [replace(run, verdict="VIOLATED") if run.expected == "HELD" else run for run in runs]
    assert sentence(runs, lost) == ("A and B differ beyond noise", "bad")
    kills = [run for run in runs if run.fault == "kill-leader" and not run.control]
    others = [run for run in runs if run.fault != "kill-leader" and not run.control]
    assert sentence(kills, others) == ("A and B have no kind of run in common", "unsure")


def test_unreadable_runs_are_left_out(runs: list[RunReport]) -> None:
    damaged = RunReport.unreadable(RunDir(Path("x/y")), ValueError("torn"))
    found: Compared = compared(runs, [*runs, damaged])
    assert found.total.runs == (108, 108)
    assert found.only == ((), ())
