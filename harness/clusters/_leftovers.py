"""What we made on a cluster that is not ours, written down before it is made, so that it goes also after a crash."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from harness import tether
from harness.errors import ClusterError, WaitTimeout
from harness.provision.cache import cache_dir
from harness.waiting import wait_until

ASK_S = 10.0
_GONE_LIMIT_S = 45.0  # the group of a killed member is empty when its session has ended
_NOT_THERE = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.GROUP_ID_NOT_FOUND)


class Record:
    """The topics of one session of this process on one cluster."""

    def __init__(self, bootstrap: str) -> None:
        owner = tether.identify(os.getpid())
        assert owner is not None
        self._told: dict[str, Any] = {"bootstrap": bootstrap, "topics": [], **owner.__dict__}
        self._file = _folder() / f"{uuid.uuid4().hex}.json"

    @property
    def topics(self) -> list[str]:
        return list(self._told["topics"])

    def add(self, topic: str) -> None:
        self._told["topics"].append(topic)
        partial = self._file.with_suffix(".part")
        partial.write_text(json.dumps(self._told), encoding="utf-8")
        partial.replace(self._file)

    def remove(self) -> None:
        self._file.unlink(missing_ok=True)


def crashed(bootstrap: str) -> dict[Path, list[str]]:
    """Topics that dead sessions left on the cluster, by their record."""
    servers = set(bootstrap.split(","))
    return {
        file: told["topics"]
        for file, told in _records()
        if servers & set(told["bootstrap"].split(",")) and not _alive(told)
    }


def alive() -> set[str]:
    """Topics that sessions of this machine use now, on whatever cluster."""
    return {topic for _file, told in _records() if _alive(told) for topic in told["topics"]}


def remove(admin: AdminClient, topics: Collection[str], may_touch: Callable[[str], str]) -> list[str]:
    """Delete the topics and all groups whose names begin with theirs; returns what was there, when it is gone."""
    there = sorted(set(topics) & set(_topics(admin)))
    groups = [group for group in _groups(admin) if group.startswith(tuple(topics))] if topics else []
    if there:
        _delete(admin.delete_topics([may_touch(name) for name in there], request_timeout=ASK_S))
        _wait(lambda: set(there) & set(_topics(admin)), "topics")
    left = set(groups)

    def still() -> set[str]:
        """A group is deleted when it is empty: asked for again until then."""
        if left:
            _delete(admin.delete_consumer_groups([may_touch(g) for g in left], request_timeout=ASK_S), left)
        return left

    _wait(still, "groups")
    return [*(f"topic {name}" for name in there), *(f"group {name}" for name in groups)]


def under(admin: AdminClient, prefix: str) -> list[str]:
    """All names of topics and groups with the prefix that no session of this machine uses now."""
    names = {name for name in (*_topics(admin), *_groups(admin)) if name.startswith(prefix)}
    used = tuple(alive())
    return sorted(name for name in names if not (used and name.startswith(used)))


def _delete(futures: Any, left: set[str] | None = None) -> None:
    """Wait for each; with `left`, what is gone is taken from it and what is in use stays in it."""
    for name, future in futures.items():
        try:
            future.result(ASK_S * 2)
        except KafkaException as problem:
            code = problem.args[0].code()
            if left is not None and code in (KafkaError.NON_EMPTY_GROUP, KafkaError._TIMED_OUT):
                continue
            if code not in _NOT_THERE:
                raise ClusterError(f"{name} cannot be deleted: {problem.args[0].str()}") from problem
        except TimeoutError:
            raise ClusterError(f"{name} cannot be deleted: no answer within {ASK_S * 2:g} s") from None
        if left is not None:
            left.discard(name)


def _wait(still: Callable[[], Collection[str]], what: str) -> None:
    try:
        wait_until(lambda: not still(), _GONE_LIMIT_S, "", every_s=0.2)
    except WaitTimeout:
        raise ClusterError(
            f"{what} are still there after {_GONE_LIMIT_S:g} s: {', '.join(still())}"
        ) from None


def _topics(admin: AdminClient) -> Iterable[str]:
    try:
        return list(admin.list_topics(timeout=ASK_S).topics)
    except KafkaException as problem:
        raise ClusterError(f"the topics cannot be listed: {problem.args[0].str()}") from problem


def _groups(admin: AdminClient) -> Iterable[str]:
    try:
        told = admin.list_consumer_groups(request_timeout=ASK_S).result(ASK_S * 2)
    except (KafkaException, TimeoutError) as problem:
        raise ClusterError(f"the groups cannot be listed: {problem}") from problem
    return [group.group_id for group in told.valid]


def _records() -> list[tuple[Path, dict[str, Any]]]:
    found = []
    for file in sorted(_folder().glob("*.json")):
        try:
            told = json.loads(file.read_text(encoding="utf-8"))
            found.append(
                (file, {key: told[key] for key in ("bootstrap", "topics", "pid", "start_ticks", "boot_id")})
            )
        except (ValueError, KeyError, TypeError, FileNotFoundError):
            continue  # another session has just removed it
    return found


def _alive(told: dict[str, Any]) -> bool:
    return tether.Identity(told["pid"], told["start_ticks"], told["boot_id"]).alive()


def _folder() -> Path:
    folder = cache_dir() / "existing"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
