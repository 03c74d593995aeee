"""Check that a fault fulfils its contract on suitable nodes: it bites and is undone, even if the body raises."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from harness.contracts import Arena, Bite, Fault, Healing, Node
from harness.schedule import fault_of


@dataclass(frozen=True)
class Checked:
    """The measurements of a check."""

    bite: Bite
    healing: Healing


class _OnPurposeError(Exception):
    pass


def check_fault(fault: Fault, arena: Arena, nodes: Sequence[Node]) -> Checked:
    assert nodes, "the check needs a node"
    assert str(fault).isprintable()
    assert " " not in str(fault), f"{fault} is a word, as it becomes part of a test's id"
    assert json.loads(json.dumps(fault.describe()))["fault"] in str(fault)
    twin = fault_of(json.loads(json.dumps(fault.describe())))
    assert (twin, hash(twin)) == (fault, hash(fault)), (
        "faults are values: equal to the one made from their description"
    )
    assert all(isinstance(node, fault.needs) for node in nodes)

    assert fault.ways, "a fault lists its ways and their requirements"
    assert fault.bites_when

    untouched = list(arena.cluster.residue())
    with fault.hold(arena, nodes) as bite:
        _check_proof(bite.proof)
        assert bite.bit, bite.proof
        json.dumps(dict(bite.measured))
        assert bite.measured, f"a bite is measured: {bite.proof}"
        assert bite.way in fault.ways, f"a bite reports the way that was used, not {bite.way!r}"
    healing = fault.healed(arena, nodes)
    _check_proof(healing.proof)
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


def _check_proof(proof: str) -> None:
    assert proof, "a proof is one line of text"
    assert "\n" not in proof
