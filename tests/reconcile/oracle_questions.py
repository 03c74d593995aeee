"""The questions of the oracle, in DuckDB's SQL: one per anomaly."""

from __future__ import annotations

from harness.ledger.message import FOREIGN_RUN
from tests.reconcile.oracle_steps import ACKED, DAMAGED, JUMPED_SHOWN, OURS, OVERCOMMITTED_SHOWN

# Each gives run, messages, offsets: one row a finding.
QUESTIONS = {
    "lost, expired, late": """
        SELECT run, kind AS anomaly, [id] AS messages,
               known([coalesce("offset", place_offset, CASE kind WHEN 'expired' THEN seen_offset END)]) AS offsets
        FROM missing WHERE kind IN ('lost', 'expired', 'late')""",
    "duplicated": """
        SELECT p.run, [named(s.sender, p.session, p.seq)] AS messages,
               list_transform(places, lambda x: x.o) AS offsets
        FROM first_place p LEFT JOIN sessions s USING (run, session) WHERE len(places) > 1""",
    "reordered": """
        SELECT a.run, [a.id, arg_max(b.id, b.seq)] AS messages, [a.place_offset, arg_max(b.place_offset, b.seq)] AS offsets
        FROM placed a JOIN placed b USING (run, session, place_topic, place_partition)
        WHERE a.partitions = 1 AND b.partitions = 1 AND b.place_offset < a.place_offset AND b.seq > a.seq
        GROUP BY a.run, a.session, a.seq, a.id, a.place_offset""",
    "key_reordered": """
        SELECT run, [id, other] AS messages, [place_offset, other_at] AS offsets FROM overtaken
        QUALIFY row_number() OVER (PARTITION BY run, session, seq ORDER BY other_sent DESC, came_first) = 1""",
    "misplaced": """
        SELECT s.run, [s.id] AS messages, [s.place_offset] AS offsets FROM placed s
        WHERE EXISTS (FROM place p WHERE p.run = s.run AND p.session = s.session AND p.seq = s.seq
                      AND (p.topic <> s.topic OR s.partition >= 0 AND p.partition <> s.partition))
        UNION ALL
        SELECT run, list(id ORDER BY place_partition), list(place_offset ORDER BY place_partition) FROM (
            SELECT s.run, s.key, p.topic, p.partition AS place_partition, arg_min(s.id, p."offset") AS id,
                   min(p."offset") AS place_offset
            FROM placed s JOIN place p ON p.run = s.run AND p.session = s.session AND p.seq = s.seq
            JOIN runs r ON r.run = s.run
            WHERE s.key >= 0 AND s.partition < 0 AND r.topic_unchanged GROUP BY ALL
        ) GROUP BY run, key, topic HAVING count(*) > 1""",
    "phantom": f"""
        SELECT run, [named(sender, session, seq)] AS messages, known([min("offset")]) AS offsets FROM (
            SELECT run, session, seq, "offset" FROM place
            UNION ALL SELECT run, session, seq, NULL FROM deliveries WHERE {OURS}
        ) LEFT JOIN sessions USING (run, session) ANTI JOIN attempts USING (run, session, seq)
        GROUP BY run, session, seq, sender
        UNION ALL
        SELECT run, [], ["offset"] FROM (
            SELECT run, topic, partition, "offset" FROM log WHERE flags & {FOREIGN_RUN} <> 0
            UNION SELECT run, topic, partition, "offset" FROM deliveries WHERE flags & {FOREIGN_RUN} <> 0)""",
    "corrupted": f"""
        SELECT run, known([id]) AS messages, ["offset"] AS offsets FROM (
            SELECT run, topic, partition, "offset" FROM log WHERE {DAMAGED}
            UNION SELECT run, topic, partition, "offset" FROM deliveries WHERE {DAMAGED}
        ) LEFT JOIN named_holder USING (run, topic, partition, "offset")
        UNION ALL
        SELECT s.run, [s.id], known([p."offset"])
        FROM sent s LEFT JOIN first_place p ON p.run = s.run AND p.session = s.session AND p.seq = s.seq
        WHERE EXISTS (FROM (SELECT run, session, seq, key, txn FROM log WHERE {OURS}
                            UNION ALL SELECT run, session, seq, key, txn FROM deliveries WHERE {OURS}) r
                      WHERE r.run = s.run AND r.session = s.session AND r.seq = s.seq
                            AND (r.key <> s.key OR r.txn <> s.txn))""",
    "offset_conflict": """
        SELECT run, list_sort(list(DISTINCT named(sender, session, seq))) AS messages, ["offset"] AS offsets
        FROM claim LEFT JOIN sessions USING (run, session) GROUP BY run, topic, partition, "offset"
        HAVING count(DISTINCT (session, seq)) > 1""",
    "undelivered": """
        SELECT run, known([id]) AS messages, ["offset"] AS offsets
        FROM (SELECT DISTINCT run, topic, partition, "offset" FROM log WHERE passed)
        ANTI JOIN to_group USING (run, topic, partition, "offset")
        LEFT JOIN named_holder USING (run, topic, partition, "offset")""",
    "redelivered": """
        SELECT run, known([any_value(id)]) AS messages, ["offset"] AS offsets
        FROM to_group LEFT JOIN named_holder USING (run, topic, partition, "offset")
        GROUP BY run, topic, partition, "offset" HAVING count(*) > 1""",
    "skipped": f"""
        SELECT g.run, known([g.previous_id, g.id] || list(r.id ORDER BY r."offset")[:{JUMPED_SHOWN}]) AS messages,
               [g.previous, g."offset"] || list(r."offset" ORDER BY r."offset")[:{JUMPED_SHOWN}] AS offsets
        FROM given g JOIN readable r ON r.run = g.run AND r.topic = g.topic AND r.partition = g.partition
                                        AND r."offset" > g.previous AND r."offset" < g."offset"
        WHERE g.generation = g.previous_generation
        GROUP BY g.run, g.reader, g.topic, g.partition, g.file_row_number, g.previous_id, g.id, g.previous, g."offset" """,
    "rewound": """
        SELECT run, known([previous_id, id]) AS messages, [previous, "offset"] AS offsets
        FROM given WHERE "offset" <= previous""",
    "overcommitted": f"""
        SELECT c.run, known(list(r.id ORDER BY r."offset")[:{OVERCOMMITTED_SHOWN}]) AS messages,
               known([c.committed, coalesce(c.given + 1, b.start)]) AS offsets
        FROM (SELECT DISTINCT run, t, reader, topic, partition, "offset" AS committed,
                     (SELECT max(d."offset") FROM to_group d WHERE d.run = o.run AND d.topic = o.topic
                                                  AND d.partition = o.partition AND d.t <= o.t) AS given
              FROM commits o WHERE outcome = {ACKED}) c
        JOIN readable r ON r.run = c.run AND r.topic = c.topic AND r.partition = c.partition
                           AND r."offset" < c.committed AND (c.given IS NULL OR r."offset" > c.given)
        LEFT JOIN bounds b ON b.run = c.run AND b.topic = c.topic AND b.partition = c.partition
        GROUP BY c.run, c.t, c.reader, c.topic, c.partition, c.committed, c.given, b.start""",
    "aborted_read": f"""
        SELECT DISTINCT ON (run, session, seq, topic, partition, "offset", reader)
               run, [named(sender, session, seq)] AS messages, ["offset"] AS offsets
        FROM (SELECT run, session, seq, topic, partition, "offset", reader FROM promised WHERE {OURS}
              UNION ALL SELECT run, session, seq, topic, partition, "offset", -1 FROM log WHERE committed AND {OURS})
        JOIN txn_of_message USING (run, session, seq) JOIN fate USING (run, session, txn)
        LEFT JOIN sessions USING (run, session) WHERE fate = 'aborted'""",
    "premature_read": f"""
        SELECT DISTINCT ON (run, session, seq, topic, partition, "offset", reader)
               run, [named(sender, session, seq)] AS messages, ["offset"] AS offsets
        FROM (SELECT run, t, session, seq, topic, partition, "offset", reader FROM promised WHERE {OURS}) d
        JOIN txn_of_message USING (run, session, seq) JOIN fate USING (run, session, txn)
        LEFT JOIN sessions USING (run, session) WHERE fate <> 'aborted' AND d.t < asked""",
    "torn": """
        SELECT run, list(id ORDER BY seq) FILTER (kind = 'lost') AS messages,
               known(list("offset" ORDER BY seq) FILTER (kind = 'lost')) AS offsets
        FROM (SELECT s.run, s.session, s.txn, s.seq, s.id, s."offset", s.visible, m.kind
              FROM sent s LEFT JOIN missing m ON m.run = s.run AND m.session = s.session AND m.seq = s.seq
              WHERE s.txn > 0 AND s.fate = 'committed')
        GROUP BY run, session, txn HAVING bool_or(visible) AND bool_or(coalesce(kind = 'lost', false))""",
    "two_owners": """
        SELECT a.run, [] AS messages, [] AS offsets FROM owned a JOIN owned b USING (run, topic, partition)
        WHERE a.reader <> b.reader AND a.ended = 'revoked' AND b.ended = 'revoked' AND b.since >= a.since AND b.since < a.until
              AND b.until > a.until""",
    "double_effect": """
        SELECT e.run, [named(any_value(o.sender), origin_session, origin_seq)]
                      || list(named(s.sender, e.session, e.seq) ORDER BY e.topic, e.partition, e."offset") AS messages,
               list(e."offset" ORDER BY e.topic, e.partition, e."offset") AS offsets
        FROM (SELECT DISTINCT ON (run, origin_topic, origin_partition, origin_offset, number, session, seq) * FROM effects WHERE late = 0
              ORDER BY topic, partition, "offset") e
        LEFT JOIN sessions s ON s.run = e.run AND s.session = e.session
        LEFT JOIN sessions o ON o.run = e.run AND o.session = e.origin_session
        GROUP BY e.run, origin_topic, origin_partition, origin_offset, origin_session, origin_seq, number
        HAVING count(*) > 1""",
    "missing_effect": """
        SELECT i.run, [any_value(named(s.sender, i.session, i.seq))] AS messages, [i."offset"] AS offsets
        FROM owed_effect i ANTI JOIN effects e
            ON e.run = i.run AND e.origin_partition = i.partition AND e.origin_offset = i."offset"
               AND e.origin_session = i.session AND e.origin_seq = i.seq AND e.number = i.number
        LEFT JOIN sessions s ON s.run = i.run AND s.session = i.session GROUP BY i.run, i.partition, i."offset" """,
}  # fmt: skip


ANOMALIES = frozenset(name for names in QUESTIONS for name in names.split(", "))
