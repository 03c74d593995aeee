"""The final readings of a run: the partitions that were read whole, and the questions not asked of the others (E11).

A partition was read whole if its reading reached an end that was requested after the reading began. A record that was not
read is not missing: of the other partitions lost, torn, undelivered and missing_effect are not asked, and coverage lists
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.ledger.manifest import ISOLATIONS
from harness.ledger.transform import INPUT

Place = tuple[int, int]  # topic, partition
NotAsked = dict[str, Any]  # topic, partition (None: all), anomalies, why

_DID_NOT_BEGIN = "the final reading did not begin"
_NO_EVENTS = "the ledger does not have the end of its final {isolation} reading"


@dataclass
class Readings:
    """The records of the final reader about its readings, by topic and partition."""

    planned: list[int] | None = (
        None  # how many partitions each topic has, by its number; None: it did not begin
    )
    # For each partition the highest start, and the end and the last stable offset that were requested last.
    bounds: dict[Place, tuple[int, int, int]] = field(default_factory=dict)
    # By isolation: how far it was read, and the end that was requested.
    reached: dict[str, dict[Place, tuple[int, int]]] = field(
        default_factory=lambda: {isolation: {} for isolation in ISOLATIONS}
    )

    @property
    def places(self) -> list[Place]:
        """Every partition that was to be read, and every one with bounds."""
        planned = {(topic, p) for topic, count in enumerate(self.planned or ()) for p in range(count)}
        return sorted(planned | self.bounds.keys())

    def unchanged(self, partitions: int | None) -> bool:
        """Return True if the topic under test had this many partitions when it was read, or if that is not known."""
        return not self.planned or partitions is None or self.planned[INPUT] == partitions

    def whole(self, place: Place, isolation: str) -> bool:
        return self.why_not(place, isolation) is None

    def why_owed_not(self, place: Place, owed: str) -> str | None:
        """Return why no record of this partition can count as missing; None: the log that is owed was read whole.

        Only the read_uncommitted reading shows late records, so it has to be whole as well.
        """
        return self.why_not(place, owed) or self.why_not(place, "read_uncommitted")

    def why_not(self, place: Place, isolation: str) -> str | None:
        """Return why the reading of this partition is not whole; None: it is."""
        if self.planned is None:
            return _DID_NOT_BEGIN
        topic, partition = place
        if not 0 <= topic < len(self.planned) or not 0 <= partition < self.planned[topic]:
            return "it was not among the partitions to read"
        if place not in self.bounds or place not in self.reached.get(isolation, {}):
            return _NO_EVENTS.format(isolation=isolation)
        reached, until = self.reached[isolation][place]
        return None if reached >= until else f"the final {isolation} reading stopped at {reached} of {until}"

    def rows(self, owed: str, group: str) -> list[dict[str, Any]]:
        """Return the rows of the table `bounds`."""
        rows = []
        for topic, partition in self.places:
            start, end, stable = self.bounds.get((topic, partition), (None, None, None))
            rows.append({
                "topic": topic, "partition": partition, "start": start, "end": end, "stable": stable,
                "whole": self.why_owed_not((topic, partition), owed) is None,
                "whole_for_group": self.whole((topic, partition), group),
            })  # fmt: skip
        return rows

    def not_asked(
        self, names: Sequence[str], owed: str, group: str, *, transactions: bool, pipeline: bool
    ) -> list[NotAsked]:
        """Return the questions that are not asked, by partition, with the reason; topics by name."""
        about_log = ["lost", "torn"] if transactions else ["lost"]
        if self.planned is None:
            every = [*about_log, "undelivered", *(["missing_effect"] if pipeline else [])]
            return [_entry(name, None, every, _DID_NOT_BEGIN) for name in names]
        found = []
        for place in self.places:
            topic, partition = place
            name = names[topic] if topic < len(names) else f"topic-{topic}"
            reasons: dict[str, list[str]] = {}
            if why := self.why_owed_not(place, owed):
                about_output = ["missing_effect"] if pipeline and topic != INPUT else []
                reasons[why] = [*about_log, *about_output]
            if topic == INPUT and (why := self.why_not(place, group)):
                about_group = ["undelivered", *(["missing_effect"] if pipeline else [])]
                reasons[why] = [*reasons.get(why, []), *about_group]
            if pipeline and topic != INPUT and not reasons and self.bounds[place][0] > 0:
                start = self.bounds[place][0]
                reasons[f"its log starts at {start}: effects may have been deleted"] = ["missing_effect"]
            found += [_entry(name, partition, anomalies, why) for why, anomalies in reasons.items()]
        return found


def _entry(topic: str, partition: int | None, anomalies: list[str], why: str) -> NotAsked:
    return {"topic": topic, "partition": partition, "anomalies": anomalies, "why": why}


def readings_of(
    begins: Iterable[Mapping[str, Any]],
    bounds: Iterable[Mapping[str, Any]],
    ends: Iterable[Mapping[str, Any]],
) -> Readings:
    """Return the readings, from rows of the events `reading_begins`, `bounds` and `reading`, each in order of time."""
    found = Readings()
    for row in begins:
        found.planned = row["partitions"]
    for row in bounds:
        place = row["topic"], row["partition"]
        # A record that was deleted during the reading is not missing either: the higher start counts.
        start = max(row["start"], found.bounds.get(place, (row["start"], 0, 0))[0])
        found.bounds[place] = start, row["end"], row["stable"]
    for row in ends:
        found.reached[row["isolation"]][row["topic"], row["partition"]] = row["reached"], row["until"]
    return found


def all_effects_read(rows: Iterable[Mapping[str, Any]]) -> bool:
    """Return True if every partition of every output was read whole and from offset 0, by rows of `bounds`."""
    outputs = [row for row in rows if row["topic"] != INPUT]
    return bool(outputs) and all(row["whole"] and row["start"] == 0 for row in outputs)
