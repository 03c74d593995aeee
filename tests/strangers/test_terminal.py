"""TRUST S4: what is printed from files never steers the terminal."""

from __future__ import annotations

import json
from pathlib import Path
from unittest.mock import patch

import pytest

from harness.cli import main
from harness.errors import UsageError
from harness.ledger.rundir import read_json, write_json
from harness.runtime.terminal import printable
from reports.model import RunReport
from reports.summary import table
from tests.strangers.folders import clean, judged

Capture = pytest.CaptureFixture[str]
# Clear the screen, change the title, go to another line, write right to left, an 8-bit escape, a line separator.
EVIL = "a\x1b[2J\x1b]0;x\x07b\r\nonceproof: HELD\u202egnp\x9b31m\u2028\x00\ud800c"


@pytest.mark.parametrize(
    "code", [*range(0x20), *range(0x7F, 0xA0), 0x200E, 0x202E, 0x2066, 0x2028, 0xD800, 0xFEFF]
)
def test_each_character_that_a_terminal_obeys_is_escaped(code: int) -> None:
    assert printable(f"a{chr(code)}b").isprintable()
    assert printable(f"a{chr(code)}b").isascii()


def test_ordinary_text_is_unchanged() -> None:
    assert printable("größe 数 ✓ … – key=k1") == "größe 数 ✓ … – key=k1"


def safe(text: str) -> bool:
    return all(one.isprintable() for one in text.split("\n"))


def test_tables_and_explanations_escape_what_files_say(tmp_path: Path, capsys: Capture) -> None:
    evil = EVIL.replace("\ud800", "")
    run = judged(clean(tmp_path))
    manifest, found = read_json(run.manifest, ""), read_json(run.reconciled, "")
    manifest["scenario"] |= {"name": evil, "fault": evil}
    write_json(run.manifest, manifest | {"topic": evil})
    lost = {"anomaly": "lost", "text": evil, "messages": ["producer-1.0-1"], "evidence": {evil: evil}}
    found |= {"run_id": evil, "findings": [lost], "counts": found["counts"] | {"lost": 1}}
    write_json(run.reconciled, found)
    verdict = read_json(run.verdict, "")
    verdict |= {"verdict": "VIOLATED", "violations": [{"anomaly": "lost", "count": 1, "reason": evil}]}
    write_json(run.verdict, verdict | {"inconclusive": [evil]})
    events = run.ledger / "harness.events"
    window = {
        "t": 1_000_000_000_000,
        "event": "window",
        "window": 7,
        "step": "open",
        "fault": evil,
        "target": evil,
    }
    events.write_text(json.dumps(window | {"nodes": [evil]}) + "\n" + events.read_text())
    for words in (
        ["explain"],
        ["explain", "--message", "producer-1.0-1"],
        ["explain", "--position", "0/0/1"],
    ):
        assert main([*words, str(run.path)]) == 0
        said = capsys.readouterr()
        assert safe(said.out), said.out
        assert "\\x1b[2J" in said.out
        assert "onceproof: HELD" not in said.out.splitlines()
    assert main(["report", str(run.path), "--out", str(tmp_path / "r.html")]) == 0
    assert safe(capsys.readouterr().out)
    shown = table([RunReport.read(run)])
    assert safe(shown)
    assert "\x1b" not in table([RunReport.read(run)], colour=False)


def test_an_error_is_one_line_whatever_is_in_it(capsys: Capture) -> None:
    with patch("harness.commands.doctor.run", side_effect=UsageError(EVIL)):
        assert main(["doctor"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said[:-1].isprintable()
