"""Report transactions that stay open after healing: they block every read_committed reader, but violate no promise."""

from __future__ import annotations

from collections.abc import Sequence

from harness.contracts import Cluster
from harness.errors import ClusterError, WaitTimeout
from harness.kafka.admin import Administrator
from harness.kafka.protocol.producers import OpenTransaction
from harness.kafka.protocol.raw_client import UnsupportedError, WireError
from harness.ledger.journal import EventLog
from harness.waiting import wait_until


def report_hanging_transactions(
    cluster: Cluster, topics: Sequence[str], limit_s: float, events: EventLog
) -> None:
    """Wait until no transaction is open in these topics, after all producers have ended; record those that stay open."""
    administrators = {number: Administrator(cluster, topic) for number, topic in enumerate(topics)}
    last: dict[int, Sequence[OpenTransaction]] = {}

    def closed() -> bool:
        for number, administrator in administrators.items():
            last[number] = administrator.open_transactions()
        return not any(last.values())

    try:
        wait_until(closed, limit_s, "transactions are open", every_s=0.2)
    except UnsupportedError as error:
        text = f"whether transactions stay open is not checked: {error}"
        events.write("note", where="open transactions", text=text)
    except (WireError, ClusterError) as error:
        events.write("stalled", what="unknown", text=f"open transactions could not be asked for: {error}")
    except WaitTimeout:
        for number, found in last.items():
            for one in found:
                events.write(
                    "stalled",
                    what="transaction",
                    text=f"a transaction of producer id {one.producer_id}, epoch {one.epoch}, is open in "
                    f"{topics[number]}/{one.partition} from offset {one.since} on, {limit_s:g} s after all producers "
                    "had ended: read_committed readers get nothing behind it",
                    topic=number,
                    partition=one.partition,
                    producer_id=one.producer_id,
                    epoch=one.epoch,
                    since=one.since,
                )
