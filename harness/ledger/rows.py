"""The rows of journals: attempts with their outcomes, deliveries, and effects of a pipeline."""

from __future__ import annotations

import numpy as np

ATTEMPT_MARK = 0xA77E
OUTCOME_MARK = 0x0C0E

ATTEMPT = np.dtype(
    [
        ("t_attempt", "<i8"),
        ("key", "<i4"),
        ("txn", "<u4"),
        ("partition", "<i2"),  # intended; -1: the client chose
        ("flags", "u1"),  # message.ABORT_INTENDED
        ("topic", "u1"),
        ("attempt_mark", "<u4"),
        ("t_outcome", "<i8"),
        ("offset", "<i8"),  # -1: the client reported none
        ("told_partition", "<i2"),
        ("error", "<i2"),  # the client library's error code, 0: none
        ("outcome", "u1"),
        ("spare", "u1"),
        ("outcome_mark", "<u2"),
    ]
)
DELIVERY = np.dtype(
    [
        ("t", "<i8"),
        ("offset", "<i8"),
        ("seq", "<i8"),
        ("session", "<u4"),
        ("txn", "<u4"),
        ("key", "<i4"),
        ("partition", "<i2"),
        ("intended_partition", "<i2"),
        ("topic", "u1"),
        ("flags", "u1"),  # message.BAD_*, FOREIGN_RUN: damage of the record
        ("intent", "u1"),  # message.ABORT_INTENDED as the payload says
        ("intended_topic", "u1"),
        ("leader_epoch", "<i4"),  # -1: not reported
    ]
)
# A record that a pipeline made of another one: its message, its position, and its origin.
EFFECT = np.dtype(
    [
        ("offset", "<i8"),
        ("seq", "<i8"),
        ("origin_offset", "<i8"),
        ("origin_seq", "<i8"),
        ("session", "<u4"),
        ("origin_session", "<u4"),
        ("partition", "<i2"),
        ("origin_partition", "<i2"),
        ("topic", "u1"),
        ("origin_topic", "u1"),
        ("number", "u1"),  # of the effects of one message, from 0 on
        ("spare", "u1"),
    ]
)
