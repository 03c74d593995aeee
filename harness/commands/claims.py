"""check statements about Kafka on a real cluster and print them with their answers

Without ids every claim is checked. An id may be a whole group, such as ORD. --file adds the claims of a team.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cluster_options import Choice, add_options
from harness.errors import UsageError
from harness.ledger.packing import add_keep_option
from harness.runtime import exits

if TYPE_CHECKING:
    from harness.claims.claim import Claim, ClaimAnswer


SO_FAR = "claims.json"  # in the folder of the runs: the answers so far, which an interrupted check leaves


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "ids", metavar="ID", nargs="*", help="claims or groups to check, e.g. DUR-2 or ORD (default: all)"
    )
    parser.add_argument("--file", metavar="FILE.toml", type=Path, action="append", default=[],
                        help="claims of your own (docs/claims.md); may be repeated")  # fmt: skip
    parser.add_argument(
        "--list", action="store_true", help="print ids, statements and expected answers, and exit"
    )
    parser.add_argument("--quick", action="store_true", help="check only the claims that CI checks")
    parser.add_argument("--json", action="store_true", help="print the answers as one JSON object on stdout")
    parser.add_argument(
        "--html", metavar="FILE", type=Path, help="write the checked list as a page to print and hang up"
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of all random choices (default: 1)")
    parser.add_argument(
        "--runs", type=Path, default=Path("runs"), help="folder for the run folders (default: runs)"
    )
    add_keep_option(parser.add_argument)
    add_options(parser.add_argument_group("the cluster").add_argument)


def run(args: argparse.Namespace) -> int:
    claims = _chosen(args)
    if args.list:
        for claim in claims:
            print(f"{claim.id:8} {claim.statement}  [{claim.expected_text}]")
        return exits.AS_PROMISED
    from harness.claims.answers import as_data
    from reports.build import write_whole

    began = time.monotonic()
    answers = []
    for answer in _checked(claims, args):
        answers.append(answer)
        write_whole(args.runs / SO_FAR, json.dumps(as_data(answers)))
        if not args.json:
            print(_line(answer), flush=True)
    order = {claim.id: number for number, claim in enumerate(claims)}
    answers.sort(key=lambda each: order[each.claim.id])
    data = as_data(answers)
    if args.html is not None:
        _write_page(args, data)
    if args.json:
        print(json.dumps(data), flush=True)
    else:
        print(
            f"\n{data['as_expected']} of {data['claims_total']} claims as expected, {time.monotonic() - began:.0f} s"
        )
    return exit_code(answers)


def exit_code(answers: Sequence[ClaimAnswer]) -> int:
    """0: all answers are as expected. 1: one differs. 3: else, one is unproven."""
    from harness.claims.claim import Truth

    if any(not each.as_expected and each.truth is not Truth.UNPROVEN for each in answers):
        return exits.VIOLATED
    return exits.AS_PROMISED if all(each.as_expected for each in answers) else exits.INCONCLUSIVE


def _chosen(args: argparse.Namespace) -> list[Claim]:
    from harness.claims import listing, team_file

    own = [claim for path in args.file for claim in team_file.read(path)]
    # With a file and no ids only the claims of the file are meant.
    known = listing.by_id(own if args.file and not args.ids else [*listing.found().values(), *own])
    claims = listing.chosen(known, args.ids)
    if args.quick and not (claims := [claim for claim in claims if claim.quick]):
        raise UsageError("--quick: none of these claims is checked by CI; leave the option out")
    return claims


def _checked(claims: Sequence[Claim], args: argparse.Namespace) -> Iterator[ClaimAnswer]:
    """Yield each answer when it is there."""
    from harness.claims.checking import Workplace, check
    from harness.commands import _run_and_report
    from harness.commands._progress import Progress
    from harness.provision.versions import versions

    progress = Progress(len(claims))
    args.report = None
    _run_and_report.Proof(args, progress).prepare()
    place = Workplace(
        choice=Choice.of(lambda name: getattr(args, name)),
        runs=args.runs,
        seed=args.seed,
        keep=args.keep,
        versions=versions(),
        say=progress.note,
    )
    for answer in check(claims, place):
        progress.note(f"{answer.claim.id}: {answer.text}, {answer.seconds:.0f} s")
        yield answer


def _line(answer: ClaimAnswer) -> str:
    mark = "as expected" if answer.as_expected else f"EXPECTED {answer.claim.expected_text}"
    lines = [
        f"{answer.claim.id}: {answer.claim.statement}",
        f"    {answer.text.upper()} ({mark}, {answer.seconds:.0f} s)",
    ]
    return "\n".join([*lines, *(f"    {one.situation}: {one.evidence}" for one in answer.seen.observations)])


def _write_page(args: argparse.Namespace, data: dict[str, object]) -> None:
    from harness.provision.versions import versions
    from reports.claims_page import write

    path = write(args.html, data, versions(), time.strftime("%Y-%m-%d"))
    print(f"page: {path}", file=sys.stderr)
