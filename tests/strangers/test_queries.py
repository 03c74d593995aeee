"""TRUST S1: no text of a run folder gets into the text of a query; and histories of a stranger are refused in one line."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import polars as pl
import pytest

from harness.cli import main
from harness.reconcile.find.findings import finding
from harness.reconcile.find.known import (
    Known,
    fates_of,
    readers_table,
    runs_table,
    senders_table,
    table_of,
    without_rows,
)
from harness.reconcile.screen.transaction_fates import fates_by_events
from harness.reconcile.seal.schema import SCHEMAS

ROOT = Path(__file__).resolve().parents[2]
Capture = pytest.CaptureFixture[str]
CODE = "x', reflect('java.lang.System','load','/tmp/evil.so'), 'x"


def test_names_of_a_run_are_data_and_never_part_of_an_expression() -> None:
    known = Known(
        senders_table([(1, 7, CODE, 0)]),
        readers_table([(1, 3, CODE, "read_committed", False)]),
        runs_table([(1, True, True)]),
        without_rows("bounds"),
        fates_of(table_of(fates_by_events(SCHEMAS["transactions"].empty_table())), None),
    )
    rows = pl.DataFrame({"run": [1, 1], "session": [7, 8], "seq": [0, 1], "t": [0, 0]})
    found = finding(
        known.named(rows), "lost", offsets=["seq"], topic="0", partition="0", evidence={"who": "sender"}
    )
    assert found["messages"].to_list() == [[f"{CODE}.0-0"], ["session 8-1"]]
    assert found["evidence"].to_list()[0] == [{"key": "who", "value": f"{CODE}.0"}]


def test_expressions_of_finders_are_constants() -> None:
    """sql() is called with texts of the program alone: literals, constants, and what is made of them."""
    calls = 0
    for path in [*(ROOT / "harness/reconcile").rglob("*.py"), *(ROOT / "harness/histories").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "sql":
                calls += 1
                assert constant(node.args[0]), f"{path}:{node.lineno}: {ast.unparse(node)}"
    assert calls > 30


PARAMETERS = {
    "value",
    "condition",
    "nanoseconds",
    "early",
    "known",
    "text",
}  # whose callers pass texts of the program


def constant(node: ast.expr) -> bool:
    match node:
        case ast.Constant():
            return True
        case ast.Name(id=name):
            return name.isupper() or name in PARAMETERS
        case ast.JoinedStr(values=parts):
            return all(constant(part) for part in parts)
        case ast.FormattedValue(value=value):
            return constant(value)
    return False


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
    "a name twice": (json.dumps(OK)[:-1] + ', "time": 2}', "'time' occurs twice"),
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
