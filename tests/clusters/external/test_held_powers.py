"""Powers by commands are recorded before they are used, and undone by the next start when their harness was killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.clusters.external.commanded_powers import commanded
from harness.clusters.external.held_powers import Uses
from harness.clusters.external.node import LIMITS, CommandedNode, Limits
from harness.clusters.external.power_commands import Powers
from harness.clusters.external.undo import undo_left
from harness.clusters.links.mesh import Member
from harness.contracts import Killable, Pausable, Stoppable
from harness.errors import FaultError, SetupError

ROOT = Path(__file__).resolve().parents[3]
MEMBER = Member("controller-1", 1, False, True)  # clients do not reach it, so commands report its state
# A node represented by two files: `up` while it runs, `stopped` while it is paused.
POWERS = """
[nodes.controller-1]
pause = "/bin/sh -c 'ls {cache}/held/*.json > {folder}/written && touch {folder}/stopped'"
resume = "rm -f {folder}/stopped"
paused = "test -f {folder}/stopped"
kill = "rm {folder}/up"
shut_down = "rm {folder}/up"
restart = "/bin/sh -c 'echo >> {folder}/restarts; touch {folder}/up'"
running = "test -f {folder}/up"
"""
# A harness that uses a power and is killed; `early`: before the command has ended.
VICTIM = """
import os, signal, sys
from pathlib import Path
from tests.clusters.external.test_held_powers import node_in
node = node_in(Path(sys.argv[1]))
if "early" in sys.argv:
    node._must = lambda power: os.kill(os.getpid(), signal.SIGKILL)
getattr(node, sys.argv[2])()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ONCEPROOF_CACHE", str(tmp_path / "cache"))
    (tmp_path / "up").touch()
    write_powers(tmp_path)
    return tmp_path


def write_powers(folder: Path, **changed: str) -> None:
    text = POWERS.replace("{cache}", str(folder / "cache")).replace("{folder}", str(folder))
    for power, line in changed.items():
        old = next(each for each in text.splitlines() if each.startswith(f"{power} ="))
        text = text.replace(old, f'{power} = "{line}"')
    (folder / "powers.toml").write_text(text, encoding="ascii")


def node_in(folder: Path, secrets: tuple[str, ...] = (), limits: Limits = LIMITS) -> CommandedNode:
    powers = folder / "powers.toml"
    given = {"node": MEMBER.name, "id": 1}
    node = commanded(MEMBER, None, Powers.read(powers).of(MEMBER.name, given), lambda text: None, limits)
    node.uses = Uses("h:9092", powers, None, secrets)
    return node


def records(folder: Path) -> list[Path]:
    return list((folder / "cache/held").glob("*"))


def undo(limits: Limits = LIMITS) -> list[str]:
    said: list[str] = []
    undo_left(said.append, settle_s=0.1, limits=limits)
    return said


def kill_while(folder: Path, power: str, *more: str) -> None:
    done = subprocess.run([sys.executable, "-c", VICTIM, str(folder), power, *more], cwd=ROOT, check=False)
    assert done.returncode == -9


def test_a_power_is_recorded_before_its_command_runs(folder: Path) -> None:  # TRUST R2
    node = node_in(folder)
    assert isinstance(node, Pausable)
    node.pause()
    (record,) = records(folder)
    assert (folder / "written").read_text().split() == [str(record)], "it was there when the command ran"
    assert record.stat().st_mode & 0o777 == 0o600
    assert undo() == [], "its harness is alive"
    assert node.paused()
    node.resume()
    assert records(folder) == []


@pytest.mark.parametrize("power", ["kill", "shut_down"])
def test_the_record_of_a_node_that_is_down_stays_until_it_is_back(folder: Path, power: str) -> None:
    node = node_in(folder)
    assert isinstance(node, Stoppable)
    getattr(node, power)()
    assert [json.loads(file.read_text())["power"] for file in records(folder)] == ["kill"]
    node.restart()
    assert records(folder) == []


@pytest.mark.parametrize("more", [(), ("early",)], ids=["held", "early"])
def test_the_next_start_resumes_a_node_that_a_killed_harness_paused(  # TRUST R2
    folder: Path, more: tuple[str, ...]
) -> None:
    kill_while(folder, "pause", *more)
    if more:
        (folder / "stopped").touch()  # its command took effect after its harness was killed
    assert (folder / "stopped").exists()
    (line,) = undo()
    assert line.startswith("controller-1 of h:9092: a run that was killed had begun to pause it at ")
    assert line.endswith("; resumed, it answers")
    assert not (folder / "stopped").exists()
    assert (records(folder), undo()) == ([], [])


@pytest.mark.parametrize("power", ["kill", "shut_down"])
def test_the_next_start_restarts_a_node_that_a_killed_harness_ended(
    folder: Path, power: str
) -> None:  # TRUST R2
    kill_while(folder, power)
    assert not (folder / "up").exists()
    (line,) = undo()
    assert line.endswith("; restarted, it takes part again")
    assert (folder / "up").exists()
    assert records(folder) == []


def test_a_node_that_runs_is_not_started_again(folder: Path) -> None:
    kill_while(folder, "kill")
    (folder / "up").touch()  # its operator was quicker
    (line,) = undo()
    assert line.endswith("; it runs")
    assert not (folder / "restarts").exists()
    assert records(folder) == []


def test_an_undo_counts_only_when_its_effect_is_observed(  # TRUST R2
    folder: Path,
) -> None:
    write_powers(folder, resume="true")
    kill_while(folder, "pause")
    (line,) = undo(Limits(resumed_s=0.2))
    assert "controller-1 is still paused 0.2 s after its resume command: true" in line
    assert line.endswith("stays, the next start tries again")
    assert "\n" not in line
    assert len(records(folder)) == 1


def test_a_failed_undo_is_left_to_the_next_start(folder: Path) -> None:
    node = node_in(folder, limits=Limits(resumed_s=0.2))
    assert isinstance(node, Pausable)
    node.pause()
    commands = node._commands
    write_powers(folder, resume="false")
    node._commands = node_in(folder)._commands
    with pytest.raises(FaultError, match="resume of controller-1 failed with code 1"):
        node.resume()
    assert len(records(folder)) == 1
    node._commands = commands
    node.bring_back()
    assert (records(folder), node.paused()) == ([], False)


def test_commands_with_a_secret_are_not_recorded_but_still_undone(folder: Path) -> None:
    write_powers(folder, resume=f"/bin/sh -c 'test s3cret && rm -f {folder}/stopped'")
    node = node_in(folder, secrets=("s3cret",))
    assert isinstance(node, Pausable)
    node.pause()
    (record,) = records(folder)
    assert "s3cret" not in record.read_text()
    fields = json.loads(record.read_text())
    record.write_text(json.dumps({**fields, "start_ticks": 1}))  # of a harness that has ended
    (line,) = undo()
    assert line.endswith("; resumed, it answers")
    assert not node.paused()


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"version": 1, "power": "format"}', "\xff"])
def test_a_broken_record_is_one_line_and_stays(folder: Path, text: str) -> None:
    held = folder / "cache/held"
    held.mkdir(parents=True)
    broken = held / "broken.json"
    broken.write_text(text, encoding="latin-1")
    (line,) = undo()
    assert line.startswith(f"{broken}: the record of a killed run cannot be read")
    assert "\n" not in line
    assert broken.exists()


def test_a_folder_that_other_users_can_write_is_refused(folder: Path) -> None:
    kill_while(folder, "pause")
    (record,) = records(folder)
    record.parent.chmod(0o777)
    with pytest.raises(SetupError, match="can be written by other users"):
        undo()
    assert (folder / "stopped").exists()


@pytest.mark.parametrize("what", ["file", "link"])
def test_commands_that_other_users_could_have_written_are_not_run(folder: Path, what: str) -> None:
    kill_while(folder, "pause")
    (record,) = records(folder)
    if what == "file":
        record.chmod(0o666)
    else:
        record.rename(folder / "elsewhere.json")
        record.symlink_to(folder / "elsewhere.json")
    (line,) = undo()
    assert "writable only by this user" in line
    assert (folder / "stopped").exists()


def test_nodes_of_a_running_harness_are_left_to_it(folder: Path) -> None:
    kill_while(folder, "pause")
    node = node_in(folder)
    assert isinstance(node, Killable)
    node.kill()
    assert undo() == []
    assert len(records(folder)) == 2
    node.restart()
    assert len(undo()) == 1
    assert records(folder) == []


def test_commands_are_out_of_reach_of_a_ctrl_c_at_the_terminal(folder: Path) -> None:  # TRUST R2
    write_powers(folder, paused=f"/bin/sh -c 'ps -o sid= -p $$ > {folder}/session'")
    node = node_in(folder)
    assert isinstance(node, Pausable)
    node.paused()
    here = subprocess.run(
        ["ps", "-o", "sid=", "-p", str(os.getpid())], capture_output=True, text=True, check=True
    )
    assert (folder / "session").read_text().split() != here.stdout.split()
