"""Settings that the loaded library does not have yet are left out: it would refuse to start with them."""

from __future__ import annotations

import pytest

from harness.clients.librdkafka import translation

SETTINGS = {"fetch.queue.backoff.ms": 10, "connections.max.idle.ms": 5000, "client.id": "a"}


@pytest.mark.parametrize(
    ("library", "left_out"),
    [
        (0x010502FF, {"fetch.queue.backoff.ms", "connections.max.idle.ms"}),
        (0x02000200, {"fetch.queue.backoff.ms"}),
        (0x02020000, set()),
    ],
)
def test_settings_of_later_libraries_are_left_out(
    library: int, left_out: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(translation, "libversion", lambda: ("", library))
    assert set(SETTINGS) - set(translation.known(SETTINGS)) == left_out
