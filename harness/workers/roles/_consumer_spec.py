"""The consumer settings that all reading workers share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.contracts import ConsumerSpec, Mode


def reader_spec(spec: Mapping[str, Any], topic: str, **more: Any) -> ConsumerSpec:
    return ConsumerSpec(
        bootstrap=spec["bootstrap"],
        security=spec.get("security", {}),
        topic=topic,
        run=spec["run"],
        mode=Mode(spec["mode"]),
        isolation=spec["isolation"],
        check_headers_every=16,  # the final reader compares them all
        **more,
    )
