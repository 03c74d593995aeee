"""Steps on the way to the questions of the oracle, in DuckDB's SQL: each is a table."""

from __future__ import annotations

from harness.contracts import Outcome
from harness.ledger.message import BAD_HEADER, BAD_KEY, BAD_PAYLOAD, BAD_TIMESTAMP, FOREIGN_RUN

JUMPED_SHOWN, OVERCOMMITTED_SHOWN = 100, 10  # how many messages a finding lists at most
CONCURRENT_NS = 200_000_000  # sends of different producers closer than this have no order
ACKED, REJECTED = int(Outcome.ACKED), int(Outcome.REJECTED)
OURS = f"flags & {BAD_PAYLOAD | FOREIGN_RUN} = 0"
DAMAGED = f"flags & {BAD_PAYLOAD | BAD_KEY | BAD_HEADER | BAD_TIMESTAMP} <> 0"
ASKED = ("runs", "sessions", "readers", "attempts", "deliveries", "log", "effects", "transactions", "commits", "bounds",
          "assignments")  # fmt: skip


# Steps on the way, each a table. Names of columns are those of the sealed tables where they mean the same.
STEPS = {
    "handing": "SELECT run, t, reader, how, topic, unnest(partitions) AS partition FROM assignments",
    # Observers are not members of the group; an observer of read_uncommitted gets uncommitted records by design.
    "to_group": """
        SELECT * FROM deliveries SEMI JOIN (SELECT run, reader FROM readers WHERE NOT observer) USING (run, reader)""",
    "promised": """
        SELECT * FROM deliveries ANTI JOIN (
            SELECT run, reader FROM readers WHERE observer AND isolation = 'read_uncommitted') USING (run, reader)""",
    # Claims that a message is at a position.
    "claim": f"""
        SELECT run, topic, told_partition AS partition, "offset", session, seq FROM attempts WHERE "offset" IS NOT NULL
        UNION ALL SELECT run, topic, partition, "offset", session, seq FROM log WHERE {OURS}
        UNION ALL SELECT run, topic, partition, "offset", session, seq FROM deliveries WHERE {OURS}""",
    # The message of a position, for findings about positions.
    "holder": """
        SELECT run, topic, partition, "offset", min(struct_pack(session, seq)) AS message
        FROM claim GROUP BY ALL""",
    "named_holder": """
        SELECT h.*, named(s.sender, h.message.session, h.message.seq) AS id
        FROM holder h LEFT JOIN sessions s ON s.run = h.run AND s.session = h.message.session""",
    "place": f"""
        SELECT DISTINCT run, session, seq, topic, partition, "offset" FROM log WHERE {OURS}""",
    # A payload that cannot be read is still the message that others claim to be there.
    "recognised": f"""
        SELECT DISTINCT h.run, h.message.session AS session, h.message.seq AS seq
        FROM log l JOIN holder h USING (run, topic, partition, "offset") WHERE l.flags & {BAD_PAYLOAD} <> 0""",
    # Steps and commits name a record only if its payload is readable.
    "readable": f"""
        SELECT l.run, l.topic, l.partition, l."offset",
               CASE WHEN {OURS} THEN named(s.sender, l.session, l.seq) END AS id
        FROM log l JOIN runs r USING (run) LEFT JOIN sessions s USING (run, session)
        WHERE CASE r.group_isolation WHEN 'read_committed' THEN l.committed ELSE l.uncommitted END""",
    # The transaction of a message: as attempted; without an attempt, as its record says.
    "txn_of_message": f"""
        SELECT run, session, seq, txn FROM attempts
        UNION SELECT run, session, seq, max(txn) FROM (
            SELECT run, session, seq, txn FROM log WHERE {OURS}
            UNION ALL SELECT run, session, seq, txn FROM deliveries WHERE {OURS}
        ) ANTI JOIN attempts USING (run, session, seq) GROUP BY ALL""",
    "seen_committed": f"""
        SELECT run, session, txn FROM log WHERE committed AND txn > 0 AND {OURS}
        UNION SELECT run, session, txn FROM deliveries JOIN readers USING (run, reader)
        WHERE isolation = 'read_committed' AND txn > 0 AND {OURS}""",
    "fate": f"""
        SELECT run, session, txn, CASE
            WHEN bool_or(step = 'fenced') THEN 'aborted'
            WHEN bool_or(coalesce(step = 'ended' AND did = 'commit' AND outcome = {ACKED}, false)) THEN 'committed'
            WHEN bool_or(coalesce(step = 'ended' AND did = 'abort' AND outcome = {ACKED}, false)) THEN 'aborted'
            WHEN bool_or(coalesce(step = 'ended' AND did = 'commit' AND outcome = {REJECTED}, false)) THEN 'aborted'
            WHEN NOT bool_or(coalesce(did = 'commit', false)) THEN 'aborted'
            WHEN (run, session, txn) IN (SELECT (run, session, txn) FROM seen_committed) THEN 'committed'
            ELSE 'unknown' END AS fate,
            min(t) FILTER (step = 'end') AS asked
        FROM transactions WHERE txn > 0 GROUP BY run, session, txn""",
    "sent": f"""
        SELECT a.*, named(s.sender, a.session, a.seq) AS id, s.sender,
               f.fate, a.txn = 0 AND a.outcome = {ACKED} OR f.fate = 'committed' AND a.outcome <> {REJECTED} AS owed,
               EXISTS (FROM log l WHERE l.run = a.run AND l.session = a.session AND l.seq = a.seq AND l.promised
                                        AND {OURS.replace("flags", "l.flags")})
               OR EXISTS (FROM recognised r WHERE r.run = a.run AND r.session = a.session AND r.seq = a.seq) AS visible
        FROM attempts a
        LEFT JOIN fate f ON f.run = a.run AND f.session = a.session AND f.txn = a.txn
        LEFT JOIN sessions s ON s.run = a.run AND s.session = a.session""",
    # Its first place in the log.
    "first_place": """
        SELECT run, session, seq, min("offset") AS "offset",
               min(topic) AS topic, min(partition) AS partition,
               count(DISTINCT (topic, partition)) AS partitions,
               list(struct_pack(topic, partition, o := "offset") ORDER BY topic, partition, "offset") AS places
        FROM place GROUP BY ALL""",
    "placed": """
        SELECT s.*, p.topic AS place_topic, p.partition AS place_partition, p."offset" AS place_offset, p.partitions
        FROM sent s JOIN first_place p USING (run, session, seq)""",
    # Where readers got it, and whether that is below the start of the log by now.
    "seen_at": f"""
        SELECT d.run, d.session, d.seq, min(d.partition) AS partition, min(d."offset") AS "offset",
               coalesce(bool_or(d."offset" < b.start), false) AS below
        FROM deliveries d LEFT JOIN bounds b USING (run, topic, partition) WHERE {OURS} GROUP BY ALL""",
    # The start of the log where each message must be, and whether that was read whole; of one that may be in any
    # partition all of its topic count.
    "sought": """
        SELECT m.run, m.session, m.seq, coalesce(bool_and(b.whole), false) AS whole, max(b.start) AS start
        FROM (SELECT a.*, coalesce(a.told_partition, p.partition, v.partition,
                                   CASE WHEN a.partition >= 0 THEN a.partition END) AS must
              FROM sent a
              LEFT JOIN first_place p ON p.run = a.run AND p.session = a.session AND p.seq = a.seq
              LEFT JOIN seen_at v ON v.run = a.run AND v.session = a.session AND v.seq = a.seq
              WHERE a.owed AND NOT a.visible) m
        LEFT JOIN bounds b ON b.run = m.run AND b.topic = m.topic AND (m.must IS NULL OR b.partition = m.must)
        GROUP BY ALL""",
    "missing": f"""
        SELECT m.*, CASE
            WHEN NOT b.whole THEN 'not asked'
            WHEN m."offset" < b.start OR m."offset" IS NULL AND v.below THEN 'expired'
            WHEN EXISTS (FROM log l JOIN bounds lb USING (run, topic, partition)
                         WHERE l.run = m.run AND l.session = m.session AND l.seq = m.seq AND l.uncommitted
                               AND {OURS.replace("flags", "l.flags")} AND l."offset" >= lb.stable) THEN 'late'
            WHEN m."offset" IS NULL AND v.below IS NULL AND p."offset" IS NULL AND b.start > 0 THEN 'unplaced'
            ELSE 'lost' END AS kind, p."offset" AS place_offset, v."offset" AS seen_offset
        FROM sent m JOIN sought b USING (run, session, seq)
        LEFT JOIN seen_at v ON v.run = m.run AND v.session = m.session AND v.seq = m.seq
        LEFT JOIN first_place p ON p.run = m.run AND p.session = m.session AND p.seq = m.seq
        WHERE m.owed AND NOT m.visible""",
    "given": f"""
        SELECT d.*, CASE WHEN {OURS} THEN named(s.sender, d.session, d.seq) END AS id,
               lag(d."offset") OVER steps AS previous, lag(d.generation) OVER steps AS previous_generation,
               lag(CASE WHEN {OURS} THEN named(s.sender, d.session, d.seq) END) OVER steps AS previous_id
        FROM deliveries d LEFT JOIN sessions s USING (run, session)
        WINDOW steps AS (PARTITION BY d.run, d.reader, d.topic, d.partition ORDER BY d.file_row_number)""",
    # Owners of a partition: from when to when, and how it ended; until is null if it did not end.
    "owned": """
        SELECT g.run, g.topic, g.partition, g.reader, g.t AS since, min(e.t) AS until, arg_min(e.how, e.t) AS ended
        FROM handing g LEFT JOIN handing e ON e.run = g.run AND e.topic = g.topic AND e.partition = g.partition
             AND e.reader = g.reader AND e.t > g.t AND e.how IN ('revoked', 'lost')
        WHERE g.how = 'assigned' GROUP BY ALL""",
    # Messages whose order a key promises: the client chose the partition by it.
    "keyed": f"""
        SELECT s.*, regexp_extract(s.sender, '^(.*)\\.([0-9]+)$', 1) AS producer,
               TRY_CAST(regexp_extract(s.sender, '^(.*)\\.([0-9]+)$', 2) AS BIGINT) AS incarnation,
               (SELECT min(d.t) FROM to_group d WHERE d.run = s.run AND d.session = s.session AND d.seq = s.seq
                                                        AND {OURS.replace("flags", "d.flags")}) AS came
        FROM placed s WHERE s.key >= 0 AND s.partition < 0 AND s.partitions = 1""",
    "overtaken": f"""
        SELECT a.run, a.session, a.seq, a.id, a.place_offset, b.id AS other, b.place_offset AS other_at, b.t AS other_sent,
               b.place_offset AS came_first
        FROM keyed a JOIN keyed b ON a.run = b.run AND a.key = b.key AND a.place_topic = b.place_topic
        WHERE a.session <> b.session AND a.place_partition = b.place_partition AND b.place_offset < a.place_offset
              AND (a.producer = b.producer AND a.incarnation < b.incarnation
                   OR a.outcome = {ACKED} AND a.t_outcome + {CONCURRENT_NS} <= b.t)
        UNION ALL
        SELECT a.run, a.session, a.seq, a.id, a.place_offset, b.id, b.place_offset, b.t, b.came
        FROM keyed a JOIN keyed b ON a.run = b.run AND a.key = b.key AND a.place_topic = b.place_topic
        WHERE a.session = b.session AND a.place_partition <> b.place_partition AND a.seq < b.seq AND b.came < a.came""",
}  # fmt: skip
