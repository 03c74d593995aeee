"""The consumer settings that all reading workers share."""

from __future__ import annotations

from typing import Any

from harness.contracts import ConsumerSpec, MemberSpec, WorkerSpec


def reader_spec(spec: WorkerSpec, topic: str, isolation: str, **more: Any) -> ConsumerSpec:
    return ConsumerSpec(
        bootstrap=spec.bootstrap,
        security=spec.security,
        topic=topic,
        run=spec.run,
        mode=spec.mode,
        isolation=isolation,
        compare_every=16,  # the final reader compares them all
        **more,
    )


def member_spec(spec: MemberSpec, auto_commit: bool = False) -> ConsumerSpec:
    return reader_spec(
        spec,
        spec.topic,
        spec.isolation,
        group=spec.group,
        auto_commit=auto_commit,
        instance_id=spec.instance_id,
        options=spec.consumer,
    )
