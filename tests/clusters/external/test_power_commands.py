"""Nodes of an existing cluster: the powers that commands give them, and what counts as an effect."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.clusters.external.commanded_powers import commanded
from harness.clusters.external.node import LIMITS, CommandedNode, Limits
from harness.clusters.external.power_commands import Powers
from harness.clusters.links.mesh import Member
from harness.contracts import (
    Killable,
    Node,
    Pausable,
    Severable,
    Stoppable,
)
from harness.errors import FaultError, UsageError

GIVEN = {"node": "broker-1", "id": 1, "host": "h", "port": 9}


def _powers(tmp_path: Path, text: str) -> Powers:
    file = tmp_path / "powers.toml"
    file.write_text(text, encoding="utf-8")
    return Powers.read(file)


def test_variables_and_commands_of_a_node_override_those_for_all(tmp_path: Path) -> None:
    powers = _powers(
        tmp_path,
        '[powers]\nkill = "ssh {host} kill {what}"\nrestart = "ssh {host}:{port} start {node} {id}"\n'
        '[nodes.broker-1]\nwhat = "a b"\n'
        '[nodes.broker-2]\nhost = "other"\nkill = "false"\n',
    )
    first = powers.of("broker-1", GIVEN).lines
    assert first == {
        "kill": ("ssh", "h", "kill", "a b"),  # a blank in a value does not split it
        "restart": ("ssh", "h:9", "start", "broker-1", "1"),
    }
    second = powers.of("broker-2", {**GIVEN, "node": "broker-2"}).lines
    assert second == {"kill": ("false",), "restart": ("ssh", "other:9", "start", "broker-2", "1")}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[powers\n", r"--powers .*powers\.toml: "),
        ("kill = 'x'\n", r"kill: unknown table; use \[powers\] and \[nodes\.NAME\]"),
        ("[powers]\nkil = 'x'\n", r"powers\.kil: unknown key; choose from kill, restart"),
        ("[powers]\nkill = 'x'\n", r"powers\.kill needs restart as well"),
        ("[powers]\npause = 'x'\n", r"powers\.pause needs resume as well"),
        ("[powers]\nkill = 3\nrestart = 'x'\n", r"powers\.kill: a command must be a string"),
        ("[powers]\nlimit_s = 0\n", r"powers\.limit_s: must be a number of seconds above 0"),
        (
            "[powers]\nkill = 'x {pid}'\nrestart = 'x'\n",
            r"powers\.kill: unknown placeholder \{pid\}; available: node, id, host, port",
        ),
        ("[powers]\nkill = \"x '\"\nrestart = 'x'\n", r"powers\.kill: No closing quotation"),
        ("[nodes.broker-1]\nhots = 'x'\n", r"nodes\.broker-1\.hots: not a power .* no command uses it"),
        ("[nodes.broker-1]\nkill = 'x'\n", r"nodes\.broker-1\.kill needs restart as well"),
    ],
)
def test_a_bad_file_is_one_line_with_file_and_key(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint) as raised:
        _powers(tmp_path, text).of("broker-1", GIVEN)
    assert "\n" not in str(raised.value)
    assert "powers.toml" in str(raised.value)


def test_a_table_for_an_unknown_node_is_refused(tmp_path: Path) -> None:
    powers = _powers(tmp_path, "[nodes.broker-9]\n")
    with pytest.raises(
        UsageError, match=r"nodes\.broker-9: the cluster has no such node; it has broker-1, broker-2"
    ):
        powers.must_be_nodes(["broker-1", "broker-2"])


@pytest.mark.parametrize(
    ("text", "has"),
    [
        ("", set()),
        ("kill = 'true'\nrestart = 'true'\n", {Killable}),
        ("kill = 'true'\nrestart = 'true'\nshut_down = 'true'\n", {Killable, Stoppable}),
        ("pause = 'true'\nresume = 'true'\n", {Pausable}),
    ],
)
def test_a_node_has_exactly_the_powers_that_are_configured(tmp_path: Path, text: str, has: set[type]) -> None:
    node = _node(tmp_path, text, ("127.0.0.1", 1))
    powers: tuple[type, ...] = (Killable, Stoppable, Pausable, Severable)
    assert {power for power in powers if isinstance(node, power)} == has
    assert isinstance(node, Node)


def test_an_unreachable_controller_is_killable_only_with_a_running_command(
    tmp_path: Path,
) -> None:
    text = "kill = 'true'\nrestart = 'true'\n"
    assert not isinstance(_node(tmp_path, text, None), Killable)
    assert isinstance(_node(tmp_path, text + "running = 'true'\n", None), Killable)


def test_a_command_without_effect_is_no_kill(tmp_path: Path) -> None:
    said: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        commands = "kill = 'echo done'\nrestart = 'true'\n"
        node = _node(tmp_path, commands, server.getsockname(), said.append, Limits(gone_s=0.2))
        assert isinstance(node, Killable)
        node.kill()
        assert node.running(), "its port still answers"
    assert not node.running()
    assert said == ["kill of broker-1: echo done ended with code 0: done"]


def test_commands_that_fail_or_do_not_end_raise(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = server.getsockname()
        failing = _node(tmp_path, "kill = 'false'\nrestart = 'true'\n", place)
        missing = _node(tmp_path, "kill = 'no-such-program-here'\nrestart = 'true'\n", place)
        slow = _node(tmp_path, "limit_s = 0.2\nkill = 'sleep 60'\nrestart = 'true'\n", place)
        piped = _node(tmp_path, "shell = true\nkill = 'exit 3 | exit 4'\nrestart = 'true'\n", place)
        for node, complaint in (
            (failing, "kill of broker-1 failed with code 1: false"),
            (missing, "kill of broker-1 cannot be run: No such file.*: no-such-program-here"),
            (slow, r"kill of broker-1 did not end within 0\.2 s: sleep 60"),
            (piped, r"kill of broker-1 failed with code 4"),
        ):
            assert isinstance(node, Killable)
            begun = time.monotonic()
            with pytest.raises(FaultError, match=complaint):
                node.kill()
            assert time.monotonic() - begun < 30


def _node(
    tmp_path: Path,
    commands: str,
    place: tuple[str, int] | None,
    report: Callable[[str], None] = lambda text: None,
    limits: Limits = LIMITS,
) -> CommandedNode:
    powers = _powers(tmp_path, f"[powers]\n{commands}")
    member = Member("broker-1", 1, place is not None, False)
    return commanded(member, place, powers.of("broker-1", GIVEN), report, limits)
