"""What any fault has to pass on nodes that it fits: it bites, it is undone, also when the body fails."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from harness.contracts import Arena, Bite, Fault, Healing, Node


@dataclass(frozen=True)
class Checked:
    """What was measured on the way, for those who want to see the numbers."""

    bite: Bite
    healing: Healing


class _OnPurposeError(Exception):
    pass


def check_fault(fault: Fault, arena: Arena, nodes: Sequence[Node]) -> Checked:
    assert nodes, "the check needs a node"
    assert str(fault).isprintable()
    assert " " not in str(fault), f"{fault} is a word, as it becomes part of a test's id"
    assert json.loads(json.dumps(fault.describe()))["fault"] in str(fault)
    assert hash(fault) == hash(fault), "faults are values"
    assert all(isinstance(node, fault.needs) for node in nodes)

    assert fault.ways, "how it is done, and what that needs"
    assert fault.bites_when

    untouched = list(arena.cluster.residue())
    with fault.hold(arena, nodes) as bite:
        _check_told(bite.proof)
        assert bite.bit, bite.proof
        json.dumps(dict(bite.measured))
        assert bite.measured, f"a bite is measured: {bite.proof}"
        assert bite.way in fault.ways, f"the way that was taken is told: {bite.way!r}"
    healing = fault.healed(arena, nodes)
    _check_told(healing.proof)
    assert healing.healed, healing.proof
    assert list(arena.cluster.residue()) == untouched, "nothing is left: no rule, toxic, mount or process"

    try:
        with fault.hold(arena, nodes):
            raise _OnPurposeError
    except _OnPurposeError:
        pass
    else:
        raise AssertionError("a fault must not swallow what its body raises")
    again = fault.healed(arena, nodes)
    assert again.healed, f"undone although the body failed: {again.proof}"
    assert list(arena.cluster.residue()) == untouched, "nothing is left although the body failed"
    return Checked(bite, healing)


def _check_told(proof: str) -> None:
    assert proof, "the proof is one line that says something"
    assert "\n" not in proof
