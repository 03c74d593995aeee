"""The reference: every question of docs/anomalies.md as SQL for DuckDB, over the same sealed Parquet files.

A finder is one query. Joins and groups that several of them need are made once before, as temporary tables of the few
rows that matter. Three things make it fast, and none of them depends on what was planted:
* a message (session, seq) and a position (partition, offset) are each packed into one number;
* attempts of a session are numbered without holes (sealing makes sure of it), so "attempted" is one comparison;
* of copies and strange records there are few, so they are taken out before the large windows.

Left out, because the generated ledgers have none of these: several runs or topics in one folder, several incarnations of a
producer, records whose transaction is not the one they were sent in. This makes the reference faster, never slower.
"""

from __future__ import annotations

import time
from pathlib import Path

import duckdb

from harness.reconcile.screen.summaries import CONCURRENT_NS

THREADS = 2

_VIEWS = """
CREATE VIEW attempts AS SELECT session, seq, t, partition, key, txn, outcome, t_outcome, told_partition, "offset",
    (session << 40) | seq AS msg, (told_partition::BIGINT << 48) | "offset" AS acked_pos
FROM read_parquet('{tables}/attempts/*.parquet');
CREATE VIEW log AS SELECT session, seq, txn, key, partition, "offset", intended_partition, flags, {readable} AS readable,
    uncommitted, committed, promised, passed, (flags & 17) = 0 AS ours,
    (session << 40) | seq AS msg, (partition::BIGINT << 48) | "offset" AS pos
FROM read_parquet('{tables}/log/*.parquet');
CREATE VIEW deliveries AS SELECT session, seq, txn, key, partition, "offset", flags, t, reader, generation,
    file_row_number, (flags & 17) = 0 AS ours,
    (session << 40) | seq AS msg, (partition::BIGINT << 48) | "offset" AS pos
FROM read_parquet('{tables}/deliveries/*.parquet', file_row_number = true);
CREATE VIEW transactions AS FROM read_parquet('{tables}/transactions/*.parquet');
CREATE VIEW commits AS FROM read_parquet('{tables}/commits/*.parquet');
CREATE VIEW bounds AS FROM read_parquet('{tables}/bounds/*.parquet');
CREATE VIEW sessions AS FROM read_parquet('{tables}/sessions/*.parquet');
CREATE VIEW runs AS FROM read_parquet('{tables}/runs/*.parquet');
"""

# Tables that several finders need, in the order in which they are made. All of them are small.
_SHARED = {
    "fates": """
        WITH by_events AS (
            SELECT session, txn, min(t) FILTER (step = 'end') AS t_end,
                coalesce(bool_or(did = 'commit'), false) AS asked,
                coalesce(bool_or(step = 'ended' AND did = 'commit' AND outcome = 1), false) AS committed,
                coalesce(bool_or(step = 'ended' AND (did = 'commit' AND outcome = 2 OR did = 'abort' AND outcome = 1)),
                    false) AS aborted
            FROM transactions GROUP BY ALL
        ), proven AS (
            SELECT DISTINCT session, txn FROM log
            WHERE ours AND committed AND (session, txn) IN (
                SELECT (session, txn) FROM by_events WHERE asked AND NOT committed AND NOT aborted)
        )
        SELECT session, txn, t_end, CASE WHEN committed THEN 'committed' WHEN aborted OR NOT asked THEN 'aborted'
            WHEN proven.txn IS NOT NULL THEN 'committed' ELSE 'unknown' END AS fate
        FROM by_events LEFT JOIN proven USING (session, txn)""",
    "numbered": "SELECT session, max(seq) AS last_seq FROM attempts GROUP BY session",
    # A payload that cannot be read is still the message that was acked there, or that others read there.
    "damaged": """
        WITH harmed AS (SELECT pos FROM log WHERE flags & 1 != 0)
        SELECT msg FROM attempts JOIN harmed ON acked_pos = pos
        UNION SELECT msg FROM deliveries JOIN harmed USING (pos) WHERE ours""",
    "gone": """
        SELECT a.msg, a.session, a.txn, fate, coalesce(a.told_partition, a.partition) AS partition, a."offset"
        FROM attempts a LEFT JOIN fates USING (session, txn)
            ANTI JOIN (SELECT msg FROM log WHERE ours AND promised UNION ALL FROM damaged) there ON there.msg = a.msg
        WHERE a.txn = 0 AND outcome = 1 OR fate = 'committed' AND outcome != 2""",
    "missing": """
        WITH found AS (SELECT msg, min("offset") AS found_at FROM log SEMI JOIN gone USING (msg)
            WHERE ours AND uncommitted GROUP BY msg)
        SELECT gone.*, CASE WHEN "offset" < start THEN 'expired' WHEN found_at >= stable THEN 'late' ELSE 'lost' END AS kind
        FROM gone LEFT JOIN found USING (msg) LEFT JOIN bounds USING (partition)""",
    "copies": """
        SELECT msg, min(pos) AS first_pos, min(partition) != max(partition) AS scattered
        FROM log WHERE ours GROUP BY msg HAVING min(pos) != max(pos)""",
    # Records that differ from their attempt, have no attempt, or are not where they were meant to be.
    "strange": """
        SELECT r.msg, a.msg IS NULL AS unattempted, r.key != a.key OR r.txn != a.txn AS altered,
            logged AND a.partition >= 0 AND a.partition != r.partition AS elsewhere
        FROM (
            SELECT msg, key, txn, partition, true AS logged FROM log WHERE ours
            UNION ALL SELECT msg, key, txn, partition, false FROM deliveries WHERE ours
        ) r LEFT JOIN attempts a USING (msg)
        WHERE a.msg IS NULL OR r.key != a.key OR r.txn != a.txn OR logged AND a.partition >= 0 AND a.partition != r.partition""",
    "flagged": """
        SELECT pos, flags FROM log WHERE flags != 0
        UNION ALL SELECT pos, flags FROM deliveries WHERE flags != 0""",
    "split_keys": """
        SELECT key FROM log JOIN numbered USING (session)
        WHERE ours AND seq <= last_seq AND key >= 0 AND intended_partition < 0
        GROUP BY key HAVING min(partition) != max(partition)""",
    # Steps of a reader in a partition that do not go to the next offset.
    "steps": """
        SELECT reader, partition, before, "offset", generation = generation_before AS unexcused
        FROM (
            SELECT reader, partition, "offset", generation,
                lag("offset") OVER given AS before, lag(generation) OVER given AS generation_before
            FROM deliveries WINDOW given AS (PARTITION BY reader, partition ORDER BY file_row_number)
        ) WHERE "offset" != before + 1""",
}  # fmt: skip

_FINDERS = {
    "lost": "SELECT count(*) FROM missing WHERE kind = 'lost'",
    "expired": "SELECT count(*) FROM missing WHERE kind = 'expired'",
    "late": "SELECT count(*) FROM missing WHERE kind = 'late'",
    "duplicated": "SELECT count(*) FROM copies",
    # The highest number before an overtaken message is followed by a lower one. So `lag`, three times as fast as a
    # running maximum, finds every message that can have overtaken another; there are few of them to compare the others with.
    "reordered": """
        WITH placed AS (
            SELECT msg, session, partition, "offset", seq
            FROM log JOIN numbered USING (session) LEFT JOIN copies USING (msg)
            WHERE ours AND seq <= last_seq AND (first_pos IS NULL OR NOT scattered AND first_pos = pos)
        ), tops AS MATERIALIZED (
            SELECT session, partition, before AS seq, before_at AS "offset" FROM (
                SELECT session, partition, seq, lag(seq) OVER placement AS before, lag("offset") OVER placement AS before_at
                FROM placed WINDOW placement AS (PARTITION BY session, partition ORDER BY "offset")
            ) WHERE before > seq
        )
        SELECT count(DISTINCT msg) FROM placed JOIN tops
            ON placed.session = tops.session AND placed.partition = tops.partition
                AND placed.seq < tops.seq AND placed."offset" > tops."offset" """,
    # One partition: a window over each key finds messages behind one that was sent much later; only for these few
    # the sessions are compared. Two partitions: only keys that are in two.
    "key_reordered": f"""
        WITH placed AS (
            SELECT a.msg, a.session, a.key, log.partition, log."offset", a.t, a.t_outcome
            FROM log JOIN attempts a USING (msg) LEFT JOIN copies USING (msg)
            WHERE ours AND a.key >= 0 AND a.partition < 0 AND (first_pos IS NULL OR NOT scattered AND first_pos = pos)
        ), suspects AS MATERIALIZED (
            SELECT * FROM (
                SELECT *, max(t) OVER (PARTITION BY key, partition ORDER BY "offset"
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS latest FROM placed
            ) WHERE latest >= t_outcome + {CONCURRENT_NS}
        ), overtaken AS (
            SELECT DISTINCT s.msg FROM suspects s JOIN placed p
                ON p.key = s.key AND p.partition = s.partition AND p."offset" < s."offset"
            WHERE p.session != s.session AND p.t >= s.t_outcome + {CONCURRENT_NS}
        ), given AS (
            SELECT d.session, d.seq, d.key, d.partition, min(d.t) AS t
            FROM deliveries d SEMI JOIN split_keys USING (key) WHERE ours GROUP BY ALL
        ), given_late AS (
            SELECT DISTINCT a.session, a.seq FROM given a JOIN given b USING (session, key)
            WHERE a.seq < b.seq AND a.partition != b.partition AND b.t < a.t
        )
        SELECT (SELECT count(*) FROM overtaken) + (SELECT count(*) FROM given_late)""",
    "misplaced": """
        SELECT (SELECT count(DISTINCT msg) FROM strange WHERE elsewhere)
            + (SELECT count(*) FROM split_keys WHERE (SELECT bool_and(topic_unchanged) FROM runs))""",
    "phantom": """
        SELECT (SELECT count(DISTINCT msg) FROM strange WHERE unattempted)
            + (SELECT count(DISTINCT pos) FROM flagged WHERE flags & 16 != 0)""",
    "corrupted": """
        SELECT (SELECT count(DISTINCT msg) FROM strange WHERE altered AND NOT unattempted)
            + (SELECT count(DISTINCT pos) FROM flagged WHERE flags & 15 != 0)""",
    # Claims that differ from the log at their position, or whose position the log does not have.
    "offset_conflict": """
        WITH claimed AS (
            SELECT acked_pos AS pos, msg FROM attempts WHERE "offset" IS NOT NULL
            UNION ALL SELECT pos, msg FROM deliveries WHERE ours
        ), logged AS (SELECT pos, msg FROM log WHERE ours),
        unlike AS MATERIALIZED (
            SELECT claimed.pos, claimed.msg FROM claimed LEFT JOIN logged USING (pos)
            WHERE logged.msg IS NULL OR logged.msg != claimed.msg
        ), claims AS (
            FROM unlike UNION ALL SELECT pos, msg FROM logged SEMI JOIN unlike USING (pos)
            UNION ALL SELECT pos, msg FROM claimed SEMI JOIN unlike USING (pos)
        )
        SELECT count(*) FROM (SELECT pos FROM claims GROUP BY pos HAVING min(msg) != max(msg))""",
    "undelivered": "SELECT count(DISTINCT pos) FROM log ANTI JOIN deliveries USING (pos) WHERE passed",
    "redelivered": "SELECT count(*) FROM (SELECT pos FROM deliveries GROUP BY pos HAVING count(*) > 1)",
    "skipped": """
        WITH gaps AS (SELECT reader, partition, before, "offset" FROM steps WHERE "offset" > before AND unexcused)
        SELECT count(*) FROM gaps ASOF JOIN (SELECT partition, "offset" FROM log WHERE readable) r
            ON gaps.partition = r.partition AND gaps.before < r."offset"
        WHERE r."offset" < gaps."offset" """,
    "rewound": 'SELECT count(*) FROM steps WHERE "offset" <= before',
    # Few commits are above the offsets given by then; only these are compared with the log.
    "overcommitted": """
        WITH reached AS (
            SELECT partition, t, max(max("offset")) OVER (PARTITION BY partition ORDER BY t) AS highest
            FROM deliveries GROUP BY partition, t
        ), beyond AS MATERIALIZED (
            SELECT row_number() OVER () AS number, c.partition, c."offset", coalesce(highest, -1) AS highest
            FROM commits c ASOF LEFT JOIN reached ON c.partition = reached.partition AND c.t >= reached.t
            WHERE outcome = 1 AND c."offset" > coalesce(highest, -1) + 1
        )
        SELECT count(DISTINCT number) FROM beyond JOIN log USING (partition)
        WHERE readable AND log."offset" < beyond."offset" AND log."offset" > highest""",
    "aborted_read": """
        SELECT count(*) FROM (
            SELECT DISTINCT pos, msg, reader FROM deliveries JOIN fates USING (session, txn) WHERE ours AND fate = 'aborted'
            UNION ALL SELECT DISTINCT pos, msg, NULL FROM log JOIN fates USING (session, txn)
            WHERE ours AND committed AND fate = 'aborted')""",
    "premature_read": """
        SELECT count(*) FROM (SELECT DISTINCT pos, msg, reader FROM deliveries JOIN fates USING (session, txn)
            WHERE ours AND fate != 'aborted' AND t < t_end)""",
    "torn": """
        SELECT count(*) FROM (SELECT DISTINCT session, txn FROM missing WHERE kind = 'lost' AND fate = 'committed')
        SEMI JOIN (SELECT session, txn FROM log WHERE ours AND promised AND txn > 0) USING (session, txn)""",
}  # fmt: skip


def reference(tables: Path) -> tuple[dict[str, int], dict[str, float]]:
    """Return the number of each anomaly, and the seconds that each step took."""
    began = time.perf_counter()
    seconds: dict[str, float] = {}

    def clock(step: str) -> None:
        nonlocal began
        seconds[step], began = round(time.perf_counter() - began, 3), time.perf_counter()

    with duckdb.connect(":memory:", config={"threads": THREADS, "memory_limit": "-1"}) as db:
        folder = str(tables).replace("'", "''")
        isolation = db.execute(
            f"SELECT group_isolation FROM read_parquet('{folder}/runs/*.parquet')"
        ).fetchone()
        readable = "committed" if isolation == ("read_committed",) else "uncommitted"
        db.execute(_VIEWS.format(tables=folder, readable=readable))
        clock("session")
        for name, query in _SHARED.items():
            db.execute(f"CREATE TEMP TABLE {name} AS {query}")
            clock(f"({name})")
        found = {}
        for anomaly, query in _FINDERS.items():
            row = db.execute(query).fetchone()
            assert row is not None
            found[anomaly] = int(row[0])
            clock(anomaly)
    return found, seconds
