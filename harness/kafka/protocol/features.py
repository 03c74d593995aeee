"""The features of a cluster: the levels that each server supports, and the finalized levels, which are in use.

Raw requests, as in harness.kafka.protocol.raw_client. The levels decide which records and requests the servers use among themselves, so
that servers of several versions get along; `metadata.version` is one of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from harness.kafka.protocol.addresses import Address, shown
from harness.kafka.protocol.call import API_VERSIONS, CLIENT_SOFTWARE, Api, UnsupportedError, call
from harness.kafka.protocol.messages import WireError, reason

METADATA_VERSION = "metadata.version"
# Version 3 leaves out features whose lowest level is 0; version 4 does not exist before Kafka 3.9.
FEATURES = Api(API_VERSIONS.name, API_VERSIONS.key, 3, API_VERSIONS.last)
UPDATE_FEATURES = Api("UpdateFeatures", 57, 1, 1)
_UPGRADE, _SAFE_DOWNGRADE = 1, 2


@dataclass(frozen=True)
class Features:
    supported: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # lowest and highest level
    finalized: Mapping[str, int] = field(default_factory=dict)  # level; 0 and absent are the same
    epoch: int = -1  # of the finalized levels


def features(address: Address, timeout_s: float) -> Features:
    """Return the levels that this server supports, and those that it considers finalized."""
    try:
        answer = call(address, FEATURES, CLIENT_SOFTWARE, timeout_s)
    except UnsupportedError:
        raise WireError(f"{shown(address)} is too old to have features") from None
    if answer.error_code:
        raise WireError(f"{shown(address)} does not report its features: {reason(answer)}")
    return Features(
        {one.name: (one.min_version, one.max_version) for one in answer.supported_features},
        {one.name: one.max_version_level for one in answer.finalized_features},
        answer.finalized_features_epoch,
    )


def raise_features(address: Address, levels: Mapping[str, int], timeout_s: float) -> None:
    """Finalize these levels, all or none; any broker passes the request on. WireError names a refused level and the reason."""
    _update(address, levels, _UPGRADE, "raised", timeout_s)


def lower_features(address: Address, levels: Mapping[str, int], timeout_s: float) -> None:
    """Like `raise_features`, for lower levels: level 0 switches a feature off."""
    _update(address, levels, _SAFE_DOWNGRADE, "lowered", timeout_s)


def _update(address: Address, levels: Mapping[str, int], kind: int, done: str, timeout_s: float) -> None:
    values = {
        "timeout": timedelta(seconds=timeout_s),
        "feature_updates": [
            {"feature": name, "max_version_level": level, "upgrade_type": kind}
            for name, level in levels.items()
        ],
    }
    answer = call(address, UPDATE_FEATURES, values, timeout_s)
    refused = [f"{one.feature}: {reason(one)}" for one in answer.results if one.error_code]
    if answer.error_code:
        refused = [reason(answer)]
    if refused:
        raise WireError(f"the features were not {done}: {'; '.join(refused)}")
