"""A run folder from a stranger can be reconciled, judged, reported and explained safely. TRUST S1.

Hypothesis damages literal runs at random: it cuts, deletes, swaps, links and overwrites files, and replaces, removes and
repeats values and lines (mutations.py). Accepted are only
* the right verdict: that of the undamaged run, or INCONCLUSIVE;
* one clear line on stderr and exit code 2.
Never a traceback, never VIOLATED for a clean run, never HELD for one with a lost message, and nothing outside of the
folder is changed.

Left out of the comparison of verdicts, and only of that, is forgery, which no reader can detect: values replaced by others
of the same type, single bits, journals of one kind exchanged, whole journals added. Without row counts (ledger version 1)
files and lines that were removed, and row journals that were cut, belong to it as well.

`--times N` tries N cases without Spark and a tenth of that with it. How often each outcome came is printed at the end.
"""

from __future__ import annotations

import io
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from harness.cli import main
from harness.contracts import Mode
from harness.guarantees import Conditions, Rule, promise
from harness.ledger.rundir import RunDir, read_json, write_json
from harness.reconcile.seal.sealed import Sealed
from tests.reconcile.oracle import oracle_rows
from tests.strangers.folders import broken, history, judged
from tests.strangers.mutations import MUTATIONS, Mutation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WITHOUT_SPARK, WITH_SPARK, AT_ONCE = 200, 30, 30
MODES = (Mode.AT_LEAST_ONCE, Mode.EXACTLY_ONCE)
RIGHT = {"clean": {"HELD", "INCONCLUSIVE"}, "broken": {"VIOLATED", "INCONCLUSIVE"}}
COMMANDS = (
    ("reconcile", "--seal-only"), ("report",), ("explain",), ("explain", "--message", "producer-1.0-3"),
    ("explain", "--position", "0/0/2"),
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    base: str
    mode: Mode
    mutations: Sequence[Mutation]
    structural: bool
    run: RunDir


class Bench:
    """Bases to damage, and copies of them whose files are shared until they are damaged."""

    def __init__(self, root: Path) -> None:
        self._root, self._made = root, 0
        self.outside = root / "outside"
        self.outside.mkdir()
        (self.outside / "file").write_text("not yours")
        self._bases: dict[tuple[str, Mode], RunDir] = {}
        for mode in MODES:
            self._bases["clean", mode] = judged(history(root / mode, mode=mode).finish())
            self._bases["broken", mode] = judged(broken(root / mode, mode), lost=1)

    def case(self, mutations: Sequence[Mutation]) -> Case:
        (base, mode), self._made = sorted(self._bases)[self._made % len(self._bases)], self._made + 1
        run = RunDir(self._root / "copies" / base / f"case-{self._made}")
        shutil.copytree(self._bases[base, mode].path, run.path, copy_function=os.link)
        manifest = read_json(run.manifest, "")
        run.manifest.unlink()
        write_json(run.manifest, {**manifest, "run_id": f"{base}/{run.path.name}"})
        structural = [one.apply(run, self.outside) for one in mutations]
        return Case(base, mode, mutations, all(structural), run)

    def undamaged(self, mode: Mode) -> Case:
        """A copy of a clean run of this mode as it is."""
        while ((case := self.case([])).base, case.mode) != ("clean", mode):
            continue
        return case

    def untouched(self) -> bool:
        return (self.outside / "file").read_text() == "not yours"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("strangers"))


def call(*words: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(words)
    return code, out.getvalue(), err.getvalue()


def tried(times: int, check: Callable[[list[Mutation]], None]) -> None:
    """Hypothesis draws cases; the same ones each time unless there are more of them than usual."""
    settings(
        max_examples=times, deadline=None, database=None, derandomize=times <= WITHOUT_SPARK,
        suppress_health_check=list(HealthCheck), phases=[Phase.generate],
    )(given(MUTATIONS)(check))()  # fmt: skip


def answer(case: Case, words: Sequence[str], out: Path) -> str:
    """Return `shown` or `refused`, the answer of a command to a damaged folder; fail on any other."""
    more = ["--out", str(out)] if words[0] == "report" else []
    code, said, errors = call(*words, *more, str(case.run.path))
    assert all(line.isprintable() for line in (said + errors).split("\n")), (words, said, errors)
    if code == 0:
        return "shown"
    assert code == 2, (words, code)
    assert said == "", (words, said)
    assert errors.startswith("onceproof: ")
    assert errors.count("\n") == 1, (words, errors)
    return "refused"


def reported(case: Case, out: Path) -> str:
    run = json.loads(out.with_suffix(".json").read_text())["runs"][0]
    if case.structural:
        assert run["verdict"] in RIGHT[case.base], (case, run["verdict"])
    return f"report {run['verdict']}"


def without_spark(sealed: Sealed, mode: Mode, anomalies: Iterator[str]) -> str:
    """The verdict by the oracle's findings and by what sealing saw; roughly what harness.verdict does."""
    conditions = Conditions(in_flight=sealed.in_flight, topic_unchanged=sealed.topic_unchanged)
    if any(promise(name, mode, conditions).rule is Rule.FORBIDDEN for name in anomalies):
        return "VIOLATED"
    by_kind = Counter(event["event"] for event in sealed.events)
    reads = {e["isolation"] for e in sealed.events if e["event"] == "read" and e["complete"]}
    steps = {e["step"] for e in sealed.events if e["event"] == "window" and (e.get("bit") or e.get("healed"))}
    drained = by_kind["drain"] and all(e["complete"] for e in sealed.events if e["event"] == "drain")
    whole = len(reads) == 2 and drained and steps == {"bite", "healed"} and not by_kind["error"]
    return "HELD" if whole and not sealed.gaps else "INCONCLUSIVE"


def test_damaged_folders_are_read_safely_without_spark(
    bench: Bench, tmp_path: Path, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    outcomes: Counter[str] = Counter()
    left: list[tuple[Case, Sealed]] = []
    out = tmp_path / "report.html"

    def check(mutations: list[Mutation]) -> None:
        case = bench.case(mutations)
        answers = [answer(case, words, out) for words in COMMANDS]
        outcomes["cases"] += 1
        outcomes["forged"] += not case.structural
        for words, said in zip(COMMANDS, answers, strict=True):
            outcomes[
                f"{words[0]} {said}" if words[0] != "report" or said == "refused" else reported(case, out)
            ] += 1
        if answers[0] == "shown":
            left.append((case, Sealed.from_json(read_json(case.run.tables / "sealed.json", ""))))
        else:
            shutil.rmtree(case.run.path)

    tried(request.config.getoption("--times") or WITHOUT_SPARK, check)
    for first in range(0, len(left), 50):
        several = left[first : first + 50]
        found = oracle_rows([case.run for case, _ in several])
        for case, sealed in several:
            mode = Mode(case.run.read_manifest()["scenario"]["guarantee"])
            verdict = without_spark(sealed, mode, iter(anomaly for anomaly, *_ in found[case.run]))
            outcomes[f"{case.base}{'' if case.structural else ', forged'}: {verdict}"] += 1
            assert not case.structural or verdict in RIGHT[case.base], (case, verdict)
    assert bench.untouched()
    assert outcomes["reconcile refused"] > outcomes["cases"] // 5, (
        "the damage is too gentle to prove anything"
    )
    assert outcomes["reconcile shown"] > outcomes["cases"] // 20, "the damage is too hard to prove anything"
    print_outcomes(capsys, outcomes)


def test_damaged_folders_are_judged_safely(
    spark: SparkSession, bench: Bench, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    """Many at once, so that each bad run is one among others (R9), with an undamaged run of each mode among them."""
    from harness.spark_submit import judge_runs

    outcomes: Counter[str] = Counter()
    cases: list[Case] = []
    tried(
        max(WITH_SPARK, request.config.getoption("--times") // 10),
        lambda mutations: cases.append(bench.case(mutations)),
    )
    for first in range(0, len(cases), AT_ONCE):
        # A manifest that is gone makes it no run folder at all.
        several = [case for case in cases[first : first + AT_ONCE] if os.path.lexists(case.run.manifest)]
        several += [bench.undamaged(mode) for mode in MODES]
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            judge_runs([str(case.run.path) for case in several], spark, as_json=True)
        rows = [json.loads(line) for line in out.getvalue().splitlines()]
        assert len(rows) == len(several)
        unreadable = sum(row["verdict"] == "UNREADABLE" for row in rows)
        assert err.getvalue().count("onceproof: ") == unreadable == err.getvalue().count("\n") - 1
        for case, row in zip(several, rows, strict=True):
            outcomes["cases"] += 1
            outcomes[f"{case.base}{'' if case.structural else ', forged'}: {row['verdict']}"] += 1
            if case.structural and row["verdict"] != "UNREADABLE":
                assert row["verdict"] in RIGHT[case.base], (case, row)
        assert [row["verdict"] for row in rows[-len(MODES) :]] == ["HELD"] * len(MODES), rows[-len(MODES) :]
    assert bench.untouched()
    print_outcomes(capsys, outcomes)


def print_outcomes(capsys: pytest.CaptureFixture[str], outcomes: Counter[str]) -> None:
    with capsys.disabled():
        print("\ndamaged run folders: " + ", ".join(f"{name} {n}" for name, n in sorted(outcomes.items())))
