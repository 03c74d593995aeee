"""The command line: commands are files, errors are one line, help is quick."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import pytest

import harness
from harness import cli
from harness.commands import doctor, setup
from harness.commands import tox as tox_command
from harness.errors import SetupError, UsageError

ROOT = Path(__file__).parents[1]


def test_no_arguments_show_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "doctor" in shown.err


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"onceproof {harness.__version__}\n"


def test_an_unknown_command_lists_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["prov"])
    assert ended.value.code == 2
    complaint = capsys.readouterr().err
    assert "prov" in complaint
    assert all(name in complaint for name in ("doctor", "setup", "tox"))


def test_every_command_file_keeps_the_contract() -> None:
    for module in cli.command_modules():
        assert (module.__doc__ or "").strip(), f"{module.__name__} has no help"
        assert callable(module.add_arguments), module.__name__
        assert callable(module.run), module.__name__


@pytest.mark.parametrize("error", [UsageError, SetupError])
def test_an_error_for_users_is_one_line(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(args: argparse.Namespace) -> int:
        raise error("the disk is gone")

    monkeypatch.setattr(setup, "run", fail)
    assert cli.main(["setup"]) == 2
    assert capsys.readouterr().err == "onceproof: the disk is gone\n"


def test_an_interrupt_is_not_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(args: argparse.Namespace) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(doctor, "run", interrupt)
    assert cli.main(["doctor"]) == 130
    assert capsys.readouterr().err == "onceproof: interrupted\n"


def test_tox_gets_its_arguments_unparsed(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []

    def note(args: argparse.Namespace) -> int:
        seen.append(args.rest)
        return 0

    monkeypatch.setattr(tox_command, "run", note)
    assert cli.main(["tox", "-e", "unit", "--", "-k", "x", "--version"]) == 0
    assert cli.main(["tox"]) == 0
    assert seen == [["-e", "unit", "--", "-k", "x", "--version"], []]


def test_another_command_refuses_unknown_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["doctor", "--jsn"])
    assert ended.value.code == 2
    output = capsys.readouterr().err
    assert output.startswith("usage: onceproof doctor [-h] [--json]"), "the usage of the command"
    assert output.endswith("error: unrecognized arguments: --jsn\n")


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom harness import cli\ncli.build_parser().format_help()\n"
        "heavy = {'pyspark', 'pandas', 'pyarrow', 'numpy', 'confluent_kafka', 'docker', 'jinja2', 'kio'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    ended = subprocess.run(
        [sys.executable, "-P", "-c", code],
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.strip() == "[]"
