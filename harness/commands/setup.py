"""install the tools that are missing on this machine and print where they are

Takes milliseconds and needs no network if nothing is missing. Exit codes: 0 everything is installed, 2 something could
not be installed.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from importlib.metadata import version


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Install the missing tools, then print name, version and path of each."""
    from harness.provision import cache_dir, ensure_all
    from harness.provision.spark_archive import compile_packages, spark_archive

    there = ensure_all()
    compile_packages()
    archive = spark_archive(again=True)
    if args.json:
        made = {"spark_archive": archive.classes if archive else None, "cache": cache_dir()}
        print(json.dumps({**dataclasses.asdict(there), **made}, default=str, indent=2))
        return 0
    rows = [
        ("Java", there.java_version, there.java),
        ("Kafka jars", there.kafka_version, there.kafka_libs),
        ("Toxiproxy", there.toxiproxy_version, there.toxiproxy),
        ("Byteman", there.byteman_version, there.byteman),
        ("Spark classes", version("pyspark"), archive.classes if archive else "none: Spark starts without"),
    ]
    for name, number, place in rows:
        print(f"{name:<13} {number:<9} {place}")
    return 0
