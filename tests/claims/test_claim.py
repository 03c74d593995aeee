"""The result of a claim follows from what was observed, and never from an observation that proves nothing."""

from __future__ import annotations

import pytest

from harness.claims import listing
from harness.claims.bench import Bench
from harness.claims.checking import chosen_for
from harness.claims.claim import Claim, ClusterNeeds, Measurements, Observation, Part, Truth, truth_of
from harness.cluster_options import Choice
from harness.errors import UsageError

STATED, OUTSIDE, CONTROL = Part.STATED, Part.OUTSIDE, Part.CONTROL


def seen(*parts: tuple[Part, bool | None]) -> Truth:
    return truth_of([Observation("a situation", holds, "a number", part) for part, holds in parts])


def claim(name: str = "TEAM-1", **changes: object) -> Claim:
    given = {"statement": "It holds.", "expected": Truth.TRUE, "why": "", "setting": "", "case": _nothing}
    return Claim(id=name, **{**given, **changes})  # type: ignore[arg-type]


def _nothing(bench: Bench) -> Measurements:
    return Measurements.of()


@pytest.mark.parametrize(
    ("parts", "truth"),
    [
        ([(STATED, True)], Truth.TRUE),
        ([(STATED, False)], Truth.FALSE),
        ([(STATED, True), (STATED, False)], Truth.FALSE),
        ([(STATED, True), (OUTSIDE, True)], Truth.TRUE),
        ([(STATED, True), (OUTSIDE, False)], Truth.CONDITIONAL),
        ([(STATED, False), (OUTSIDE, False)], Truth.FALSE),
        ([(STATED, True), (CONTROL, True)], Truth.TRUE),
        ([(STATED, False), (CONTROL, True)], Truth.FALSE),
    ],
)
def test_the_result_follows_from_stated_and_other_situations(
    parts: list[tuple[Part, bool | None]], truth: Truth
) -> None:
    assert seen(*parts) is truth


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [(OUTSIDE, True)],
        [(STATED, None)],
        [(STATED, True), (STATED, None)],
        [(STATED, True), (OUTSIDE, None)],
        [(STATED, True), (CONTROL, None)],
        [(STATED, True), (CONTROL, False)],
        [(STATED, False), (CONTROL, False)],
    ],
)
def test_without_proof_the_result_is_unproven(parts: list[tuple[Part, bool | None]]) -> None:
    assert seen(*parts) is Truth.UNPROVEN


def test_a_condition_belongs_to_true_only_when() -> None:
    assert claim(expected=Truth.CONDITIONAL, condition="it rains").expected_text == "true only when it rains"
    for wrong in ({"condition": "it rains"}, {"expected": Truth.CONDITIONAL}, {"expected": Truth.UNPROVEN}):
        with pytest.raises(ValueError, match=r"^TEAM-1: "):
            claim(**wrong)


def test_claims_are_chosen_by_id_and_by_group() -> None:
    known = listing.by_id([claim("ORD-1"), claim("ORD-2"), claim("DUR-1")])
    assert [c.id for c in listing.chosen(known, [])] == ["ORD-1", "ORD-2", "DUR-1"]
    assert [c.id for c in listing.chosen(known, ["dur-1", "ORD"])] == ["DUR-1", "ORD-1", "ORD-2"]
    with pytest.raises(UsageError, match=r"^ORD-3: .*ORD-1"):
        listing.chosen(known, ["ORD-3"])
    with pytest.raises(UsageError, match=r"^claim ORD-1: exists twice"):
        listing.by_id([claim("ORD-1"), claim("ORD-1")])


def test_a_claim_chooses_its_cluster_but_not_a_running_one() -> None:
    needs = ClusterNeeds(settings={"a": "b"}, combined=True)
    chosen = chosen_for(needs, Choice())
    assert (chosen.settings, chosen.combined, chosen.cluster) == ({"a": "b"}, True, "local")
    zookeeper = chosen_for(ClusterNeeds(kind="zookeeper"), Choice())
    assert (zookeeper.cluster, zookeeper.kafka.split(".")[0]) == ("zookeeper", "3")
    running = Choice(cluster="existing", bootstrap="localhost:1")
    assert chosen_for(needs, running) == running


# --- the claims of this project ----------------------------------------------------------------------

WANTED = {
    "ORD": 6, "OFF": 4, "GRP": 6, "DUR": 8, "DEL": 3, "BAT": 4, "RET": 2, "REC": 1, "CTL": 6, "DLQ": 1,
}  # fmt: skip


def test_every_statement_has_its_case() -> None:
    expected = {f"{group}-{number}" for group, count in WANTED.items() for number in range(1, count + 1)}
    assert set(listing.found()) == expected


@pytest.mark.parametrize("one", listing.found().values(), ids=lambda c: c.id)
def test_a_claim_is_written_for_a_reader(one: Claim) -> None:
    assert one.statement.endswith(".")
    assert one.why.endswith(".")
    assert one.setting
    assert "  " not in one.statement + one.why
