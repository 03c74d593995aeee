"""list the known ways to break Kafka's promises, or run them: each has to be caught, and its safe way has to hold

Without arguments it lists all hazards. With names, --quick or --all it runs their unsafe and their safe scenarios on real
clusters, and explains what happened.
"""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from harness.cluster_options import Choice, add_options
from harness.commands import _run_and_report
from harness.errors import UsageError

if TYPE_CHECKING:
    from harness.commands._run_and_report import Job
    from harness.scenario import Scenario
    from suites.scenarios.hazards import Hazard, Needs

MOST_NEAR = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME", help="hazards to run, e.g. acks1_failover")
    parser.add_argument("--quick", action="store_true", help="run one hazard of each class")
    parser.add_argument("--all", action="store_true", help="run all hazards")
    _run_and_report.add_arguments(parser)
    add_options(parser.add_argument_group("the clusters").add_argument)


def run(args: argparse.Namespace) -> int:
    from suites.scenarios import hazards

    every = hazards.found()
    if sum((bool(args.names), args.quick, args.all)) > 1:
        raise UsageError("catalogue: give names of hazards, --quick or --all, only one of them")
    if not (args.names or args.quick or args.all):
        print(json.dumps({"hazards": _as_data(every)}) if args.json else _listed(every))
        return 0
    chosen = _chosen(args, every)
    from harness.commands._progress import Progress
    from reports.catalogue_account import CatalogueAccount

    choice = Choice.of(lambda name: getattr(args, name))
    choice.check()
    proof = _run_and_report.Proof(
        args,
        Progress(sum(len(hazard.scenarios) for hazard in chosen.values())),
        account=CatalogueAccount(chosen),
        skips_impossible=True,
        if_all_skipped="",
    )
    proof.prepare()
    what = ["--quick"] if args.quick else ["--all"] if args.all else args.names
    title = " ".join(["onceproof catalogue", *what])
    return proof.carry_out(jobs(chosen, choice, args.seed), title, _command(what, choice, args.seed))


def _chosen(args: argparse.Namespace, every: Mapping[str, Hazard]) -> dict[str, Hazard]:
    for name in args.names:
        if name not in every:
            near = get_close_matches(name, every, MOST_NEAR, 0.5)
            near += [each for each in every if name and name in each and each not in near]
            meant = f"did you mean {', '.join(near[:MOST_NEAR])}? " if near else ""
            raise UsageError(
                f"catalogue {name}: there is no such hazard; {meant}./onceproof catalogue lists all"
            )
    if args.quick:
        return {name: hazard for name, hazard in every.items() if hazard.quick}
    return {name: every[name] for name in dict.fromkeys(args.names)} if args.names else dict(every)


# --- clusters ----------------------------------------------------------------------------------------


def jobs(chosen: Mapping[str, Hazard], choice: Choice, seed: int) -> list[Job]:
    """Return a job for each cluster: hazards with equal needs share one, unless they need one for each run."""
    from suites.scenarios.hazards import Needs

    shared: list[tuple[Needs, list[Scenario]]] = [(Needs(), [])]  # the usual cluster first
    alone: list[tuple[Needs, list[Scenario]]] = []
    for hazard in chosen.values():
        for scenario in hazard.scenarios:
            needed = hazard.needs_of(scenario)
            group = next((group for needs, group in shared if needs == needed and not needs.alone), None)
            if group is None:
                (alone if needed.alone else shared).append((needed, group := []))
            group.append(scenario.with_seed(seed))

    def again(scenario: Scenario) -> str:
        return _command([scenario.hazard], choice, seed)

    return [(_for(choice, needs), group, again) for needs, group in (*shared, *alone) if group]


def _for(choice: Choice, needs: Needs) -> Choice:
    return replace(choice, options=needs.options, settings=needs.settings, kafka=needs.kafka or choice.kafka)


def _command(what: Sequence[str], choice: Choice, seed: int) -> str:
    return " ".join(["./onceproof catalogue", *what, *choice.words(), f"--seed {seed}"])


# --- the list ----------------------------------------------------------------------------------------


def _as_data(every: Mapping[str, Hazard]) -> list[dict[str, Any]]:
    return [
        {
            "id": name,
            **hazard.about,
            "sources": list(hazard.sources),
            "requires": dict(hazard.unsafe.requires) if hazard.unsafe else {},
            "quick": hazard.quick,
        }
        for name, hazard in every.items()
    ]


def _listed(every: Mapping[str, Hazard]) -> str:
    """Return the hazards as an aligned table of at most 140 columns, sorted by class."""
    from reports import words
    from reports.summary import WIDTH, aligned

    kinds = {kind: place for place, kind in enumerate(type(next(iter(every.values())).kind))}
    ordered = sorted(every.items(), key=lambda each: (kinds[each[1].kind], each[0]))
    rows = [
        (
            name,
            str(hazard.kind),
            ", ".join(hazard.unsafe.requires) if hazard.unsafe else words.NOTHING,
            hazard.title,
        )
        for name, hazard in ordered
    ]
    heads = ("hazard", "class", "expected anomaly")
    beside = sum(max(map(len, column)) + 2 for column in zip(heads, *(row[:3] for row in rows), strict=True))
    table = [(*heads, "title")]
    for row in rows:  # a long title goes on in the next line
        first, *more = textwrap.wrap(row[3], WIDTH - beside)
        table += [(*row[:3], first), *(("", "", "", line) for line in more)]
    unsafe = sum(hazard.unsafe is not None for hazard in every.values())
    counts = f"{words.plural(unsafe, 'hazard')} and {words.plural(len(every) - unsafe, 'false alarm')}"
    closing = f"{counts}. ./onceproof catalogue NAME… | --quick | --all runs them."
    return "\n".join([*aligned(table), "", closing])
