"""A claim: a statement about Kafka, and the case that checks it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.clusters.base.options import PLAIN, Options

if TYPE_CHECKING:
    from harness.claims.bench import Bench


class Truth(StrEnum):
    """The result of a claim."""

    TRUE = "true"
    FALSE = "false"
    CONDITIONAL = "true only when"
    UNPROVEN = "unproven"  # the runs prove nothing


class Part(StrEnum):
    """The part that an observation plays for a claim."""

    STATED = "stated"  # the situation that the claim speaks of
    OUTSIDE = "outside"  # a situation in which a reader might expect it as well, and where it may fail
    CONTROL = "control"  # without the cause; the statement proves something only if this holds too


@dataclass(frozen=True)
class Observation:
    """A measurement in one situation: the statement holds there or not; None: the measurement proves nothing."""

    situation: str
    holds: bool | None
    evidence: str  # numbers, in a few words
    part: Part = Part.STATED
    run: Path | None = None


@dataclass(frozen=True)
class PendingObservation:
    """The observation of a run that is still being reconciled, beside the next runs."""

    result: Future[Any]
    shown_by: Callable[[Any], Observation]

    def then(self, change: Callable[[Observation], Observation]) -> PendingObservation:
        """Return what this change makes of the observation."""
        return PendingObservation(self.result, lambda result: change(self.shown_by(result)))


@dataclass(frozen=True)
class Curve:
    """A measured curve, for claims whose answer is one."""

    x: str  # with the unit
    y: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Measurements:
    """Everything that a case measured."""

    observations: tuple[Observation, ...]
    curves: tuple[Curve, ...] = ()
    pending: Mapping[int, PendingObservation] = field(default_factory=dict)  # by their places among all

    @classmethod
    def of(
        cls, *observations: Observation | PendingObservation, curves: Sequence[Curve] = ()
    ) -> Measurements:
        ready = tuple(each for each in observations if isinstance(each, Observation))
        pending = {n: each for n, each in enumerate(observations) if isinstance(each, PendingObservation)}
        return cls(ready, tuple(curves), pending)

    @property
    def complete(self) -> bool:
        """True if `completed` does not have to wait."""
        return all(each.result.done() for each in self.pending.values())

    def completed(self) -> Measurements:
        """Wait for the runs and return all observations; raise what a run raises."""
        observations = list(self.observations)
        for place, each in sorted(self.pending.items()):
            observations.insert(place, each.shown_by(each.result.result()))
        return Measurements(tuple(observations), self.curves)


@dataclass(frozen=True, kw_only=True)
class ClusterNeeds:
    """A cluster that a claim is about. Claims that need the same cluster share it, except those with `apart`."""

    options: Options = PLAIN
    settings: Mapping[str, str] = field(default_factory=dict)  # broker settings
    kind: str = ""  # empty: the user's choice
    combined: bool | None = None  # None: the user's choice
    kafka: str = ""  # release; empty: the user's choice
    apart: str = ""  # the claim's id, if it leaves the cluster in a state that other claims would suffer from
    label: str = ""  # names it in observations, if a claim is about several clusters


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A statement, the expected result, and the case that measures it.

    `condition` completes "true only when". `why` explains the answer in one or two sentences, `setting` names what decides it.
    """

    id: str
    statement: str
    expected: Truth
    condition: str = ""
    why: str
    setting: str
    case: Callable[[Bench], Measurements]
    clusters: tuple[ClusterNeeds, ...] = (ClusterNeeds(),)  # the case runs once on each
    quick: bool = False  # part of CI

    def __post_init__(self) -> None:
        if self.expected is Truth.UNPROVEN:
            raise ValueError(f"{self.id}: a claim is expected to be true, false, or true only when …")
        if bool(self.condition) != (self.expected is Truth.CONDITIONAL):
            raise ValueError(f"{self.id}: a condition belongs to 'true only when', and to nothing else")

    @property
    def group(self) -> str:
        """The letters of its id, such as ORD."""
        return self.id.partition("-")[0]

    @property
    def expected_text(self) -> str:
        return f"{self.expected} {self.condition}".strip()


@dataclass(frozen=True)
class ClaimAnswer:
    """The result of a claim, with its evidence."""

    claim: Claim
    truth: Truth
    seen: Measurements
    seconds: float

    @property
    def as_expected(self) -> bool:
        return self.truth is self.claim.expected

    @property
    def text(self) -> str:
        condition = self.claim.condition or "in some of the situations below"
        return f"{self.truth} {condition}" if self.truth is Truth.CONDITIONAL else str(self.truth)


def truth_of(observations: Sequence[Observation]) -> Truth:
    """Return the result that follows from the observations.

    It is unproven if a measurement proves nothing, if a control fails, or if the stated situation was not measured. Otherwise
    the statement is false if it fails in a stated situation, and conditional if it fails only outside of them.
    """
    stated = [each for each in observations if each.part is Part.STATED]
    doubtful = any(each.holds is None for each in observations)
    uncontrolled = any(each.part is Part.CONTROL and not each.holds for each in observations)
    if not stated or doubtful or uncontrolled:
        return Truth.UNPROVEN
    if not all(each.holds for each in stated):
        return Truth.FALSE
    outside = all(each.holds for each in observations if each.part is Part.OUTSIDE)
    return Truth.TRUE if outside else Truth.CONDITIONAL
