"""TRUST S1: no text of a run folder gets into the text of a query; and histories of a stranger are refused in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.cli import main
from harness.reconcile.names import Names

Capture = pytest.CaptureFixture[str]
CODE = "x', reflect('java.lang.System','load','/tmp/evil.so'), 'x"


def names(**changes: Any) -> Names:
    whole: dict[str, Any] = {
        "senders": {},
        "readers": {},
        "isolations": {1: "read_committed"},
        "unchanged": {1: True},
    }
    return Names(**(whole | changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"isolations": {1: CODE}},
        {"isolations": {1: CODE, 2: "read_committed"}},
        {"isolations": {CODE: "read_committed", 2: "read_uncommitted"}},
        {"observers": {(1, 1): CODE}},
        {"observers": {(1, CODE): "read_committed"}},
    ],
)
def test_queries_are_made_of_numbers_and_known_names_only(changes: dict[str, Any]) -> None:
    made = names(**changes)
    with pytest.raises(ValueError, match="reflect"):
        made.isolation()


def test_no_name_of_a_sender_or_reader_is_in_a_query() -> None:
    made = names(senders={(1, 1): CODE}, readers={(1, 1): CODE}, observers={(1, 1): "read_committed"})
    texts = [
        made.isolation(),
        made.observes(),
        made.sees_anything(),
        made.is_unchanged(),
        made.group_isolation(),
    ]
    assert not any("reflect" in text for text in texts)


# --- judge ---

OK = {"process": 0, "type": "ok", "f": "send", "time": 1, "ops": [["send", 0, "a", 1]]}
HISTORIES: dict[str, tuple[str, str]] = {
    "type a list": (json.dumps(OK | {"type": ["ok"]}), '"type" is list of 1: invoke, ok'),
    "type an object": (json.dumps(OK | {"type": {}}), '"type" is {}: invoke, ok'),
    "f a list": (json.dumps(OK | {"f": ["send"]}), '"f" is list of 1: send, poll'),
    "offset of 2^63": (json.dumps(OK | {"ops": [["send", 0, "a", 1 << 63]]}), "offset 9223372036854775808: 0 to"),
    "read offset of 2^63": (
        json.dumps(OK | {"f": "poll", "ops": [["poll", [[0, 1 << 63, "a"]]]]}), "[PARTITION, OFFSET, MESSAGE]",
    ),
    "time NaN": (json.dumps(OK | {"time": float("nan")}), "NaN is not a JSON number"),
    "time infinite": (json.dumps(OK).replace('"time": 1', '"time": 1e999'), "1e999 is too large"),
    "time a text": (json.dumps(OK | {"time": "1"}), "\"time\" is '1': a number is expected"),
    "a lone surrogate": (json.dumps(OK | {"process": "\ud800"}), "a lone surrogate"),
    "a name twice": (json.dumps(OK)[:-1] + ', "time": 2}', "'time' is there twice"),
    "deep": ("[" * 100_000, "nested deeper"),
    "an escape sequence": (json.dumps(OK | {"f": "\x1b[2J"}), "\"f\" is '\\x1b[2J'"),
    "a number of many digits": (json.dumps(OK).replace('"time": 1', '"time": ' + "9" * 5000), "not JSON"),
}  # fmt: skip


@pytest.mark.parametrize(("line", "expected"), HISTORIES.values(), ids=HISTORIES)
def test_a_bad_history_is_one_line_and_nothing_on_stdout(
    line: str, expected: str, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text(json.dumps(OK) + "\n" + line + "\n")
    good = tmp_path / "good.jsonl"
    good.write_text(json.dumps(OK) + "\n")
    assert main(["judge", str(good), str(path), "--json"]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert f"{path}:2: " in said.err
    assert expected in said.err
    assert said.err[:-1].isprintable()
    assert len(said.err) < 500 + len(str(path))
