"""The four kernels: each makes block summaries of a batch of rows of attempts, log, effects or deliveries. Pure numpy.

Columns are arrays of int64, or of booleans where the kernel says so; -1 means null. See harness.reconcile.screen.summaries.
"""

from __future__ import annotations

import numpy as np

from harness.contracts import Outcome
from harness.ledger.message import BAD_PAYLOAD, FOREIGN_RUN
from harness.ledger.transform import INPUT
from harness.reconcile.arrays import Bools, Columns, Ints, mixed, place_of
from harness.reconcile.screen import observers
from harness.reconcile.screen.commits import below_commits, given_by_commits
from harness.reconcile.screen.facts import Facts
from harness.reconcile.screen.reader_steps import Trail, screen_steps
from harness.reconcile.screen.spaces import Space, Summary, Why
from harness.reconcile.screen.summaries import (
    ATTEMPTED_BIN,
    BIN,
    BITS,
    DELIVERED_BIN,
    KEY_SLOT_NS,
    LEAST_MS,
    SLOT_NS,
    Count,
    bit_of,
    folded,
    highest_total,
    joined,
    totals,
    why_where,
)
from harness.reconcile.screen.transaction_fates import Fate
from harness.reconcile.seal.rows import AFTER, BEFORE

NO_PHASE = -1  # null: there was no fault window


def screen_attempts(c: Columns, facts: Facts) -> Summary:
    """Summarise attempts and their outcomes: session, seq, t, topic, partition, key, txn, outcome, t_outcome, told_partition,
    offset, phase."""
    run, session, seq = facts.run, c["session"], c["seq"]
    acked = c["outcome"] == Outcome.ACKED
    fate = facts.fate_of(session, c["txn"])
    in_txn = c["txn"] > 0
    owed = np.where(in_txn, (fate == Fate.COMMITTED) & (c["outcome"] != Outcome.REJECTED), acked)
    placed = c["offset"] >= 0
    partition = np.where(c["told_partition"] >= 0, c["told_partition"], c["partition"])
    messages = folded(
        run, Space.MESSAGE, session, seq >> BITS,
        attempted=bit_of(seq), owed=bit_of(seq, owed), acked_places=placed.astype(np.int64),
        content=mixed(seq, c["key"], c["txn"]),
        places=np.where(placed, mixed(seq, place_of(c["topic"], c["told_partition"]), c["offset"]), 0),
        why=why_where(in_txn & (fate == Fate.OPEN), Why.OPEN_TXN),
    )  # fmt: skip
    after = (c["phase"] == AFTER) | (c["phase"] == NO_PHASE)
    counts = {
        Count.ATTEMPTED: len(seq),
        Count.ACKED: int(acked.sum()),
        Count.REJECTED: int((c["outcome"] == Outcome.REJECTED).sum()),
        Count.UNKNOWN: int((c["outcome"] == Outcome.UNKNOWN).sum()),
        Count.PROGRESS_BEFORE: int((acked & (c["phase"] <= BEFORE)).sum()),
        Count.PROGRESS_AFTER: int((acked & after).sum()),
        Count.OWED: int((owed & facts.was_read(c["topic"], partition)).sum()),
    }
    times, keys = _times_of_attempts(c, facts, acked), _order_of_keys(c, facts, acked)
    return joined([messages, totals(run, counts), *times, *keys])


def _order_of_keys(c: Columns, facts: Facts, acked: Bools) -> list[Summary]:
    """Summarise, for each slot of time, the highest offset of a keyed record acked in it and the lowest of one sent in it."""
    keyed = acked & (c["key"] >= 0) & (c["partition"] < 0) & (c["offset"] >= 0)
    if not keyed.any():
        return []
    place, offset = place_of(c["topic"][keyed], c["told_partition"][keyed]), c["offset"][keyed]
    acked_in, sent_in = ((c[name][keyed] - facts.zero_ns) // KEY_SLOT_NS for name in ("t_outcome", "t"))
    return [
        folded(facts.run, Space.KEY_ACKED, place, acked_in, highest_offset=offset),
        folded(facts.run, Space.KEY_SENT, place, sent_in, minus_lowest_offset=-offset),
    ]


def _times_of_attempts(c: Columns, facts: Facts, acked: Bools) -> list[Summary]:
    run = facts.run
    if not len(c["t"]):
        return []
    parts = [highest_total(run, Count.FIRST_ATTEMPT, -int(c["t"].min()))]
    sent = (c["t"] - facts.zero_ns) // facts.bucket_ns
    parts.append(folded(run, Space.BUCKET, sent, np.full_like(sent, ATTEMPTED_BIN), rows=np.ones_like(sent)))
    if not acked.any():
        return parts
    acked_at = c["t_outcome"][acked]
    partition = np.where(c["told_partition"] >= 0, c["told_partition"], c["partition"])[acked]
    latency, since = acked_at - c["t"][acked], acked_at - facts.zero_ns
    bins = np.floor(np.log(np.maximum(latency / 1e6, LEAST_MS)) / BIN).astype(np.int64)
    bucket, slot, place = since // facts.bucket_ns, since // SLOT_NS, place_of(c["topic"][acked], partition)
    return [
        *parts,
        highest_total(run, Count.LAST_ACK, int(acked_at.max())),
        folded(run, Space.BUCKET, bucket, bins, rows=np.ones_like(bins), longest_ns=latency),
        folded(run, Space.ACK_SLOTS, place, slot >> BITS, slots=bit_of(slot)),
    ]


def screen_log(c: Columns, facts: Facts) -> Summary:
    """Summarise the log as the final reader found it: topic, partition, offset, session, seq, txn, key, intended_topic and _partition,
    flags, and the booleans uncommitted, committed, promised, passed."""
    run, place, offset = facts.run, place_of(c["topic"], c["partition"]), c["offset"]
    for_group = (c["committed"] if facts.group_reads_committed else c["uncommitted"]) & (c["topic"] == INPUT)
    content = mixed(c["session"], c["seq"], c["txn"], c["key"], offset)
    positions = folded(
        run, Space.POSITION, place, offset >> BITS,
        readable=bit_of(offset, for_group), passed=bit_of(offset, c["passed"]), logged=bit_of(offset),
        log_rows=np.ones_like(offset), content=np.where(for_group, content, 0), why=why_where(c["flags"] != 0, Why.FLAGGED),
        **observers.to_be_seen(c, place, content, facts),
    )  # fmt: skip
    ours = (c["flags"] & (BAD_PAYLOAD | FOREIGN_RUN)) == 0
    c = c if ours.all() else {name: values[ours] for name, values in c.items()}
    below = below_commits(place, offset, for_group, facts)
    return joined([positions, *below, *_messages_in_log(c, facts), *_effects_owed(c, facts)])


def _effects_owed(c: Columns, facts: Facts) -> list[Summary]:
    """Summarise the effects that a pipeline must have made of the inputs that its group has passed."""
    if facts.transform is None:
        return []
    mine = c["passed"] & (c["topic"] == INPUT)
    session, seq, offset = c["session"][mine], c["seq"][mine], c["offset"][mine]
    place = place_of(c["topic"][mine], c["partition"][mine])
    count = facts.transform.effects(session, seq)
    parts = [totals(facts.run, {Count.INPUTS: len(seq)})]
    for number in range(int(count.max(initial=0))):
        has = count > number
        parts.append(_effects(facts.run, place[has], offset[has], session[has], seq[has], number, owed=True))
    return parts


def screen_effects(c: Columns, facts: Facts) -> Summary:
    """Summarise the effects found in the log that is owed: all columns of the table."""
    place = place_of(c["origin_topic"], c["origin_partition"])
    found = _effects(
        facts.run, place, c["origin_offset"], c["origin_session"], c["origin_seq"], c["number"], owed=False
    )
    return joined([found, totals(facts.run, {Count.EFFECTS: int((c["late"] == 0).sum())})])


def _effects(
    run: int, place: Ints, offset: Ints, session: Ints, seq: Ints, number: Ints | int, *, owed: bool
) -> Summary:
    ones = np.ones_like(offset)
    return folded(
        run, Space.EFFECT, place, offset >> BITS,
        **{"expected" if owed else "found": ones}, content=mixed(place, offset, session, seq, ones * number),
    )  # fmt: skip


def _messages_in_log(c: Columns, facts: Facts) -> list[Summary]:
    run, session, seq, place = facts.run, c["session"], c["seq"], place_of(c["topic"], c["partition"])
    named = c["intended_partition"] >= 0
    elsewhere = (named & (c["intended_partition"] != c["partition"])) | (c["topic"] != c["intended_topic"])
    read_in_txn = (c["txn"] > 0) & c["committed"]
    unsure = read_in_txn & (facts.fate_of(session, c["txn"]) != Fate.COMMITTED)
    order, overtaken = _order(c, facts, place)
    messages = folded(
        run, Space.MESSAGE, session, seq >> BITS,
        logged=bit_of(seq), promised=bit_of(seq, c["promised"]), log_rows=np.ones_like(seq),
        content=mixed(seq, c["key"], c["txn"]), places=mixed(seq, place, c["offset"]),
        why=why_where(elsewhere, Why.MISPLACED) | why_where(unsure, Why.READ_UNCOMMITTED) | why_where(overtaken, Why.OVERTAKEN),
    )  # fmt: skip
    counts = {Count.PLACED: int(named.sum()), Count.READ_IN_TXN: int(read_in_txn.sum())}
    parts = [messages, order]
    chosen = (c["key"] >= 0) & ~named
    if chosen.any():
        key = c["key"][chosen]
        block = place_of(c["topic"][chosen], key >> BITS)
        parts.append(folded(run, Space.KEY, block, c["partition"][chosen], keys=bit_of(key)))
        counts[Count.KEYED] = len(key)
    return [*parts, totals(run, counts)]


def _order(c: Columns, facts: Facts, place: Ints) -> tuple[Summary, Bools]:
    """Return the stretches of each session and partition, and mark the messages that are out of order.

    A message is out of order if it is behind a later one of its session in the same partition. Both messages of such a pair
    are marked, so a closer look at marked messages alone finds the same pair:

        offset  0 1 2 3 4
        seq     5 6 9 7 8
        marked      x x x
    """
    session, seq, offset = c["session"], c["seq"], c["offset"]
    marked = np.zeros(len(seq), dtype=np.bool_)
    # Only attempted messages: one phantom with a high number would put everything behind it in doubt.
    attempted = np.flatnonzero(facts.was_attempted(session, seq))
    if not len(attempted):
        return folded(facts.run, Space.RUN_OF_ORDER, attempted, attempted), marked
    order = attempted[np.lexsort((offset[attempted], place[attempted], session[attempted]))]
    s, p, q = session[order], place[order], seq[order]
    new = np.r_[True, (s[1:] != s[:-1]) | (p[1:] != p[:-1])]
    starts = np.flatnonzero(new)
    ends = np.r_[starts[1:], len(s)]
    # The highest seq so far in each group at once: lift each group above the one before it.
    lift = (np.cumsum(new) - 1) * (int(q.max()) - int(q.min()) + 1)
    highest = np.maximum.accumulate(q + lift)
    behind = highest != q + lift
    if behind.any():
        # The message ahead of each: the last row at which the highest seq so far was reached.
        reached = np.maximum.accumulate(np.where(behind, 0, np.arange(len(q))))
        marked[order[behind]] = True
        marked[order[reached[behind]]] = True
    runs = folded(
        facts.run, Space.RUN_OF_ORDER, mixed(s[starts], p[starts]), offset[order][starts],
        last_offset=offset[order][ends - 1], rows=np.ones(len(starts), dtype=np.int64),
        least_seq=np.minimum.reduceat(q, starts), highest_seq=np.maximum.reduceat(q, starts),
        session_sum=s[starts], place_sum=p[starts],
    )  # fmt: skip
    return runs, marked


def screen_deliveries(c: Columns, facts: Facts, trail: Trail) -> Summary:
    """Summarise deliveries to the group and to observers: topic, partition, offset, session, seq, txn, key, flags, t, reader,
    generation."""
    run, offset, session, seq = facts.run, c["offset"], c["session"], c["seq"]
    group = observers.of_group(c["reader"], facts)
    content = mixed(session, seq, c["txn"], c["key"], offset)
    positions = folded(
        run, Space.POSITION, place_of(c["topic"], c["partition"]), offset >> BITS,
        delivered=bit_of(offset, group), deliveries=group.astype(np.int64),
        content=np.where(group, content, 0), why=why_where(c["flags"] != 0, Why.FLAGGED),
        **observers.seen(c, content, group, facts),
    )  # fmt: skip
    ours = (c["flags"] & (BAD_PAYLOAD | FOREIGN_RUN)) == 0
    in_txn = ours & (c["txn"] > 0) & observers.promised_committed(c["reader"], facts)
    doubtful = in_txn & (facts.fate_of(session, c["txn"]) != Fate.COMMITTED)
    early = in_txn & (c["t"] < facts.asked_at(session, c["txn"])) if in_txn.any() else in_txn
    bucket = (c["t"][group] - facts.zero_ns) // facts.bucket_ns
    parts = [
        positions,
        totals(run, {Count.READ_IN_TXN: int(in_txn.sum())}),
        folded(run, Space.BUCKET, bucket, np.full_like(bucket, DELIVERED_BIN), rows=np.ones_like(bucket)),
    ]
    for which, why in ((doubtful, Why.READ_UNCOMMITTED), (early, Why.PREMATURE)):
        if which.any():
            blocks = seq[which] >> BITS
            parts.append(folded(run, Space.MESSAGE, session[which], blocks, why=np.full_like(blocks, why)))
    to_group = c if group.all() else {name: values[group] for name, values in c.items()}
    return joined([*parts, *given_by_commits(to_group, facts), screen_steps(c, facts, trail)])
