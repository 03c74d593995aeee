"""The effects of a pipeline."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from harness.ledger.transform import OUTPUT
from tests.reconcile.cases.base import Case, case, message, pipeline
from tests.reconcile.together import Finding


@case
def consistent_pipeline(root: Path) -> Case:
    """Effects of an aborted transaction are made again, and are in the promised log once."""
    return pipeline(root, aborted_first=True)[0], set()


@case
def double_effect(root: Path) -> Case:
    """A zombie worked on one input again, and its transaction was committed."""
    run, made = pipeline(root)
    number = next(number for number, effects in enumerate(made) if len(effects) == 2)
    again = run.copy(7, run.log[number], txn=3)
    run.end(7, 3)
    planted: set[Finding] = {
        (
            "double_effect",
            (message(1, number), f"copier-1.0-{first.seq}", f"copier-1.0-{second.seq}"),
            (first.offset, second.offset),
        )
        for first, second in zip(made[number], again, strict=True)
    }
    return run, planted


@case
def missing_effect(root: Path) -> Case:
    """A transaction with the offsets was committed, and one input had no effect: never sent, so nothing is lost."""
    run, _ = pipeline(root)
    assert run.transform is not None
    more = run.write(1, 8, 0)
    owed = run.transform.effects(np.full(8, 1), np.array([one.seq for one in more]))
    left_out = [one for one, effects in zip(more, owed, strict=True) if effects > 0]
    assert len(left_out) < len(more), "the case needs an input that has no effect"
    return run, {("missing_effect", (message(1, one.seq),), (one.offset,)) for one in left_out}


@case
def missing_effect_of_the_second_only(root: Path) -> Case:
    """One of two effects is missing."""
    run, made = pipeline(root)
    number = next(number for number, effects in enumerate(made) if len(effects) == 2)
    second = made[number][1]
    at = (second.topic, second.partition, second.offset)
    del run.origins[at]  # another record is there, which was made of no input
    return run, {("missing_effect", (message(1, number),), (run.log[number].offset,))}


@case
def inputs_that_were_not_passed_owe_nothing(root: Path) -> Case:
    run, _ = pipeline(root)
    given = list(run.log[:12])
    run.write(1, 5, 0)
    run.drained = False
    run.give("copier-1.0", *given)
    return run, set()


@case
def effects_behind_an_open_transaction_are_late(root: Path) -> Case:
    """Nothing is missing: what is held back will be seen when the transaction before it ends."""
    run, _ = pipeline(root)
    output = [r for r in run.log if r.topic == OUTPUT]
    stable, end = output[3].offset, output[-1].offset + 1
    run.bounds[OUTPUT << 32] = (0, end, stable)
    held_back = [r for r in output if r.offset >= stable]
    run.committed = [r for r in run.log if r not in held_back]
    return run, {("late", (f"copier-1.0-{r.seq}",), (r.offset,)) for r in held_back}
