"""Check claims one after the other, on as few clusters as their needs allow."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from confluent_kafka import KafkaException

from harness.campaign import Campaign
from harness.claims.bench import Bench, NotApplicable
from harness.claims.claim import Claim, ClaimAnswer, ClusterNeeds, Measurements, Observation, truth_of
from harness.cluster_options import Choice, running
from harness.contracts import Cluster
from harness.errors import ClusterError, OnceproofError, WaitTimeout
from harness.execute import BrokenRun
from harness.processes import ownership
from harness.provision.kafka import LAST_WITH_ZOOKEEPER

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Workplace:
    """The clusters and folders with which claims are checked, or hunts are run."""

    choice: Choice
    runs: Path
    seed: int
    keep: str
    versions: Mapping[str, str]
    say: Say
    build: Callable[[Choice, Path], Cluster] = Choice.build  # not started yet


def check(claims: Sequence[Claim], place: Workplace) -> Iterator[ClaimAnswer]:
    """Check the claims and yield each answer as soon as it is known. Claims that need the same cluster share it."""

    def cluster_of(pair: tuple[ClusterNeeds, Claim]) -> str:
        return f"{pair[0].apart} {chosen_for(pair[0], place.choice)!r}"

    pairs = sorted(((needs, claim) for claim in claims for needs in claim.clusters), key=cluster_of)
    parts: dict[str, list[_Part]] = {claim.id: [] for claim in claims}
    for _, sharing in groupby(pairs, key=cluster_of):
        for part in _each(list(sharing), place):
            known = parts[part.claim.id]
            known.append(part)
            if len(known) == len(part.claim.clusters):
                yield _together(part.claim, known)


@dataclass(frozen=True)
class _Part:
    """The measurements of a claim on one of its clusters."""

    claim: Claim
    label: str
    seen: Measurements
    seconds: float

    def completed(self) -> _Part:
        """Return it with the observations of all its runs."""
        began = time.monotonic()
        seen = _guarded(self.seen.completed)
        if self.label:
            labelled = (replace(o, situation=f"{self.label}: {o.situation}") for o in seen.observations)
            seen = replace(seen, observations=tuple(labelled))
        return replace(self, seen=seen, seconds=self.seconds + time.monotonic() - began)


def _together(claim: Claim, parts: Sequence[_Part]) -> ClaimAnswer:
    observations = tuple(one for part in parts for one in part.seen.observations)
    curves = tuple(curve for part in parts for curve in part.seen.curves)
    seconds = sum(part.seconds for part in parts)
    return ClaimAnswer(claim, truth_of(observations), Measurements(observations, curves), seconds)


def _each(pairs: Sequence[tuple[ClusterNeeds, Claim]], place: Workplace) -> Iterator[_Part]:
    """Measure each of these claims. If their cluster does not start, they are unproven; claims on other clusters are still checked."""
    left = {claim.id: (needs, claim) for needs, claim in pairs}
    try:
        for part in _on_one_cluster(pairs, place):
            del left[part.claim.id]
            yield part
    except (ClusterError, WaitTimeout) as error:
        place.say(str(error))
        for needs, claim in left.values():
            yield _Part(claim, "", _nothing(f"{needs.label} {error}".strip()), 0.0)


def _on_one_cluster(pairs: Sequence[tuple[ClusterNeeds, Claim]], place: Workplace) -> Iterator[_Part]:
    """Measure each of these claims on one cluster that all of them need; yield each as soon as its runs are reconciled."""
    now, measured = [""], list[_Part]()
    choice = chosen_for(pairs[0][0], place.choice)
    folder = ownership.new_cluster_folder(place.runs)
    with ExitStack() as stack:
        place.say(f"starting {choice}")
        cluster = stack.enter_context(running(place.build(choice, folder)))
        campaign = stack.enter_context(
            Campaign(
                cluster, place.runs, versions=place.versions, keep=place.keep, pack_at_once=True,
                say=lambda scenario, text: place.say(f"  {scenario}: {text}"),
                command_for=lambda scenario: f"./onceproof claims {now[0]}",
            )
        )  # fmt: skip
        for needs, claim in pairs:
            now[0] = claim.id
            place.say(f"{claim.id}: {claim.statement}")
            bench = Bench(cluster, campaign, place.seed, claim.id)
            measured.append(_measured(claim, bench, needs.label))
            _tidied(bench, place.say)
            ready = [part for part in measured if part.seen.complete]
            measured = [part for part in measured if part not in ready]
            yield from (part.completed() for part in ready)
        yield from (part.completed() for part in measured)
    ownership.remove(folder)


def chosen_for(needs: ClusterNeeds, choice: Choice) -> Choice:
    """Return the user's choice, changed as the claim needs it. The layout of an existing cluster cannot be changed."""
    if choice.cluster == "existing":
        return choice
    kind = needs.kind or choice.cluster
    # The default release has no ZooKeeper.
    default = LAST_WITH_ZOOKEEPER if kind == "zookeeper" and kind != choice.cluster else choice.kafka
    return replace(
        choice,
        cluster=kind,
        combined=choice.combined if needs.combined is None else needs.combined,
        kafka=needs.kafka or default,
        options=needs.options,
        settings=needs.settings,
    )


def _measured(claim: Claim, bench: Bench, label: str) -> _Part:
    """Run the claim's case. Its runs may still have to be reconciled."""
    began = time.monotonic()
    seen = _guarded(lambda: claim.case(bench))
    return _Part(claim, label, seen, time.monotonic() - began)


def _guarded(measure: Callable[[], Measurements]) -> Measurements:
    """Measure. An error of onceproof or of the cluster leaves the claim unproven and never makes it false."""
    try:
        return measure()
    except NotApplicable as reason:
        return _nothing(f"not checked: {reason}")
    except (OnceproofError, BrokenRun, KafkaException, TimeoutError) as error:
        return _nothing(str(error) or "a request of the case timed out")


def _tidied(bench: Bench, say: Say) -> None:
    """Delete the topics of a case. A topic that cannot be deleted does not change the answer, and ends with the cluster."""
    try:
        bench.close()
    except OnceproofError as error:
        say(f"  {error}")


def _nothing(why: str) -> Measurements:
    return Measurements.of(Observation("as stated", None, why))
