"""The doctor: it looks at everything, reports only real obstacles, and changes nothing."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path

import pytest

from harness.machine import doctor, kernel, software
from harness.machine.answers import Answer, no, yes
from harness.machine.doctor import Fact, as_json, as_table, can_prove, facts

PRESENT = Fact("Java", True, "17.0.15", "brokers")
ABSENT = Fact("Docker engine", False, "no answer", "brokers in containers")
BLOCKING = Fact("loopback", False, "127.0.0.1 cannot be bound", "the link mesh", blocks_prove=True)


def test_every_fact_has_a_reason_and_a_use_and_no_file_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ONCEPROOF_CACHE", str(tmp_path / "cache"))
    found = facts()
    assert [fact.name for fact in found] == [look.name for look in doctor.LOOKS]
    assert len({fact.name for fact in found}) == len(found)
    assert all(fact.detail and fact.enables for fact in found)
    assert list(tmp_path.iterdir()) == []


def test_the_table_has_a_line_a_fact_and_the_summary_last() -> None:
    lines = as_table([PRESENT, ABSENT, BLOCKING]).splitlines()
    assert lines[0].split() == ["Java", "yes", "17.0.15", "brokers"]
    assert lines[1].startswith("Docker engine  no ")
    assert lines[2].startswith("loopback       NO ")
    assert lines[-1] == "prove cannot run here: loopback"
    assert as_table([PRESENT, ABSENT]).endswith("prove can run here")


def test_json_contains_the_same_facts() -> None:
    parsed = json.loads(as_json([PRESENT, ABSENT]))
    assert parsed["can_prove"] is True
    assert parsed["facts"][1] == {
        "name": "Docker engine",
        "ok": False,
        "detail": "no answer",
        "enables": "brokers in containers",
        "blocks_prove": False,
    }


@pytest.mark.parametrize(
    ("answer", "needed", "proves"),
    [
        (yes("here"), True, True),
        (no("gone"), False, True),
        (no("gone"), True, False),
        (no("later", fetchable=True), True, True),
    ],
)
def test_only_needed_things_that_cannot_be_fetched_block(answer: Answer, needed: bool, proves: bool) -> None:
    fact = doctor._fact(doctor._Look("thing", lambda: answer, "something", needed))
    assert can_prove([PRESENT, fact]) is proves


def test_a_look_that_crashes_is_a_no() -> None:
    def crash() -> Answer:
        raise ValueError("unexpected")

    fact = doctor._fact(doctor._Look("thing", crash, "something", needed=True))
    assert (fact.ok, fact.detail, fact.blocks_prove) == (False, "ValueError: unexpected", True)


def test_a_wrong_override_is_reported_and_not_fetchable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_LIBS", str(tmp_path))
    answer = software.kafka_jars()
    assert not answer.ok
    assert not answer.fetchable
    assert "KAFKA_LIBS" in answer.reason


def test_the_engine_has_to_answer_as_docker_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = tmp_path / "docker.sock"
    monkeypatch.setenv("DOCKER_HOST", f"unix://{at}")
    assert "no answer at" in kernel.docker_engine().reason
    for reply, ok in ((b"HTTP/1.0 200 OK\r\n\r\nOK", True), (b"HTTP/1.0 404 Not Found\r\n\r\n", False)):
        at.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX) as engine:
            engine.bind(str(at))
            engine.listen()
            answering = threading.Thread(target=_answer_once, args=(engine, reply))
            answering.start()
            assert kernel.docker_engine().ok is ok
            answering.join(timeout=5)


def _answer_once(engine: socket.socket, reply: bytes) -> None:
    link, _ = engine.accept()
    with link:
        link.recv(4096)
        link.sendall(reply)


def test_disk_is_measured_where_the_folder_would_be(tmp_path: Path) -> None:
    assert str(tmp_path / "not" / "yet") in kernel.disk(tmp_path / "not" / "yet").reason
    assert not kernel.disk(tmp_path, needed_gib=1e9).ok
