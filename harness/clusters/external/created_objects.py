"""The topics that onceproof creates on a user's cluster: recorded before they are made, so that a crash leaves none behind."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from harness.errors import ClusterError, WaitTimeout
from harness.processes.identity import Identity, from_fields, own_identity
from harness.runtime.cache import own_folder
from harness.waiting import wait_until

LIST = "existing"  # folder of the records, in the cache folder
ASK_S = 10.0
_GONE_LIMIT_S = 45.0  # the group of a killed member becomes empty when its session ends
_NOT_THERE = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.GROUP_ID_NOT_FOUND)


class CreatedTopics:
    """The record of the topics of one session of this process on one cluster."""

    def __init__(self, bootstrap: str) -> None:
        self._record: dict[str, Any] = {"bootstrap": bootstrap, "topics": [], **vars(own_identity())}
        self._file = own_folder(LIST) / f"{uuid.uuid4().hex}.json"

    @property
    def topics(self) -> list[str]:
        return list(self._record["topics"])

    def add(self, topic: str) -> None:
        self._record["topics"].append(topic)
        partial = self._file.with_suffix(".part")
        partial.write_text(json.dumps(self._record), encoding="utf-8")
        partial.replace(self._file)

    def remove(self) -> None:
        self._file.unlink(missing_ok=True)


def crashed(bootstrap: str) -> dict[Path, list[str]]:
    """Return the topics that killed sessions of this user and machine left on the cluster, by the file of their record."""
    return {
        file: record["topics"]
        for file, record, owner in _records()
        if _on(bootstrap, record) and owner.ended()
    }


def alive() -> set[str]:
    """Return the topics that sessions use or may use: whether a session of another machine has ended is not known."""
    return {topic for _file, record, owner in _records() if not owner.ended() for topic in record["topics"]}


def left(bootstrap: str | None = None) -> list[str]:
    """List, one line each, the topics of sessions of another machine, container or user that may still run."""
    return [
        f"{len(record['topics'])} topic(s) on {record['bootstrap']}: left alone, {reason}; if no run uses them: rm {file} and "
        f"./onceproof sweep --bootstrap {record['bootstrap']}"
        for file, record, owner in _records()
        if (reason := owner.foreign()) and (bootstrap is None or _on(bootstrap, record))
    ]


def _on(bootstrap: str, record: Mapping[str, Any]) -> bool:
    return bool(set(bootstrap.split(",")) & set(str(record["bootstrap"]).split(",")))


def remove(
    admin: AdminClient, topics: Collection[str], may_touch: Callable[[str], str], *, exactly: bool = False
) -> list[str]:
    """Delete the topics and all groups whose names begin with theirs (`exactly`: only groups that are named too).

    Returns the names of what existed, once all of it is deleted.
    """
    there = sorted(set(topics) & set(_topics(admin)))
    named = (lambda group: group in topics) if exactly else (lambda group: group.startswith(tuple(topics)))
    groups = [group for group in _groups(admin) if named(group)] if topics else []
    if there:
        _delete(admin.delete_topics([may_touch(name) for name in there], request_timeout=ASK_S))
        _wait(lambda: set(there) & set(_topics(admin)), "topics")
    left = set(groups)

    def still() -> set[str]:
        """Delete the remaining groups and return the ones still in use: only an empty group can be deleted."""
        if left:
            _delete(admin.delete_consumer_groups([may_touch(g) for g in left], request_timeout=ASK_S), left)
        return left

    _wait(still, "groups")
    return [*(f"topic {name}" for name in there), *(f"group {name}" for name in groups)]


def under(admin: AdminClient, prefix: str) -> list[str]:
    """Return the topics and groups with the prefix that no session uses; never an internal topic."""
    topics = {name for name in _topics(admin) if name.startswith(prefix)}
    groups = {name for name in _groups(admin) if name.startswith(prefix)}
    used = tuple(alive())
    names = (topics - _internal(admin, topics)) | groups
    return sorted(name for name in names if not (used and name.startswith(used)))


def _internal(admin: AdminClient, topics: Collection[str]) -> set[str]:
    """Return the internal topics: by their names, and as the brokers report them."""
    asked = sorted(topics)
    internal = {name for name in asked if name.startswith("__")}
    try:
        answers = admin.describe_topics(TopicCollection(asked), request_timeout=ASK_S) if asked else {}
        for name, answer in answers.items():
            if answer.result(ASK_S * 2).is_internal:
                internal.add(name)
    except (KafkaException, TimeoutError) as problem:
        raise ClusterError(f"the topics cannot be described, so none is deleted: {problem}") from problem
    return internal


def _delete(futures: Any, left: set[str] | None = None) -> None:
    """Wait for each deletion; remove deleted names from `left`, if given, and keep the names in use in it."""
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
        listed = admin.list_consumer_groups(request_timeout=ASK_S).result(ASK_S * 2)
    except (KafkaException, TimeoutError) as problem:
        raise ClusterError(f"the groups cannot be listed: {problem}") from problem
    return [group.group_id for group in listed.valid]


def _records() -> Iterator[tuple[Path, dict[str, Any], Identity]]:
    for file in sorted(own_folder(LIST).glob("*.json")):
        try:
            record = json.loads(file.read_text(encoding="utf-8"))
            record = {
                **record,
                "bootstrap": str(record["bootstrap"]),
                "topics": [str(t) for t in record["topics"]],
            }
        except (ValueError, KeyError, TypeError, FileNotFoundError):
            continue  # another session has just removed the record
        if (owner := from_fields(record)) is not None:
            yield file, record, owner
