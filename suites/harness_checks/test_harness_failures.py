"""The harness itself fails during real runs: it never blames Kafka, and no such run is HELD.

In every case the log is clean: Kafka did nothing wrong. Accepted are INCONCLUSIVE with a reason that names the failure, and a
ledger that is refused in one line. VIOLATED would be a false alarm, HELD a verdict without evidence.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from harness.assessment import assess
from harness.campaign import Campaign, Result
from harness.contracts import Cluster, Lane, Mode, Verdict
from harness.errors import LedgerError, OnceproofError
from harness.ledger.journal import REGION_BYTES
from harness.ledger.rows import DELIVERY
from harness.ledger.rundir import RunDir
from harness.reconcile.spark.session import spark
from harness.running.steps import STEPS
from harness.scenario import Scenario
from harness.testing.small_disk import mounted_small_disk
from suites.harness_checks.harness_failures import (
    CLEAN,
    after_first_rows,
    at_once,
    during,
    fill_disk,
    kill_worker,
    while_producing,
)

ROOT = Path(__file__).resolve().parents[2]
Act = Callable[[RunDir], str]
FAILURES: dict[str, tuple[Scenario, Act, str]] = {  # the failure, and the word that a reason has to contain
    "reader_before_reading": (CLEAN, kill_worker("final-reader", when=at_once), "final-reader"),
    "reader_while_reading": (
        CLEAN,
        kill_worker("final-reader", when=after_first_rows("read_uncommitted")),
        "final-reader",
    ),
    "reader_while_reading_committed": (
        replace(CLEAN, mode=Mode.EXACTLY_ONCE),
        kill_worker("final-reader", when=after_first_rows("read_committed")),
        "final-reader",
    ),
    "observer": (
        replace(CLEAN, observed=True),
        kill_worker("observer-committed", when=while_producing),
        "observer-committed",
    ),
    "consumer": (CLEAN, kill_worker("consumer-1", when=while_producing), "consumer-1"),
    "producer": (CLEAN, kill_worker("producer-1", when=while_producing), "producer-1"),
    "transactional_producer": (
        replace(CLEAN, mode=Mode.EXACTLY_ONCE),
        kill_worker("producer-1", when=while_producing),
        "producer-1",
    ),
}


# The final reader, an observer and a worker under test; each case takes some ten seconds.
IN_CI = ("reader_while_reading_committed", "observer", "producer")


def unproven(result: Result, word: str) -> None:
    """Check that the run is INCONCLUSIVE and that a reason names the failure."""
    assert result.verdict is Verdict.INCONCLUSIVE, result.explain()
    assert any(word in reason for reason in result.judgement.inconclusive), result.explain()


def judged_again(run: RunDir) -> str:
    """Return the verdict on the current files of a run, or `refused` with the reason."""
    try:
        _, judgement = assess(run, spark())
    except LedgerError as error:
        return f"refused: {error}"
    return f"{judgement.verdict}: {'; '.join(judgement.inconclusive)}"


def is_unproven(outcome: str) -> bool:
    return outcome.startswith(("refused: ", f"{Verdict.INCONCLUSIVE}: ")) and not outcome.endswith(": ")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.smoke if name in IN_CI else pytest.mark.conformance)
        for name in FAILURES
    ],
)
def test_a_worker_killed_from_outside_makes_the_run_inconclusive(
    name: str, campaign: Campaign, request: pytest.FixtureRequest
) -> None:
    scenario, act, word = FAILURES[name]
    named = replace(scenario, name=f"failing-{name}")
    with during(named, Path(request.config.getoption("--runs")), act):
        result = campaign.run(named).result()
    unproven(result, word)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system; workers reserve 3 MiB for each session."""
    with mounted_small_disk(tmp_path / "small", 48) as place:
        yield place


@pytest.mark.smoke
def test_a_full_disk_is_never_a_violation(cluster: Cluster, small_disk: Path) -> None:
    """TRUST R3, T1: the written part is judged again once there is room, and proves nothing."""
    scenario = replace(CLEAN, name="full-disk", produce_s=6.0)
    # An OnceproofError is accepted; any other error fails this test.
    with (
        Campaign(cluster, small_disk) as campaign,
        during(scenario, small_disk, fill_disk(small_disk)),
        suppress(OnceproofError),
    ):
        campaign.run(scenario).result()
    (small_disk / "ballast").unlink()
    (folder,) = (small_disk / scenario.name).iterdir()
    outcome = judged_again(RunDir(folder))
    assert is_unproven(outcome), outcome


@pytest.mark.smoke
def test_a_broken_journal_is_refused_or_proves_nothing(
    campaign: Campaign, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """TRUST T11: every journal of a clean run, cut by a row, cut in half, emptied and deleted in turn."""
    result = campaign.run(replace(CLEAN, name="whole", observed=True)).result()
    assert result.verdict is Verdict.HELD, result.explain()
    outcomes: dict[str, str] = {}
    for journal in sorted(result.run.ledger.iterdir()):
        for how, damage in DAMAGES.items():
            broken = RunDir(tmp_path / f"{journal.name}-{how}")
            shutil.copytree(result.run.path, broken.path, ignore=shutil.ignore_patterns("logs", "tables"))
            if damage(broken.ledger / journal.name):
                outcomes[f"{journal.name} {how}"] = judged_again(broken)
            shutil.rmtree(broken.path)
    assert len(outcomes) > 3 * len(DAMAGES)
    assert not {what: outcome for what, outcome in outcomes.items() if not is_unproven(outcome)}


def _cut(journal: Path, keep: int) -> bool:
    changes = 0 <= keep < journal.stat().st_size
    if changes:
        os.truncate(journal, keep)
    return changes


def _cut_last_row(journal: Path) -> bool:
    """Cut at a boundary, where nothing looks torn: the last line of events, the last region of attempts."""
    size = journal.stat().st_size
    if journal.suffix == ".events":
        return _cut(journal, len(b"\n".join(journal.read_bytes().split(b"\n")[:-2])) + 1)
    return _cut(journal, size - (REGION_BYTES if journal.suffix == ".attempts" else DELIVERY.itemsize))


def _delete(journal: Path) -> bool:
    journal.unlink()
    return True


DAMAGES: dict[str, Callable[[Path], bool]] = {
    "without its last row": _cut_last_row,
    "cut in half": lambda journal: _cut(journal, journal.stat().st_size // 2),
    "empty": lambda journal: _cut(journal, 0),
    "deleted": _delete,
}


@pytest.mark.conformance
@pytest.mark.parametrize("step", STEPS)
def test_a_harness_killed_at_any_step_proves_nothing(cluster: Cluster, step: str, tmp_path: Path) -> None:
    """TRUST T1: the run of a killed harness is judged from its files."""
    stopped = subprocess.run(
        [sys.executable, "-m", "suites.harness_checks._stopped_run", cluster.bootstrap_servers(Lane.CONTROL), str(tmp_path), step],
        cwd=ROOT,
        check=False,
        timeout=300,
    )  # fmt: skip
    assert stopped.returncode == -signal.SIGKILL
    (folder,) = (tmp_path / CLEAN.name).iterdir()
    outcome = judged_again(RunDir(folder))
    assert is_unproven(outcome), outcome
