"""Numbers of producer sessions: unique in a run, however many sessions a worker opens and however often it is restarted.

A worker's sessions are counted by `incarnation`, from 0 on and through all of its lives, so message ids such as
`producer-1.3-42` are unique too. The session's number is worker * 1,000,000 + incarnation: both parts can be read from it. The
harness gives each worker a number that no other worker of the run has (harness.workers.pool), and each new life of it the incarnation
that follows the last one with a file. That file exists before the session sends anything.
"""

from __future__ import annotations

from pathlib import Path

from harness.errors import OnceproofError

SESSIONS_PER_WORKER = 1_000_000
# With a transaction's number below it, a session's number has to fit into a signed integer of 64 bits: below 2^31.
MOST_WORKERS = 2**31 // SESSIONS_PER_WORKER - 1


def session_number(worker: int, incarnation: int) -> int:
    """Return the number of a worker's session; incarnations count from 0."""
    if not 0 < worker <= MOST_WORKERS:
        raise OnceproofError(
            f"worker number {worker}: sessions can be numbered for workers 1 to {MOST_WORKERS}; run fewer producers"
        )
    if not 0 <= incarnation < SESSIONS_PER_WORKER:
        raise OnceproofError(
            f"session {incarnation} of worker {worker}: at most {SESSIONS_PER_WORKER} can be numbered; make the run shorter"
        )
    return worker * SESSIONS_PER_WORKER + incarnation


def next_incarnation(ledger: Path, worker: str) -> int:
    """Return the first incarnation of a worker's next life. All earlier lives must have ended."""
    used = [int(path.stem.rpartition(".")[2]) for path in ledger.glob(f"{worker}.*.attempts")]
    return max((number % SESSIONS_PER_WORKER for number in used), default=-1) + 1
