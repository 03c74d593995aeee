"""Shapes of partitions as data: which nodes see each other, and which links are cut for that."""

from __future__ import annotations

from collections.abc import Collection
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faults import _shapes
from faults._shapes import Wiring
from faults.sever import SHAPES, Sever
from harness.clusters.links.mesh import Mesh, members
from harness.contracts import Direction
from harness.errors import FaultError


def wiring(brokers: int, controllers: int, combined: bool) -> Wiring:
    mesh = Mesh(99, members(brokers, controllers, combined))
    return Wiring.of([m.name for m in mesh.members], [route.link for route in mesh.routes()])


@st.composite
def wirings(draw: st.DrawFn) -> tuple[Wiring, list[str]]:
    """A cluster and one or more targets in it."""
    made = wiring(draw(st.integers(1, 7)), draw(st.integers(1, 5)), draw(st.booleans()))
    targets = draw(st.lists(st.sampled_from(made.names), min_size=1, max_size=3, unique=True))
    return made, targets


def seen_by(name: str, names: Collection[str], apart: _shapes.Pairs) -> frozenset[str]:
    return frozenset(other for other in names if frozenset({name, other}) not in apart)


@given(wirings())
def test_halves_separate_exactly_the_nodes_on_different_sides(case: tuple[Wiring, list[str]]) -> None:
    made, targets = case
    near = _shapes.side(made, targets)
    apart = _shapes.halves(made, targets)
    assert set(targets) <= near
    for a, b in combinations(made.names, 2):
        assert (frozenset({a, b}) in apart) == ((a in near) != (b in near))


@given(wirings())
def test_the_side_of_a_single_target_is_never_more_than_half_of_a_kind(
    case: tuple[Wiring, list[str]],
) -> None:
    made, (target, *_others) = case
    near = _shapes.side(made, [target])
    for kind in made.kinds():
        alone = len(kind) == 1 and kind[0] == target
        assert len(near & set(kind)) == (1 if alone else len(kind) // 2)


@given(wirings())
def test_in_a_ring_each_node_sees_a_majority_and_no_two_the_same(case: tuple[Wiring, list[str]]) -> None:
    made, targets = case
    if len(made.names) < 3:
        with pytest.raises(FaultError, match="at least 3"):
            _shapes.ring(made, targets)
        return
    apart = _shapes.ring(made, targets)
    majorities = [seen_by(name, made.names, apart) for name in made.names]
    assert all(len(seen) * 2 > len(made.names) for seen in majorities)
    assert len(set(majorities)) == len(made.names)


@given(wirings())
def test_only_the_bridge_sees_both_sides(case: tuple[Wiring, list[str]]) -> None:
    made, (target, *_others) = case
    try:
        apart = _shapes.bridge(made, [target])
    except FaultError:
        assert all(len([name for name in kind if name != target]) < 2 for kind in made.kinds())
        return
    everyone = frozenset(made.names)
    assert seen_by(target, made.names, apart) == everyone
    sides = {seen_by(name, made.names, apart) for name in made.names if name != target}
    near, far = sorted(sides, key=sorted)
    assert near & far == {target}
    assert near | far == everyone


@given(wirings(), st.sampled_from(SHAPES), st.sampled_from(Direction))
def test_cuts_are_links_that_exist_each_once_and_in_the_direction(
    case: tuple[Wiring, list[str]], shape: str, direction: Direction
) -> None:
    made, targets = case
    if shape == "answers":
        direction = Direction.ANSWERS
    try:
        cuts = Sever(shape, direction).cuts(made, targets)
    except FaultError:
        assert shape in ("ring", "bridge")
        return
    links = [cut.link for cut in cuts]
    assert len(set(links)) == len(links)
    assert set(links) <= set(made.links)
    assert {cut.direction for cut in cuts} <= {direction}
    if shape in ("isolate", "halves", "ring", "bridge"):
        cut = {frozenset({link.source, link.destination}) for link in links}
        left = {frozenset({link.source, link.destination}) for link in made.links} - cut
        assert not cut & left, "no link of a separated pair is left"
        assert not any(_shapes.of_clients(link) for link in links)


def cut_links(shape: str, made: Wiring, *targets: str) -> list[str]:
    found = [str(cut.link) for cut in Sever(shape).cuts(made, targets)]
    return [text.replace("broker-", "b").replace("controller-", "c") for text in sorted(found)]


def test_links_cut_between_brokers_and_separate_controllers() -> None:
    made = wiring(3, 1, False)
    assert cut_links("isolate", made, "broker-2") == [
        "b1->b2",
        "b2->b1",
        "b2->b3",
        "b2->c1:controller",
        "b3->b2",
    ]
    assert cut_links("replication", made, "broker-2") == ["b1->b2", "b3->b2"]
    assert cut_links("controllers", made, "broker-2") == ["b2->c1:controller"]
    assert cut_links("clients", made, "broker-2") == ["consume->b2", "produce->b2"]
    assert cut_links("answers", made, "broker-2") == ["produce->b2"]
    assert cut_links("replication", made, "controller-1") == [f"b{n}->c1:controller" for n in (1, 2, 3)]
    assert cut_links("clients", made, "controller-1") == []


def test_links_of_combined_nodes_are_cut_by_role() -> None:
    made = wiring(3, 3, True)
    asked = ["b1->b2:controller", "b2->b1:controller", "b2->b3:controller", "b3->b2:controller"]
    fetched = ["b1->b2", "b3->b2"]
    assert cut_links("controllers", made, "broker-2") == asked
    assert cut_links("replication", made, "broker-2") == fetched
    assert cut_links("isolate", made, "broker-2") == sorted([*asked, *fetched, "b2->b1", "b2->b3"])


def test_a_ring_of_three_separates_the_target_from_the_next_node() -> None:
    made = wiring(3, 3, True)
    assert _shapes.ring(made, ["broker-3"]) == {frozenset({"broker-3", "broker-1"})}


@pytest.mark.parametrize(
    ("shape", "target", "losers"),
    [
        ("isolate", "broker-1", {"broker-1"}),
        ("isolate", "controller-1", {"controller-1"}),
        ("controllers", "broker-1", {"broker-1"}),
        ("halves", "broker-1", {"broker-1", "controller-1"}),
        ("halves", "controller-3", {"broker-1", "controller-3"}),
        ("replication", "broker-1", set()),
        ("clients", "broker-1", set()),
        ("ring", "broker-1", set()),
        ("bridge", "broker-1", set()),
    ],
)
def test_losers_are_the_nodes_without_a_quorum(shape: str, target: str, losers: set[str]) -> None:
    for direction in Direction:
        assert Sever(shape, direction).losers(wiring(3, 3, False), [target]) == losers


def test_the_side_without_the_only_controller_loses() -> None:
    made = wiring(3, 1, False)
    assert Sever("halves").losers(made, ["controller-1"]) == {"broker-2", "broker-3"}
    assert Sever("isolate").losers(made, ["controller-1"]) == frozenset(), "no other node can lead instead"
