"""The kernels: a batch of rows of attempts, log, effects or deliveries becomes block summaries. Pure numpy.

Their columns are arrays of int64 (booleans where told); -1 stands for null. See harness.reconcile.screen.summaries.
"""

from __future__ import annotations

import numpy as np

from harness.contracts import Outcome
from harness.ledger.message import BAD_PAYLOAD, FOREIGN_RUN
from harness.ledger.transform import INPUT
from harness.reconcile.arrays import Bools, Columns, Ints, mixed, place_of
from harness.reconcile.screen import observers
from harness.reconcile.screen.reader_steps import Trail, screen_steps
from harness.reconcile.screen.summaries import (
    ATTEMPTED_BIN,
    BIN,
    BITS,
    DELIVERED_BIN,
    KEY_SLOT_NS,
    LEAST_MS,
    SLOT_NS,
    Count,
    Facts,
    Fate,
    Space,
    Summary,
    Why,
    bit_of,
    folded,
    joined,
    total,
    why_where,
)
from harness.reconcile.seal.rows import AFTER, BEFORE

NO_PHASE = -1  # null: there was no fault window


def screen_attempts(c: Columns, facts: Facts) -> Summary:
    """Attempts and their outcomes: session, seq, t, topic, partition, key, txn, outcome, t_outcome, told_partition,
    offset, phase; -1 stands for null."""
    run, session, seq = facts.run, c["session"], c["seq"]
    acked = c["outcome"] == Outcome.ACKED
    fate = facts.fate_of(session, c["txn"])
    in_txn = c["txn"] > 0
    owed = np.where(in_txn, (fate == Fate.COMMITTED) & (c["outcome"] != Outcome.REJECTED), acked)
    placed = c["offset"] >= 0
    partition = np.where(c["told_partition"] >= 0, c["told_partition"], c["partition"])
    messages = folded(
        run, Space.MESSAGE, session, seq >> BITS,
        m0=bit_of(seq), m1=bit_of(seq, owed), n1=placed.astype(np.int64),
        h0=mixed(seq, c["key"], c["txn"]),
        h1=np.where(placed, mixed(seq, place_of(c["topic"], c["told_partition"]), c["offset"]), 0),
        why=why_where(in_txn & (fate == Fate.OPEN), Why.OPEN_TXN),
    )  # fmt: skip
    counts = [
        total(run, Count.ATTEMPTED, len(seq)),
        total(run, Count.ACKED, int(acked.sum())),
        total(run, Count.REJECTED, int((c["outcome"] == Outcome.REJECTED).sum())),
        total(run, Count.UNKNOWN, int((c["outcome"] == Outcome.UNKNOWN).sum())),
        total(run, Count.PROGRESS_BEFORE, int((acked & (c["phase"] <= BEFORE)).sum())),
        total(
            run, Count.PROGRESS_AFTER, int((acked & ((c["phase"] == AFTER) | (c["phase"] == NO_PHASE))).sum())
        ),
        total(run, Count.OWED, int((owed & facts.was_read(c["topic"], partition)).sum())),
    ]
    return joined([messages, *counts, *_times_of_attempts(c, facts, acked), *_order_of_keys(c, facts, acked)])


def _order_of_keys(c: Columns, facts: Facts, acked: Bools) -> list[Summary]:
    """Up to which offset keyed records were acked in each slot of time, and from which on they were attempted."""
    keyed = acked & (c["key"] >= 0) & (c["partition"] < 0) & (c["offset"] >= 0)
    if not keyed.any():
        return []
    place, offset = place_of(c["topic"][keyed], c["told_partition"][keyed]), c["offset"][keyed]
    acked_in, sent_in = ((c[name][keyed] - facts.zero_ns) // KEY_SLOT_NS for name in ("t_outcome", "t"))
    return [
        folded(facts.run, Space.KEY_ACKED, place, acked_in, x=offset),
        folded(facts.run, Space.KEY_SENT, place, sent_in, x=-offset),
    ]


def _times_of_attempts(c: Columns, facts: Facts, acked: Bools) -> list[Summary]:
    run = facts.run
    if not len(c["t"]):
        return []
    parts = [total(run, Count.FIRST_ATTEMPT, 0, -int(c["t"].min()))]
    sent = (c["t"] - facts.zero_ns) // facts.bucket_ns
    parts.append(folded(run, Space.BUCKET, sent, np.full_like(sent, ATTEMPTED_BIN), n0=np.ones_like(sent)))
    if not acked.any():
        return parts
    told = c["t_outcome"][acked]
    partition = np.where(c["told_partition"] >= 0, c["told_partition"], c["partition"])[acked]
    latency = told - c["t"][acked]
    since = told - facts.zero_ns
    bins = np.floor(np.log(np.maximum(latency / 1e6, LEAST_MS)) / BIN).astype(np.int64)
    parts.append(total(run, Count.LAST_ACK, 0, int(told.max())))
    parts.append(folded(run, Space.BUCKET, since // facts.bucket_ns, bins, n0=np.ones_like(bins), x=latency))
    slot = since // SLOT_NS
    parts.append(
        folded(run, Space.ACK_SLOTS, place_of(c["topic"][acked], partition), slot >> BITS, m0=bit_of(slot))
    )
    return parts


def screen_log(c: Columns, facts: Facts) -> Summary:
    """The log as the final reader found it: topic, partition, offset, session, seq, txn, key, intended_topic and _partition,
    flags, and the booleans uncommitted, committed, promised, passed."""
    run, place, offset = facts.run, place_of(c["topic"], c["partition"]), c["offset"]
    for_group = (c["committed"] if facts.group_reads_committed else c["uncommitted"]) & (c["topic"] == INPUT)
    content = mixed(c["session"], c["seq"], c["txn"], c["key"], offset)
    positions = folded(
        run, Space.POSITION, place, offset >> BITS,
        m0=bit_of(offset, for_group), m1=bit_of(offset, c["passed"]), m2=bit_of(offset),
        n0=np.ones_like(offset), h0=np.where(for_group, content, 0), why=why_where(c["flags"] != 0, Why.FLAGGED),
        **observers.to_be_seen(c, place, content, facts),
    )  # fmt: skip
    ours = (c["flags"] & (BAD_PAYLOAD | FOREIGN_RUN)) == 0
    strange = total(run, Count.STRANGE, int((~ours).sum()))
    c = c if ours.all() else {name: values[ours] for name, values in c.items()}
    below = _below_commits(place, offset, for_group, facts)
    return joined([positions, strange, *below, *_messages_in_log(c, facts), *_effects_owed(c, facts)])


def _effects_owed(c: Columns, facts: Facts) -> list[Summary]:
    """What a pipeline has to have made of the inputs that its group has passed."""
    if facts.transform is None:
        return []
    mine = c["passed"] & (c["topic"] == INPUT)
    session, seq, offset = c["session"][mine], c["seq"][mine], c["offset"][mine]
    place = place_of(c["topic"][mine], c["partition"][mine])
    count = facts.transform.effects(session, seq)
    parts = [total(facts.run, Count.INPUTS, len(seq))]
    for number in range(int(count.max(initial=0))):
        has = count > number
        parts.append(_effects(facts.run, place[has], offset[has], session[has], seq[has], number, owed=True))
    return parts


def screen_effects(c: Columns, facts: Facts) -> Summary:
    """What the log that is owed has of effects: the columns of the table, as they are."""
    place = place_of(c["origin_topic"], c["origin_partition"])
    found = _effects(
        facts.run, place, c["origin_offset"], c["origin_session"], c["origin_seq"], c["number"], owed=False
    )
    return joined([found, total(facts.run, Count.EFFECTS, int((c["late"] == 0).sum()))])


def _effects(
    run: int, place: Ints, offset: Ints, session: Ints, seq: Ints, number: Ints | int, *, owed: bool
) -> Summary:
    ones = np.ones_like(offset)
    return folded(
        run, Space.EFFECT, place, offset >> BITS,
        **{"n0" if owed else "n1": ones}, h0=mixed(place, offset, session, seq, ones * number),
    )  # fmt: skip


def _below_commits(place: Ints, offset: Ints, readable: Bools, facts: Facts) -> list[Summary]:
    """The highest readable offset below each committed one, as far as this batch knows."""
    parts = []
    for at, of_place in facts.commits.items():
        commits, mine = of_place.offsets_sorted, np.sort(offset[readable & (place == at)])
        if not len(mine):
            continue
        # Commits from the first that has a record of this batch below it to the first that has all of them.
        first, last = (int(np.searchsorted(commits, mine[end], side="right")) for end in (0, -1))
        number = np.arange(first, min(last + 1, len(commits)))
        highest = mine[np.searchsorted(mine, commits[number], side="left") - 1]
        parts.append(folded(facts.run, Space.BELOW, np.full_like(number, at), number, x=highest + 1))
    return parts


def _messages_in_log(c: Columns, facts: Facts) -> list[Summary]:
    run, session, seq, place = facts.run, c["session"], c["seq"], place_of(c["topic"], c["partition"])
    named = c["intended_partition"] >= 0
    elsewhere = (named & (c["intended_partition"] != c["partition"])) | (c["topic"] != c["intended_topic"])
    read_in_txn = (c["txn"] > 0) & c["committed"]
    unsure = read_in_txn & (facts.fate_of(session, c["txn"]) != Fate.COMMITTED)
    order, overtaken = _order(c, facts, place)
    messages = folded(
        run, Space.MESSAGE, session, seq >> BITS,
        m2=bit_of(seq), m3=bit_of(seq, c["promised"]), n0=np.ones_like(seq),
        h0=mixed(seq, c["key"], c["txn"]), h1=mixed(seq, place, c["offset"]),
        why=why_where(elsewhere, Why.MISPLACED) | why_where(unsure, Why.READ_UNCOMMITTED) | why_where(overtaken, Why.OVERTAKEN),
    )  # fmt: skip
    parts = [
        messages,
        order,
        total(run, Count.PLACED, int(named.sum())),
        total(run, Count.READ_IN_TXN, int(read_in_txn.sum())),
    ]
    chosen = (c["key"] >= 0) & ~named
    if chosen.any():
        key = c["key"][chosen]
        block = place_of(c["topic"][chosen], key >> BITS)
        parts.append(folded(run, Space.KEY, block, c["partition"][chosen], m0=bit_of(key)))
        parts.append(total(run, Count.KEYED, len(key)))
    return parts


def _order(c: Columns, facts: Facts, place: Ints) -> tuple[Summary, Bools]:
    """Stretches of order for stitching, and who stands behind, or is, a later message of its session.

    Both sides of a pair are marked: a closer look at these alone then finds the same pair.
    """
    session, seq, offset = c["session"], c["seq"], c["offset"]
    marked = np.zeros(len(seq), dtype=np.bool_)
    # One phantom with a high number would put everything behind it in doubt.
    attempted = np.flatnonzero(facts.was_attempted(session, seq))
    if not len(attempted):
        none = np.zeros(0, dtype=np.int64)
        return joined([folded(facts.run, Space.RUN_OF_ORDER, none, none)]), marked
    order = attempted[np.lexsort((offset[attempted], place[attempted], session[attempted]))]
    s, p, q = session[order], place[order], seq[order]
    starts = np.flatnonzero(np.r_[True, (s[1:] != s[:-1]) | (p[1:] != p[:-1])])
    ends = np.r_[starts[1:], len(s)]
    group = np.cumsum(np.r_[False, (s[1:] != s[:-1]) | (p[1:] != p[:-1])])
    # The highest seq so far in each group at once: lift each group above the one before it.
    lift = group * (int(q.max()) - int(q.min()) + 1)
    highest = np.maximum.accumulate(q + lift)
    behind = highest != q + lift
    if behind.any():
        # Who is ahead of each: the last row at which the highest so far was reached.
        reached = np.maximum.accumulate(np.where(behind, 0, np.arange(len(q))))
        marked[order[behind]] = True
        marked[order[reached[behind]]] = True
    least = np.minimum.reduceat(q, starts)
    most = np.maximum.reduceat(q, starts)
    place_and_session = mixed(s[starts], p[starts])
    runs = folded(
        facts.run, Space.RUN_OF_ORDER, place_and_session, offset[order][starts],
        m0=offset[order][ends - 1], m1=least, m2=most, n0=np.ones(len(starts), dtype=np.int64),
        n1=s[starts], n2=p[starts],
    )  # fmt: skip
    return runs, marked


def screen_deliveries(c: Columns, facts: Facts, trail: Trail) -> Summary:
    """What the group and observers were given: topic, partition, offset, session, seq, txn, key, flags, t, reader, generation."""
    run, offset, session, seq = facts.run, c["offset"], c["session"], c["seq"]
    group = observers.of_group(c["reader"], facts)
    content = mixed(session, seq, c["txn"], c["key"], offset)
    positions = folded(
        run, Space.POSITION, place_of(c["topic"], c["partition"]), offset >> BITS,
        m3=bit_of(offset, group), n1=group.astype(np.int64),
        h0=np.where(group, content, 0), why=why_where(c["flags"] != 0, Why.FLAGGED),
        **observers.seen(c, content, group, facts),
    )  # fmt: skip
    ours = (c["flags"] & (BAD_PAYLOAD | FOREIGN_RUN)) == 0
    in_txn = ours & (c["txn"] > 0) & observers.promised_committed(c["reader"], facts)
    doubtful = in_txn & (facts.fate_of(session, c["txn"]) != Fate.COMMITTED)
    early = in_txn & (c["t"] < facts.asked_at(session, c["txn"])) if in_txn.any() else in_txn
    bucket = (c["t"][group] - facts.zero_ns) // facts.bucket_ns
    parts = [
        positions,
        total(run, Count.STRANGE, int((~ours).sum())),
        total(run, Count.READ_IN_TXN, int(in_txn.sum())),
        folded(run, Space.BUCKET, bucket, np.full_like(bucket, DELIVERED_BIN), n0=np.ones_like(bucket)),
    ]
    for which, why in ((doubtful, Why.READ_UNCOMMITTED), (early, Why.PREMATURE)):
        if which.any():
            blocks = seq[which] >> BITS
            parts.append(folded(run, Space.MESSAGE, session[which], blocks, why=np.full_like(blocks, why)))
    to_group = c if group.all() else {name: values[group] for name, values in c.items()}
    return joined([*parts, *_given_by_commits(to_group, facts), screen_steps(c, facts, trail)])


def _given_by_commits(c: Columns, facts: Facts) -> list[Summary]:
    """Up to which offset the group was given each partition at the time of each commit, as far as this batch knows."""
    parts = []
    place = place_of(c["topic"], c["partition"])
    for at, of_place in facts.commits.items():
        commits, mine = of_place.t, place == at
        if not mine.any():
            continue
        t, offset = c["t"][mine], c["offset"][mine]
        if np.any(t[1:] < t[:-1]):
            order = np.argsort(t, kind="stable")
            t, offset = t[order], offset[order]
        highest = np.maximum.accumulate(offset)
        # Commits from the first that knows a row of this batch to the first that knows all of them.
        first, last = (int(np.searchsorted(commits, t[end], side="left")) for end in (0, -1))
        number = np.arange(first, min(last + 1, len(commits)))
        given = highest[np.searchsorted(t, commits[number], side="right") - 1] + 1
        parts.append(folded(facts.run, Space.GIVEN, np.full_like(number, at), number, x=given))
    return parts
