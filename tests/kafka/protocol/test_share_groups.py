"""Requests about share groups as literal bytes."""

from __future__ import annotations

import pytest

from harness.kafka.protocol import admin_requests
from harness.kafka.protocol.raw_client import WireError
from tests.fake_server import serve
from tests.kafka.protocol.test_admin_requests import NOWHERE, ORDERS, body


def test_the_lag_of_a_share_group_is_these_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    partition = "00000002" + "0000000000000007" + "00000005" + "0000000000000003" + "0000" + "00" + "00"
    topic = "07" + ORDERS + "00" * 16 + "02" + partition + "00"
    answer = "00" + "00000000" + "02" + "0267" + "02" + topic + "0000" + "00" + "00" + "00"
    asked = serve(monkeypatch, {90: (0, 1)}, [bytes.fromhex(answer)])
    assert admin_requests.share_group_lag(NOWHERE, "g", "orders", [2], 10.0) == {2: 3}
    assert body(asked[0], "005a", "0001", "00") == (
        "02" + "0267" + "02" + "07" + ORDERS + "02" + "00000002" + "00" + "00" + "00"
    )


def test_a_coordinator_that_does_not_report_a_lag_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = "00" + "00000000" + "02" + "0267" + "01" + "0045" + "00" + "00" + "00"
    serve(monkeypatch, {90: (0, 1)}, [bytes.fromhex(answer)])
    with pytest.raises(WireError, match="error 69"):
        admin_requests.share_group_lag(NOWHERE, "g", "orders", [2], 10.0)
