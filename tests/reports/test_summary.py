"""The summary's keys, the table's width and the exit codes are promises to scripts and terminals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.ledger.rundir import RunDir
from reports.headline import headline
from reports.model import RunReport
from reports.summary import WIDTH, closing, exit_code, read, summary, table
from tests.reports.sample import sample_runs

KEYS = ["scenario", "mode", "fault", "control", "expected", "verdict", "as_expected", "required", "found",
        "shortfalls", "attempted", "acked", "in_log",
        "delivered", "lost", "duplicated", "reordered", "unavailable_s_max", "bite", "run_dir", "software"]  # fmt: skip


@pytest.fixture
def runs(sample: list[RunDir]) -> tuple[RunReport, ...]:
    return read(sample)


def test_the_keys_of_the_summary(runs: tuple[RunReport, ...]) -> None:
    result = summary(runs, Path("report.html"), 7, {"kafka": "4.3.1"})
    assert list(result) == ["runs", "report", "seed", "versions"]
    assert (result["report"], result["seed"], result["versions"]) == ("report.html", 7, {"kafka": "4.3.1"})
    assert [list(row) for row in result["runs"]] == [KEYS] * 13


def test_a_row_says_what_was_measured(runs: tuple[RunReport, ...]) -> None:
    row = summary(runs, Path("r"), 7, {})["runs"][0]
    assert (row["mode"], row["fault"], row["control"]) == ("at_most_once", "kill-leader", False)
    assert (row["verdict"], row["expected"], row["lost"]) == ("HELD", "HELD", 214)
    assert "moved from broker 2" in row["bite"]


def test_a_count_that_was_not_taken_is_null(tmp_path: Path) -> None:
    runs = read(sample_runs(tmp_path, crashed=["no_fault"]))
    row = next(r for r in summary(runs, Path("r"), 7, {})["runs"] if r["scenario"] == "no_fault")
    assert row["verdict"] == "INCONCLUSIVE"
    assert (row["lost"], row["acked"], row["unavailable_s_max"], row["bite"]) == (None, None, None, None)


def test_a_fault_that_did_not_bite_has_no_proof(tmp_path: Path) -> None:
    runs = read(sample_runs(tmp_path, quiet=["exactly_once-kill-leader"]))
    quiet = next(r for r in runs if r.scenario == "exactly_once-kill-leader")
    assert (quiet.bite, quiet.verdict) == (None, "INCONCLUSIVE")


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        ((), 3),
        ((("HELD", "HELD"), ("VIOLATED", "VIOLATED")), 0),
        ((("HELD", "HELD"), ("HELD", "VIOLATED")), 1),
        ((("HELD", "HELD"), ("VIOLATED", "HELD")), 1),
        ((("HELD", "INCONCLUSIVE"), ("HELD", "HELD")), 3),
        ((("HELD", "INCONCLUSIVE"), ("HELD", "VIOLATED")), 1),
        ((("HELD", "INCONCLUSIVE"), ("VIOLATED", "HELD")), 1),
        ((("VIOLATED", "INCONCLUSIVE"),), 3),
    ],
    ids=str,
)
def test_exit_codes(runs: tuple[RunReport, ...], verdicts: tuple[tuple[str, str], ...], code: int) -> None:
    judged = [replace(runs[0], expected=expected, verdict=verdict) for expected, verdict in verdicts]
    assert exit_code(judged) == code


def test_the_table_fits_and_keeps_exact_numbers(runs: tuple[RunReport, ...]) -> None:
    lines = table(runs).splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert len({len(line) for line in lines[:15]}) == 1, "aligned"
    assert f"{runs[0].count('acked'):,}" in lines[2]
    assert lines[-1] == "13 of 13 runs as promised."


def test_a_table_of_huge_numbers_and_long_names_fits(runs: tuple[RunReport, ...]) -> None:
    counts = dict.fromkeys(runs[0].counts, 123_456_789_012)
    wide = replace(
        runs[0], scenario="s" * 200, fault="f" * 90, verdict="INCONCLUSIVE", mode="m" * 40, counts=counts
    )
    assert max(map(len, table([wide] * 8).splitlines())) <= WIDTH


def test_colours_only_when_asked_for(runs: tuple[RunReport, ...]) -> None:
    assert "\033" not in table(runs)
    assert "\033[32m" in table(runs, colour=True)


def test_the_closing_sentence_names_what_is_amiss(runs: tuple[RunReport, ...]) -> None:
    broken = replace(runs[0], verdict="VIOLATED")
    missed = replace(runs[9], verdict="HELD")
    assert closing([broken, *runs[1:]]) == (
        "12 of 13 runs as promised; 1 VIOLATED unexpectedly: at_most_once-kill-leader."
    )
    assert "1 did not catch what was planted: acks0_loss" in closing([missed])
    assert closing([]) == "No runs: nothing was proven."


def test_the_headline_names_the_worst(runs: tuple[RunReport, ...]) -> None:
    broken, missed = replace(runs[0], verdict="VIOLATED"), replace(runs[9], verdict="HELD")
    unproven = replace(runs[1], verdict="INCONCLUSIVE")
    assert headline(runs).sentence == "All 9 promises held"
    assert headline([*runs, broken, missed, unproven]).sentence == "A promise was violated"
    assert headline([*runs, missed, unproven]).sentence == "1 control did not catch what was planted"
    assert headline([*runs, unproven]).sentence == "1 run proved nothing, the others are as promised"
    assert headline([unproven]).sentence == headline([]).sentence == "Nothing was proven"
    assert {headline(r).tone for r in ([broken], [missed])} == {"bad"}
