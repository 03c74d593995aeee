"""A request to stop at a moment is kept, however the worker and the harness interleave."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.waiting import wait_until
from harness.workers.breakpoints import Moment, Moments


@contextmanager
def at_work(moments: Moments, moment: Moment) -> Iterator[None]:
    """A worker that comes to one moment all the time."""
    ended = threading.Event()

    def work() -> None:
        while not ended.is_set():
            moments.come_to(moment)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        moments.go_on()
        thread.join(10.0)
    assert not thread.is_alive(), "the worker was not released"


def test_a_worker_that_comes_to_the_moment_at_once_waits_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = tmp_path / "board"
    replace = Path.replace

    def replaced_and_reached(draft: Path, asked: Path | str) -> Path:
        """Put the request in place; the worker comes to the moment before the harness does anything else."""
        there = replace(draft, asked)
        replace(there, str(board) + ".stopped_at")
        return there

    monkeypatch.setattr(Path, "replace", replaced_and_reached)
    moments = Moments(board)
    moments.stop_at(Moment.BEFORE_WORK)
    assert moments.reached()


def test_a_worker_that_waits_elsewhere_resumes_and_stops_at_the_new_moment(tmp_path: Path) -> None:
    moments = Moments(tmp_path / "board")
    moments.stop_at(Moment.BEFORE_WORK)
    with at_work(moments, Moment.BEFORE_WORK):
        wait_until(moments.reached, 10.0, "it does not come to the moment")
        moments.stop_at(Moment.AFTER_COMMIT)
        assert not moments.reached(), "it goes on, and does not come to that moment"
        assert moments.wanted(Moment.AFTER_COMMIT)


def test_no_request_is_lost_while_a_worker_is_at_work(tmp_path: Path) -> None:
    moments = Moments(tmp_path / "board")
    with at_work(moments, Moment.BEFORE_WORK):
        for _ in range(200):
            moments.stop_at(Moment.BEFORE_WORK)
            wait_until(moments.reached, 10.0, "the request was lost", every_s=0.001)
            moments.go_on()
