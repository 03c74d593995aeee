"""Observations and faults that several groups of claims share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from harness.claims.bench import Bench
from harness.claims.claim import Measurements, Part, PendingObservation
from harness.contracts import Killable, Verdict
from harness.waiting import in_parallel
from suites.scenarios import hazards


def provoked(bench: Bench, hazard: str, situation: str) -> PendingObservation:
    """Run the unsafe scenario of a hazard: the statement holds if the anomaly that it names was found."""
    unsafe = hazards.found()[hazard].unsafe
    assert unsafe is not None, hazard
    return bench.observed(unsafe, situation, holds_if=Verdict.VIOLATED)


def avoided(bench: Bench, hazard: str, situation: str, part: Part = Part.CONTROL) -> PendingObservation:
    """Run the safe scenario of a hazard: the statement holds if nothing was found."""
    safe = hazards.found()[hazard].safe
    assert safe is not None, hazard
    return bench.observed(safe, situation, part)


def shown_by(hazard: str, unsafe: str, safe: str) -> Callable[[Bench], Measurements]:
    """Return the case of a claim that a hazard shows: `unsafe` and `safe` describe the situations of its two scenarios."""

    def case(bench: Bench) -> Measurements:
        return Measurements.of(provoked(bench, hazard, unsafe), avoided(bench, hazard, safe))

    return case


def contradicted(shown: PendingObservation) -> PendingObservation:
    """Return what a hazard shows about a statement that it contradicts: if the anomaly was found, the statement fails."""
    return shown.then(lambda seen: replace(seen, holds=None if seen.holds is None else not seen.holds))


def outside(shown: PendingObservation) -> PendingObservation:
    """Return what a hazard shows about a statement that it contradicts, in a situation outside of the statement."""
    return contradicted(shown).then(lambda seen: replace(seen, part=Part.OUTSIDE))


@contextmanager
def killed_nodes(bench: Bench, names: Sequence[str]) -> Iterator[None]:
    """Kill these nodes, and restart them at the end."""
    killed: list[Killable] = []
    with ExitStack() as undo:
        # In parallel: a quorum that went down as a whole only comes back as a whole.
        undo.callback(in_parallel, lambda node: node.restart(), killed)
        for node in bench.cluster.nodes():
            if node.name in names:
                assert isinstance(node, Killable)
                killed.append(node)
                node.kill()
        yield
