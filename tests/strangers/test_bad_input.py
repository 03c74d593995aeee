"""Bad input to reconcile, report and explain: each is one line on stderr and exit code 2, never a traceback.

TRUST S1 and section 5. Nothing here starts Spark: what is wrong is said before.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.cli import main
from harness.errors import LedgerError
from harness.ledger import reading
from harness.ledger.literal_run import LiteralRun
from harness.ledger.rundir import RunDir, read_json, write_json
from harness.reconcile.seal.seal import seal
from tests.strangers.folders import clean, judged

Capture = pytest.CaptureFixture[str]
CODE = "x', reflect('java.lang.System','load','/tmp/evil.so'), 'x"


def change(run: RunDir, **changes: Any) -> None:
    write_json(run.manifest, {**read_json(run.manifest, ""), **changes})


def change_scenario(run: RunDir, **changes: Any) -> None:
    manifest = read_json(run.manifest, "")
    kept = {name: value for name, value in {**manifest["scenario"], **changes}.items() if value is not ...}
    write_json(run.manifest, {**manifest, "scenario": kept})


def raw(run: RunDir, text: str) -> None:
    run.manifest.write_text(text, encoding="utf-8")


def rename_value(run: RunDir, old: str, new: str) -> None:
    """Write the manifest as text: for values that a JSON writer refuses to write."""
    text = run.manifest.read_text(encoding="utf-8")
    assert old in text
    raw(run, text.replace(old, new))


def folder_instead(path: Path) -> None:
    path.unlink()
    path.mkdir()


MANIFESTS: dict[str, tuple[Callable[[RunDir], object], str]] = {
    "guarantee missing": (lambda run: change_scenario(run, guarantee=...), "scenario.guarantee is missing"),
    "guarantee unknown": (lambda run: change_scenario(run, guarantee="twice"), "scenario.guarantee is 'twice'"),
    "mode unknown": (lambda run: change_scenario(run, mode=["at_least_once"]), "scenario.mode is list of 1"),
    "expected unknown": (lambda run: change_scenario(run, expected="MAYBE"), "scenario.expected is 'MAYBE'"),
    "no scenario": (lambda run: change(run, scenario=None), "scenario is None"),
    "consumers a list": (lambda run: change_scenario(run, consumers=[]), "scenario.consumers is []"),
    "isolation with code": (
        lambda run: change_scenario(run, consumers={"isolation": CODE}),
        "scenario.consumers.isolation is",
    ),
    "transform a text": (lambda run: change(run, transform="twice"), "transform is 'twice'"),
    "transform with an unknown field": (
        lambda run: change(run, transform={"most": 2, "poison_share": 0.0, "secret": 3}),
        "transform.'secret' is 3",
    ),
    "topics null": (lambda run: change(run, topics=None), "topics is None"),
    "topics a number": (lambda run: change(run, topics=3), "topics is 3"),
    "topics a text": (lambda run: change(run, topics="orders"), "topics is 'orders'"),
    "topics empty": (lambda run: change(run, topics=[]), "topics is []"),
    "clock infinite": (lambda run: rename_value(run, '"monotonic_ns": 10', '"monotonic_ns": 1e999, "x": 10'), "1e999"),
    "clock NaN": (lambda run: rename_value(run, '"monotonic_ns": 10', '"monotonic_ns": NaN, "x": 10'), "NaN"),
    "clock a text": (lambda run: change(run, clock={"monotonic_ns": "5"}), "clock.monotonic_ns is '5'"),
    "clock beyond 64 bits": (lambda run: change(run, clock={"monotonic_ns": 1 << 70}), "64 bits"),
    "run_id a lone surrogate": (lambda run: rename_value(run, '"run_id": "', '"run_id": "\\ud800'), "surrogate"),
    "run_id a list": (lambda run: change(run, run_id=[1]), "run_id is list of 1"),
    "a name twice": (lambda run: rename_value(run, '"run_id"', '"topic": "x", "run_id"'), "'topic' occurs twice"),
    "another version": (lambda run: change(run, version=99), "ledger version 99, this onceproof reads"),
    "version true": (lambda run: change(run, version=True), "ledger version True"),
    "deep": (lambda run: raw(run, "[" * 100_000), "nested deeper"),
    "deep, but not for the parser": (lambda run: raw(run, '{"a":' * 90 + "1" + "}" * 90), "nested deeper"),
    "a list": (lambda run: raw(run, "[]"), "a JSON object is expected"),
    "empty": (lambda run: raw(run, ""), "not JSON"),
    "not UTF-8": (lambda run: run.manifest.write_bytes(b'{"a": "\xff"}'), "is not UTF-8"),
    "UTF-16": (lambda run: run.manifest.write_bytes("{}".encode("utf-16")), "is not UTF-8"),
    "a folder": (lambda run: folder_instead(run.manifest), "manifest.json: not a file"),
}  # fmt: skip


def one_line(capsys: Capture, expected: str) -> None:
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("onceproof: ")
    assert said.err.count("\n") == 1, said.err
    assert expected in said.err
    assert said.err.isprintable() or said.err[:-1].isprintable()


@pytest.mark.parametrize(("damage", "expected"), MANIFESTS.values(), ids=MANIFESTS)
def test_a_bad_manifest_is_one_line_for_every_command(
    damage: Callable[[RunDir], object], expected: str, tmp_path: Path, capsys: Capture
) -> None:
    run = judged(clean(tmp_path))
    damage(run)
    for words in (
        ["reconcile", "--seal-only", str(run.path)],
        ["report", str(run.path), "--out", str(tmp_path / "report.html")],
        ["explain", str(run.path)],
        ["explain", str(run.path), "--message", "producer-1.0-1"],
    ):
        assert main(words) == 2, words
        one_line(capsys, expected)
    assert not (tmp_path / "report.html").exists()


def line(**fields: Any) -> str:
    return json.dumps({"t": 1_000_000_000_000, "writer": "harness", **fields})


EVENTS: dict[str, tuple[str, str]] = {
    "time beyond 64 bits": (line(event="step", t=1 << 80), "64 bits"),
    "time of another century": (line(event="step", t=1 << 60), "a week"),
    "time true": (line(event="step", t=True), "t is True"),
    "window a text": (line(event="window", window="first", step="open"), "window is 'first'"),
    "window infinite": (line(event="window", window=0, step="open").replace("0,", "1e999,"), "1e999"),
    "offsets a list": (line(event="commit", offsets=[1], outcome=1), "offsets is list of 1"),
    "offset a text": (line(event="commit", offsets={"0": "7"}, outcome=1), "offsets['0'] is '7'"),
    "a partition with a sign": (line(event="commit", offsets={"-1": 7}, outcome=1), "'-1'"),
    "outcome unknown": (line(event="commit", offsets={}, outcome=7), "outcome is 7"),
    "partitions a text": (line(event="assignment", how="assigned", partitions="012"), "partitions is '012'"),
    "an unknown kind of assignment": (
        line(event="assignment", how="taken", partitions=[]),
        "how is 'taken'",
    ),
    "session negative": (
        line(event="session", session=-1, producer="p", incarnation=0, acks="all"),
        "session is -1",
    ),
    "producer with marks": (
        line(event="session", session=9, producer="\x01", incarnation=0, acks="all"),
        "producer",
    ),
    "isolation with code": (line(event="observer", isolation=CODE), "isolation is"),
    "kind a list": (line(event=["step"]), "event is list of 1"),
    "kind torn": (line(event="torn", line=3), "event is 'torn'"),
    "another writer": (line(event="step", writer="../../etc/passwd"), "writer is '../../etc/passwd'"),
    "a number": ("7", "not a ledger line"),
    "deep": ("[" * 100_000, "nested deeper"),
    "a name twice": ('{"t": 5, "t": 6, "event": "step"}', "'t' occurs twice"),
    "a lone surrogate": ('{"t": 5, "event": "\\udfff"}', "surrogate"),
}


@pytest.mark.parametrize(("text", "expected"), EVENTS.values(), ids=EVENTS)
def test_a_bad_event_is_one_line(text: str, expected: str, tmp_path: Path, capsys: Capture) -> None:
    run = clean(tmp_path)
    path = run.ledger / "harness.events"
    path.write_text(text + "\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    assert main(["reconcile", "--seal-only", str(run.path)]) == 2
    one_line(capsys, expected)
    assert not run.tables.exists()
    if "a week" not in expected:
        assert main(["explain", str(run.path), "--message", "producer-1.0-1"]) == 2
        one_line(capsys, expected)


def test_a_line_without_an_end_is_not_read_whole(tmp_path: Path) -> None:
    run = clean(tmp_path)
    path = run.ledger / "harness.events"
    path.write_bytes(b"[" * 5000)
    with pytest.raises(LedgerError, match="longer than 1000 bytes"):
        list(reading.read_events(path, most_line=1000))


# --- what is at a place of the run folder ---


def _swap_for_link(path: Path, target: Path) -> None:
    if path.is_dir():
        path.rename(target)
    elif path.exists():
        path.replace(target)
    path.symlink_to(target)


PLACES = {
    "manifest.json": "a symbolic link",
    "ledger": "a symbolic link",
    "ledger/harness.events": "a symbolic link",
    "ledger/producer-1.0.1.attempts": "a symbolic link",
    "ledger/consumer-1.0.deliveries": "a symbolic link",
    "ledger/final-reader.read_committed.log": "a symbolic link",
    "tables": "a symbolic link",
    "findings.parquet": "a symbolic link",
    "reconciled.json": "a symbolic link",
    "verdict.json": "a symbolic link",
}


@pytest.mark.parametrize("name", PLACES)
def test_a_link_is_neither_followed_nor_replaced(name: str, tmp_path: Path, capsys: Capture) -> None:
    run = judged(clean(tmp_path / "runs"))
    target = tmp_path / "elsewhere"
    place = run.path / name
    _swap_for_link(place, target)
    if not target.exists():
        target.mkdir()
        (target / "keep").write_text("mine")
    before = sorted(target.rglob("*")) if target.is_dir() else target.read_bytes()
    assert main(["reconcile", "--seal-only", str(run.path)]) == 2
    one_line(capsys, f"{place}: a symbolic link, which is not followed")
    assert main(["explain", str(run.path), "--message", "producer-1.0-1"]) == 2
    one_line(capsys, f"{place}: a symbolic link, which is not followed")
    assert place.is_symlink()
    assert before == (sorted(target.rglob("*")) if target.is_dir() else target.read_bytes())


OTHER_KINDS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "findings.parquet a file": ("findings.parquet", lambda path: path.write_text("x")),
    "tables a file": ("tables", lambda path: path.write_text("x")),
    "verdict.json a folder": ("verdict.json", Path.mkdir),
    "reconciled.json a pipe": ("reconciled.json", os.mkfifo),
    "events a folder": ("ledger/other.events", Path.mkdir),
    "events a pipe": ("ledger/other.events", os.mkfifo),
    "deliveries a folder": ("ledger/other.deliveries", Path.mkdir),
    "a name with an escape sequence": ("ledger/\x1b[2J.events", lambda path: path.write_text("")),
    "a name that is not UTF-8": ("ledger/\udcff.events", lambda path: path.write_text("")),
    "session number in other digits": (
        "ledger/producer-1.0.\u00b2.attempts",
        lambda path: path.write_text(""),
    ),
}


@pytest.mark.parametrize(("name", "make"), OTHER_KINDS.values(), ids=OTHER_KINDS)
def test_only_plain_files_are_read(
    name: str, make: Callable[[Path], object], tmp_path: Path, capsys: Capture
) -> None:
    run = clean(tmp_path)
    make(run.path / name)
    for words in (["reconcile", "--seal-only"], ["explain", "--message", "producer-1.0-1"]):
        assert main([*words, str(run.path)]) == 2
        one_line(capsys, "")


def test_drafts_are_never_written_through_a_link(tmp_path: Path) -> None:
    target = tmp_path / "mine"
    target.mkdir()
    (target / "keep").write_text("kept")
    run = clean(tmp_path / "runs")
    (run.path / f".tables.{os.getpid()}").symlink_to(target)
    with pytest.raises(LedgerError, match="exists and cannot be removed"):
        seal(run)
    (run.path / f".verdict.json.{os.getpid()}").symlink_to(target / "keep")
    write_json(run.verdict, {"verdict": "HELD"})
    assert (target / "keep").read_text() == "kept"
    assert [path.name for path in target.iterdir()] == ["keep"]
    assert not run.verdict.is_symlink()


def test_no_ledger_is_one_line(tmp_path: Path, capsys: Capture) -> None:
    run = judged(clean(tmp_path / "runs"))
    run.ledger.rename(tmp_path / "gone")
    for words in (["report", "--out", str(tmp_path / "r.html")], ["reconcile", "--seal-only"], ["explain"]):
        assert main([*words, str(run.path)]) == 2
        one_line(capsys, "ledger: there is no such folder")


# --- results ---

RESULTS: dict[str, tuple[str, Callable[[dict[str, Any]], object]]] = {
    "reconciled empty": ("reconciled", lambda stored: {}),
    "verdict empty": ("verdict", lambda stored: {}),
    "counts with texts": ("reconciled", lambda stored: stored | {"counts": {"lost": "many"}}),
    "counts negative": ("reconciled", lambda stored: stored | {"counts": {"lost": -1}}),
    "compared a list": ("reconciled", lambda stored: stored | {"compared": []}),
    "findings without texts": ("reconciled", lambda stored: stored | {"findings": [{"anomaly": "lost"}]}),
    "a finding in another time": (
        "reconciled", lambda stored: stored | {"findings": [{"anomaly": "lost", "text": "", "t_s": "x"}]},
    ),
    "an endless timeline": (
        "reconciled", lambda stored: stored | {"timeline": {"bucket_s": 0.001, "t_s": [0, 9e6], "acked": [1, 1]}},
    ),
    "counted with texts": ("verdict", lambda stored: stored | {"counted": ["lost"]}),
    "violations a text": ("verdict", lambda stored: stored | {"violations": "lost"}),
    "inconclusive a number": ("verdict", lambda stored: stored | {"inconclusive": 3}),
    "verdict a list": ("verdict", lambda stored: stored | {"verdict": ["HELD"]}),
}  # fmt: skip


@pytest.mark.parametrize(("name", "damage"), RESULTS.values(), ids=RESULTS)
def test_bad_results_are_one_line(
    name: str, damage: Callable[[dict[str, Any]], Any], tmp_path: Path, capsys: Capture
) -> None:
    run = judged(clean(tmp_path))
    path: Path = getattr(run, name)
    write_json(path, damage(read_json(path, "")))
    for words in (["report", "--out", str(tmp_path / "r.html")], ["explain"]):
        assert main([*words, str(run.path)]) == 2
        one_line(capsys, f"{name}.json: ")


def test_findings_that_are_no_parquet_are_one_line(tmp_path: Path, capsys: Capture) -> None:
    run = judged(clean(tmp_path))
    (run.findings / "findings.parquet").write_bytes(b"PAR1" + b"\xff" * 100 + b"PAR1")
    assert main(["explain", str(run.path), "--message", "producer-1.0-1"]) == 2
    one_line(capsys, "findings.parquet: cannot be read")


def test_findings_behind_a_link_are_not_read(tmp_path: Path, capsys: Capture) -> None:
    run, other = judged(clean(tmp_path / "runs")), tmp_path / "other.parquet"
    other.write_bytes((run.findings / "findings.parquet").read_bytes())
    (run.findings / "more.parquet").symlink_to(other)
    assert main(["explain", str(run.path), "--message", "producer-1.0-1"]) == 2
    one_line(capsys, "more.parquet: a symbolic link")


# --- attempts that were cut ---


def test_explain_refuses_truncated_attempts(tmp_path: Path, capsys: Capture) -> None:
    run = clean(tmp_path)
    path = run.ledger / "producer-1.0.1.attempts"
    path.write_bytes(path.read_bytes()[:480])
    assert main(["explain", str(run.path), "--message", "producer-1.0-12"]) == 2
    one_line(capsys, "producer-1.0.1.attempts: truncated")


def test_explain_says_that_no_attempt_is_there(tmp_path: Path, capsys: Capture) -> None:
    built = LiteralRun(tmp_path)
    built.session(1)
    built.write(1, 3)
    record = built.log[-1]
    built.sent.pop()
    run = built.finish()
    assert main(["explain", str(run.path), "--message", f"producer-1.0-{record.seq}"]) == 0
    assert "none is in the ledger: it was never attempted (a phantom)" in capsys.readouterr().out
