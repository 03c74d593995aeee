"""Requests that brokers may lack, and the checks and faults that are not possible without them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from harness.contracts import TopicSettings
from harness.kafka.protocol import admin_requests
from harness.kafka.protocol.call import Api
from harness.kafka.protocol.producers import DESCRIBE_PRODUCERS
from harness.kafka.protocol.quorum import DESCRIBE_QUORUM
from harness.kafka.protocol.transactions import INIT_PRODUCER_ID

Ranges = Mapping[int, tuple[int, int]]
# Sent by librdkafka, which negotiates the version itself: any version will do.
_ANY = 32767
_TRANSACTIONS = "exactly-once cannot be run"


@dataclass(frozen=True)
class Optional:
    api: Api
    without: str  # what is not checked, or which faults cannot be used


def _of_library(name: str, key: int, without: str) -> Optional:
    return Optional(Api(name, key, 0, _ANY), without)


OPTIONAL = (
    Optional(DESCRIBE_PRODUCERS, "whether transactions stay open after a run is not checked"),
    Optional(
        DESCRIBE_QUORUM, "controllers that are not brokers are unknown, and no fault can be aimed at them"
    ),
    Optional(
        admin_requests.ELECT_LEADERS,
        "transfer_leadership, reassign, unclean_election and elect_unclean cannot be used",
    ),
    Optional(
        admin_requests.ALTER_PARTITION_REASSIGNMENTS,
        "transfer_leadership, reassign, unclean_election and elect_unclean cannot be used",
    ),
    Optional(admin_requests.OFFSET_FOR_LEADER_EPOCH, "unclean_election cannot be used"),
    Optional(admin_requests.DESCRIBE_SHARE_GROUP_OFFSETS, "share groups cannot be run"),
    Optional(INIT_PRODUCER_ID, "idempotent producers and exactly-once cannot be run"),
    _of_library("DeleteRecords", 21, "delete_records cannot be used"),
    _of_library("AddPartitionsToTxn", 24, _TRANSACTIONS),
    _of_library("AddOffsetsToTxn", 25, _TRANSACTIONS),
    _of_library("EndTxn", 26, _TRANSACTIONS),
    _of_library("TxnOffsetCommit", 28, _TRANSACTIONS),
    _of_library("DescribeConfigs", 32, "the settings that topics really have are not checked"),
    _of_library("CreatePartitions", 37, "add_partitions cannot be used"),
    _of_library("DeleteGroups", 42, "groups are left on the cluster, and delete_offsets cannot be used"),
    _of_library("IncrementalAlterConfigs", 44, "short_retention and raise_min_isr cannot be used"),
)
TRANSACTIONS = ("InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn", "TxnOffsetCommit")


def lacking(offers: Iterable[Ranges]) -> dict[str, str]:
    """Return the optional requests that a broker does not offer in a known version: the consequence by request name."""
    every = list(offers)
    return {
        one.api.name: one.without for one in OPTIONAL if not all(_common(one.api, ranges) for ranges in every)
    }


def consequences(missing: Mapping[str, str]) -> list[str]:
    """Return one line for each consequence, with all requests that cause it."""
    by_text: dict[str, list[str]] = {}
    for name, without in missing.items():
        by_text.setdefault(without, []).append(name)
    return [f"the brokers do not offer {', '.join(names)}: {text}" for text, names in by_text.items()]


def fitted(settings: TopicSettings, brokers: int) -> TopicSettings:
    """Return settings with no more replicas than brokers, that still allow writes while one of several replicas is down."""
    copies = min(settings.replication_factor, brokers)
    if copies == settings.replication_factor:
        return settings
    least = max(1, min(settings.min_insync_replicas, copies - 1))
    return replace(settings, replication_factor=copies, min_insync_replicas=least)


def not_checked(missing: Mapping[str, str], brokers: int, refused: Sequence[str]) -> list[str]:
    """Return one line for each thing that these brokers lack, with the checks that are not possible without it."""
    wanted = TopicSettings()
    made = fitted(wanted, brokers)
    lines = consequences(missing)
    if made != wanted:
        lines.append(
            f"there are {brokers} broker(s), so topics have {made.replication_factor} replica(s) instead of "
            f"{wanted.replication_factor} and min.insync.replicas={made.min_insync_replicas}: "
            + (
                "whether replicas keep records is not checked"
                if brokers == 1
                else "fewer failures are survived"
            )
        )
    return lines + [
        f"the brokers refuse the topic setting {name}: topics keep the brokers' own" for name in refused
    ]


def _common(api: Api, ranges: Ranges) -> bool:
    lowest, highest = ranges.get(api.key, (0, -1))
    return max(lowest, api.first) <= min(highest, api.last)
