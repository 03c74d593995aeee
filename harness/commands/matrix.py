"""run delivery modes under faults with every combination of broker version and client version, in one report"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from harness.cluster_options import Choice, add_options
from harness.commands import _run_and_report
from harness.contracts import Mode
from harness.errors import UsageError

if TYPE_CHECKING:
    from harness.scenario import Scenario

DEFAULT_MODES = (Mode.AT_MOST_ONCE, Mode.AT_LEAST_ONCE, Mode.EXACTLY_ONCE)
DEFAULT_FAULT = "kill-leader"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kafka", metavar="VERSION,…", type=_words, required=True,
                        help="Kafka releases of the brokers, one cluster for each, e.g. 3.9.2,4.3.1")  # fmt: skip
    parser.add_argument("--client", metavar="VERSION,…", type=_words, default=None,
                        help="releases of confluent-kafka for producers and consumers (default: the installed one)")  # fmt: skip
    parser.add_argument("--mode", metavar="MODE,…", type=_words, default=list(DEFAULT_MODES),
                        help=f"delivery modes (default: {','.join(DEFAULT_MODES)})")  # fmt: skip
    parser.add_argument("--fault", metavar="FAULT,…", type=_words, default=[DEFAULT_FAULT],
                        help=f"faults: kill-leader, sever-leader, slow_disk-leader (default: {DEFAULT_FAULT})")  # fmt: skip
    parser.add_argument("--list", action="store_true", help="print the names of the runs, in order, and exit")
    _run_and_report.add_arguments(parser)
    add_options(parser.add_argument_group("the clusters").add_argument, without=("kafka", "mixed"))


def run(args: argparse.Namespace) -> int:
    from harness.commands._progress import Progress
    from harness.provision.client import client_overlay, installed
    from harness.provision.kafka import kafka_libs

    clients = args.client or [installed()]
    by_kafka = {kafka: _scenarios(args, kafka, clients) for kafka in args.kafka}
    if args.list:
        print("\n".join(s.name for scenarios in by_kafka.values() for s in scenarios))
        return 0
    progress = Progress(sum(map(len, by_kafka.values())))
    proof = _run_and_report.Proof(args, progress)
    proof.prepare()
    # First, so that a version that does not exist is reported before an hour of runs, not after it.
    for kafka in args.kafka:
        kafka_libs(kafka, progress.note, exactly=True)
    for client in clients:
        client_overlay(client, progress.note)
    jobs = [
        (_choice(args, kafka), scenarios, partial(_repeat, args, kafka))
        for kafka, scenarios in by_kafka.items()
    ]
    command = _command(args, args.kafka, clients, args.mode, args.fault)
    return proof.carry_out(jobs, "onceproof matrix", command)


def _scenarios(args: argparse.Namespace, kafka: str, clients: Sequence[str]) -> list[Scenario]:
    from suites.scenarios import matrix

    _must_be_known("--mode", args.mode, list(Mode))
    _must_be_known("--fault", args.fault, list(matrix.FAULTS))
    crossed = tuple(matrix.crossed(Mode(mode), fault) for fault in args.fault for mode in args.mode)
    return [
        # Broker version, then client version, kept short: the table on a terminal needs room for both.
        replace(s, name=f"{s.name}-{kafka}-{client}", client_version=client)
        for client in clients
        for s in matrix.seeded(crossed, args.seed)
    ]


def _choice(args: argparse.Namespace, kafka: str) -> Choice:
    if args.cluster in (None, "local"):  # for speed, as prove --quick
        args.combined = True
    asked = {"kafka": kafka, "mixed": None}
    return Choice.of(lambda name: asked[name] if name in asked else getattr(args, name))


def _repeat(args: argparse.Namespace, kafka: str, scenario: Scenario) -> str:
    """Return the command line that repeats one run."""
    return _command(args, [kafka], [scenario.client_version], [scenario.mode], [scenario.fault_name])


def _command(
    args: argparse.Namespace,
    kafka: Sequence[str],
    clients: Sequence[str],
    modes: Sequence[str],
    faults: Sequence[str],
) -> str:
    lists = {"--kafka": kafka, "--client": clients, "--mode": modes, "--fault": faults}
    words = [word for flag, values in lists.items() for word in (flag, ",".join(values))]
    others = replace(_choice(args, kafka[0]), kafka=Choice.kafka, combined=False).words()
    return " ".join(["./onceproof matrix", *words, *others, "--seed", str(args.seed)])


def _must_be_known(flag: str, asked: Sequence[str], known: Sequence[str]) -> None:
    if unknown := [word for word in asked if word not in known]:
        raise UsageError(f"{flag} {unknown[0]}: unknown; choose from {', '.join(known)}")


def _words(text: str) -> list[str]:
    """Return the words of a comma-separated list, each once."""
    words = list(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    if not words:
        raise argparse.ArgumentTypeError("give at least one value")
    return words
