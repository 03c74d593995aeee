"""Classes of losses: where a message that is not in the log went, as far as it is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from harness.ledger.message import message_id
from harness.ledger.replica_events import IN_NO_LOG, NOT_LOOKED_AT, classify
from harness.reconcile.find.missing import EXPIRED, LATE, LOST
from harness.reconcile.screen.screen import Screened
from harness.reconcile.screen.summaries import Count
from harness.reconcile.seal.sealed import Sealed

IN_A_REPLICA = "in a replica's log, not read"
NEVER_ACKED = "never acked"


def replicas(sealed: Sealed) -> dict[str, Mapping[str, Any]]:
    """Return the `replicas` events by the id of the message that was looked for."""
    senders = {one.session: (one.producer, one.incarnation) for one in sealed.sessions}
    return {
        message_id(*senders[int(e["session"])], int(e["seq"])): e
        for e in sealed.events
        if e["event"] == "replicas" and int(e["session"]) in senders
    }


def loss_classes(sealed: Sealed, screened: Screened, counts: Mapping[str, int]) -> dict[str, int]:
    """Count the messages that are not in the log by class; empty classes are left out.

    At most a few losses of a run are looked for in the replicas' logs; the others are `not looked at`.
    """
    looked = Counter(classify(event) for event in replicas(sealed).values())
    in_replica = sum(n for found, n in looked.items() if found not in (IN_NO_LOG, NOT_LOOKED_AT))
    found = {
        IN_NO_LOG: looked[IN_NO_LOG],
        IN_A_REPLICA: in_replica,
        NOT_LOOKED_AT: max(0, counts.get(LOST, 0) - looked[IN_NO_LOG] - in_replica),
        EXPIRED: counts.get(EXPIRED, 0),
        LATE: counts.get(LATE, 0),
        NEVER_ACKED: screened.count(Count.NEVER_ACKED),
    }
    return {name: n for name, n in found.items() if n}
