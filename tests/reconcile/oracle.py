"""A second opinion on a sealed ledger: every anomaly of docs/anomalies.md as a question in DuckDB's SQL.

It shares nothing with the Spark job but the sealed tables and that page. It looks at every row, without screening, and
asks each question the slow and plain way, so that the two can only agree by both being right (or by the page being
unclear, which is worth knowing as well).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import duckdb
import numpy as np

from harness.contracts import Outcome
from harness.ledger.message import BAD_HEADER, BAD_KEY, BAD_PAYLOAD, BAD_TIMESTAMP, FOREIGN_RUN
from harness.ledger.rundir import RunDir
from harness.ledger.transform import Transform
from tests.reconcile.together import Finding

JUMPED_SHOWN, OVERCOMMITTED_SHOWN = 100, 10  # how many messages a finding lists at most
CONCURRENT_NS = 200_000_000  # sends of different producers closer than this have no order

_ACKED, _REJECTED = int(Outcome.ACKED), int(Outcome.REJECTED)
_OURS = f"flags & {BAD_PAYLOAD | FOREIGN_RUN} = 0"
_DAMAGED = f"flags & {BAD_PAYLOAD | BAD_KEY | BAD_HEADER | BAD_TIMESTAMP} <> 0"

_ASKED = ("runs", "sessions", "readers", "attempts", "deliveries", "log", "effects", "transactions", "commits", "bounds",
          "assignments")  # fmt: skip

# Steps on the way, each a table. Names of columns are those of the sealed tables where they mean the same.
_STEPS = {
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
        UNION ALL SELECT run, topic, partition, "offset", session, seq FROM log WHERE {_OURS}
        UNION ALL SELECT run, topic, partition, "offset", session, seq FROM deliveries WHERE {_OURS}""",
    # The message of a position, for findings about positions.
    "holder": """
        SELECT run, topic, partition, "offset", min(struct_pack(session, seq)) AS message
        FROM claim GROUP BY ALL""",
    "named_holder": """
        SELECT h.*, named(s.sender, h.message.session, h.message.seq) AS id
        FROM holder h LEFT JOIN sessions s ON s.run = h.run AND s.session = h.message.session""",
    "place": f"""
        SELECT DISTINCT run, session, seq, topic, partition, "offset" FROM log WHERE {_OURS}""",
    # A payload that cannot be read is still the message that others claim to be there.
    "recognised": f"""
        SELECT DISTINCT h.run, h.message.session AS session, h.message.seq AS seq
        FROM log l JOIN holder h USING (run, topic, partition, "offset") WHERE l.flags & {BAD_PAYLOAD} <> 0""",
    # Steps and commits name a record only if its payload is readable.
    "readable": f"""
        SELECT l.run, l.topic, l.partition, l."offset",
               CASE WHEN {_OURS} THEN named(s.sender, l.session, l.seq) END AS id
        FROM log l JOIN runs r USING (run) LEFT JOIN sessions s USING (run, session)
        WHERE CASE r.group_isolation WHEN 'read_committed' THEN l.committed ELSE l.uncommitted END""",
    # The transaction of a message: as attempted; without an attempt, as its record says.
    "txn_of_message": f"""
        SELECT run, session, seq, txn FROM attempts
        UNION SELECT run, session, seq, max(txn) FROM (
            SELECT run, session, seq, txn FROM log WHERE {_OURS}
            UNION ALL SELECT run, session, seq, txn FROM deliveries WHERE {_OURS}
        ) ANTI JOIN attempts USING (run, session, seq) GROUP BY ALL""",
    "seen_committed": f"""
        SELECT run, session, txn FROM log WHERE committed AND txn > 0 AND {_OURS}
        UNION SELECT run, session, txn FROM deliveries JOIN readers USING (run, reader)
        WHERE isolation = 'read_committed' AND txn > 0 AND {_OURS}""",
    "fate": f"""
        SELECT run, session, txn, CASE
            WHEN bool_or(step = 'fenced') THEN 'aborted'
            WHEN bool_or(coalesce(step = 'ended' AND did = 'commit' AND outcome = {_ACKED}, false)) THEN 'committed'
            WHEN bool_or(coalesce(step = 'ended' AND did = 'abort' AND outcome = {_ACKED}, false)) THEN 'aborted'
            WHEN bool_or(coalesce(step = 'ended' AND did = 'commit' AND outcome = {_REJECTED}, false)) THEN 'aborted'
            WHEN NOT bool_or(coalesce(did = 'commit', false)) THEN 'aborted'
            WHEN (run, session, txn) IN (SELECT (run, session, txn) FROM seen_committed) THEN 'committed'
            ELSE 'unknown' END AS fate,
            min(t) FILTER (step = 'end') AS asked
        FROM transactions WHERE txn > 0 GROUP BY run, session, txn""",
    "sent": f"""
        SELECT a.*, named(s.sender, a.session, a.seq) AS id, s.sender,
               f.fate, a.txn = 0 AND a.outcome = {_ACKED} OR f.fate = 'committed' AND a.outcome <> {_REJECTED} AS owed,
               EXISTS (FROM log l WHERE l.run = a.run AND l.session = a.session AND l.seq = a.seq AND l.promised
                                        AND {_OURS.replace("flags", "l.flags")})
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
        FROM deliveries d LEFT JOIN bounds b USING (run, topic, partition) WHERE {_OURS} GROUP BY ALL""",
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
                               AND {_OURS.replace("flags", "l.flags")} AND l."offset" >= lb.stable) THEN 'late'
            WHEN m."offset" IS NULL AND v.below IS NULL AND p."offset" IS NULL AND b.start > 0 THEN 'unplaced'
            ELSE 'lost' END AS kind, p."offset" AS place_offset, v."offset" AS seen_offset
        FROM sent m JOIN sought b USING (run, session, seq)
        LEFT JOIN seen_at v ON v.run = m.run AND v.session = m.session AND v.seq = m.seq
        LEFT JOIN first_place p ON p.run = m.run AND p.session = m.session AND p.seq = m.seq
        WHERE m.owed AND NOT m.visible""",
    "given": f"""
        SELECT d.*, CASE WHEN {_OURS} THEN named(s.sender, d.session, d.seq) END AS id,
               lag(d."offset") OVER steps AS previous, lag(d.generation) OVER steps AS previous_generation,
               lag(CASE WHEN {_OURS} THEN named(s.sender, d.session, d.seq) END) OVER steps AS previous_id
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
                                                        AND {_OURS.replace("flags", "d.flags")}) AS came
        FROM placed s WHERE s.key >= 0 AND s.partition < 0 AND s.partitions = 1""",
    "overtaken": f"""
        SELECT a.run, a.session, a.seq, a.id, a.place_offset, b.id AS other, b.place_offset AS other_at, b.t AS other_sent,
               b.place_offset AS came_first
        FROM keyed a JOIN keyed b ON a.run = b.run AND a.key = b.key AND a.place_topic = b.place_topic
        WHERE a.session <> b.session AND a.place_partition = b.place_partition AND b.place_offset < a.place_offset
              AND (a.producer = b.producer AND a.incarnation < b.incarnation
                   OR a.outcome = {_ACKED} AND a.t_outcome + {CONCURRENT_NS} <= b.t)
        UNION ALL
        SELECT a.run, a.session, a.seq, a.id, a.place_offset, b.id, b.place_offset, b.t, b.came
        FROM keyed a JOIN keyed b ON a.run = b.run AND a.key = b.key AND a.place_topic = b.place_topic
        WHERE a.session = b.session AND a.place_partition <> b.place_partition AND a.seq < b.seq AND b.came < a.came""",
}  # fmt: skip

# Each gives run, messages, offsets: one row a finding.
_QUESTIONS = {
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
            UNION ALL SELECT run, session, seq, NULL FROM deliveries WHERE {_OURS}
        ) LEFT JOIN sessions USING (run, session) ANTI JOIN attempts USING (run, session, seq)
        GROUP BY run, session, seq, sender
        UNION ALL
        SELECT run, [], ["offset"] FROM (
            SELECT run, topic, partition, "offset" FROM log WHERE flags & {FOREIGN_RUN} <> 0
            UNION SELECT run, topic, partition, "offset" FROM deliveries WHERE flags & {FOREIGN_RUN} <> 0)""",
    "corrupted": f"""
        SELECT run, known([id]) AS messages, ["offset"] AS offsets FROM (
            SELECT run, topic, partition, "offset" FROM log WHERE {_DAMAGED}
            UNION SELECT run, topic, partition, "offset" FROM deliveries WHERE {_DAMAGED}
        ) LEFT JOIN named_holder USING (run, topic, partition, "offset")
        UNION ALL
        SELECT s.run, [s.id], known([p."offset"])
        FROM sent s LEFT JOIN first_place p ON p.run = s.run AND p.session = s.session AND p.seq = s.seq
        WHERE EXISTS (FROM (SELECT run, session, seq, key, txn FROM log WHERE {_OURS}
                            UNION ALL SELECT run, session, seq, key, txn FROM deliveries WHERE {_OURS}) r
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
              FROM commits o WHERE outcome = {_ACKED}) c
        JOIN readable r ON r.run = c.run AND r.topic = c.topic AND r.partition = c.partition
                           AND r."offset" < c.committed AND (c.given IS NULL OR r."offset" > c.given)
        LEFT JOIN bounds b ON b.run = c.run AND b.topic = c.topic AND b.partition = c.partition
        GROUP BY c.run, c.t, c.reader, c.topic, c.partition, c.committed, c.given, b.start""",
    "aborted_read": f"""
        SELECT DISTINCT ON (run, session, seq, topic, partition, "offset", reader)
               run, [named(sender, session, seq)] AS messages, ["offset"] AS offsets
        FROM (SELECT run, session, seq, topic, partition, "offset", reader FROM promised WHERE {_OURS}
              UNION ALL SELECT run, session, seq, topic, partition, "offset", -1 FROM log WHERE committed AND {_OURS})
        JOIN txn_of_message USING (run, session, seq) JOIN fate USING (run, session, txn)
        LEFT JOIN sessions USING (run, session) WHERE fate = 'aborted'""",
    "premature_read": f"""
        SELECT DISTINCT ON (run, session, seq, topic, partition, "offset", reader)
               run, [named(sender, session, seq)] AS messages, ["offset"] AS offsets
        FROM (SELECT run, t, session, seq, topic, partition, "offset", reader FROM promised WHERE {_OURS}) d
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

ANOMALIES = frozenset(name for names in _QUESTIONS for name in names.split(", "))


def oracle(run: RunDir) -> set[Finding]:
    """Return the anomalies of a sealed run."""
    return set(oracle_rows([run])[run])


def oracle_rows(runs: Sequence[RunDir]) -> dict[RunDir, Counter[Finding]]:
    """Return the anomalies of each sealed run, counted: two readers may have got the same aborted record.

    All runs are asked at once: a question costs as much for one small run as for a hundred.
    """
    found: dict[RunDir, Counter[Finding]] = {run: Counter() for run in runs}
    if not runs:
        return found
    with duckdb.connect(config={"threads": 2}) as db:
        _load(db, runs)
        numbers = _numbers(db, runs)
        for name, question in _QUESTIONS.items():
            for row in _rows(db, question):
                anomaly = str(row.get("anomaly", name))
                found[numbers[row["run"]]][anomaly, tuple(row["messages"]), tuple(row["offsets"])] += 1
    return found


def _load(db: duckdb.DuckDBPyConnection, runs: Iterable[RunDir]) -> None:
    db.execute(
        "CREATE MACRO named(sender, session, seq) AS coalesce(sender, 'session ' || session) || '-' || seq"
    )
    db.execute("CREATE MACRO known(items) AS list_filter(items, lambda x: x IS NOT NULL)")
    for table in _ASKED:
        files = [str(path) for run in runs for path in sorted((run.tables / table).glob("*.parquet"))]
        # Rows of one reader are in one file, in the order in which it got them.
        db.execute(
            f"CREATE TEMP TABLE {table} AS SELECT * FROM read_parquet($files, file_row_number = true)",
            {"files": files},
        )
    _add_owed_effects(db, runs)
    for name, step in _STEPS.items():
        db.execute(f"CREATE TEMP TABLE {name} AS {step}")


def _add_owed_effects(db: duckdb.DuckDBPyConnection, runs: Iterable[RunDir]) -> None:
    """One row for each effect that an input which its group has passed has to have."""
    db.execute(
        'CREATE TEMP TABLE owed_effect (run BIGINT, partition INT, "offset" BIGINT, session BIGINT, seq BIGINT, number INT)'
    )
    for number, run in _numbers(db, runs).items():
        unread = db.execute(
            "SELECT count(*) FROM bounds WHERE run = $run AND topic > 0 AND NOT (whole AND start = 0)",
            {"run": number},
        ).fetchall()
        if not (settings := run.read_manifest().get("transform")) or unread != [(0,)]:
            continue
        inputs = db.execute(
            f"""SELECT DISTINCT partition, "offset", session, seq FROM log
                WHERE run = $run AND topic = 0 AND passed AND {_OURS}""",
            {"run": number},
        ).fetchall()
        effects = Transform(**settings).effects(*(np.array([row[i] for row in inputs]) for i in (2, 3)))
        owed = [(number, *row, n) for row, count in zip(inputs, effects, strict=True) for n in range(count)]
        db.executemany("INSERT INTO owed_effect VALUES (?, ?, ?, ?, ?, ?)", owed)


def _numbers(db: duckdb.DuckDBPyConnection, runs: Iterable[RunDir]) -> Mapping[int, RunDir]:
    by_id = {str(run.read_manifest()["run_id"]): run for run in runs}
    return {number: by_id[run_id] for number, run_id in db.execute("SELECT run, run_id FROM runs").fetchall()}


def _rows(db: duckdb.DuckDBPyConnection, question: str) -> list[dict[str, Any]]:
    answer = db.execute(question)
    names = [column[0] for column in answer.description or ()]
    return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]
