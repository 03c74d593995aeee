"""The only way to wait: a condition, a limit, and a description of the last state; and acting on several things in parallel."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from harness.errors import WaitTimeout

T = TypeVar("T")


def wait_until(
    condition: Callable[[], T | None],
    timeout_s: float,
    describe: str | Callable[[], str],
    *,
    every_s: float = 0.05,
) -> T:
    """Return the first truthy value of `condition`; raise WaitTimeout with `describe` after `timeout_s`.

    The condition is always checked once more after the limit: a process that was not scheduled for a while must not
    report a timeout without having looked.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        last_try = time.monotonic() >= deadline
        value = condition()
        if value:
            return value
        if last_try:
            text = describe() if callable(describe) else describe
            raise WaitTimeout(f"timed out after {timeout_s:g} s: {text}")
        time.sleep(min(every_s, max(0.0, deadline - time.monotonic())))


def in_parallel(act: Callable[[T], None], items: Sequence[T]) -> None:
    """Act on all items in parallel and wait for all; raise the first error after the last has ended."""
    with ThreadPoolExecutor(max_workers=max(1, len(items))) as pool:
        begun = [pool.submit(act, item) for item in items]
    for future in begun:
        future.result()
