"""After an aborted transaction the application reads on, instead of going back to the committed offsets."""

from __future__ import annotations

from dataclasses import replace

from harness.contracts import Verdict
from harness.scenario import Pipeline, PipelineSettings, ProducerSettings
from suites.scenarios.hazards import Hazard, Kind, safe_way
from suites.scenarios.pipelines import pipeline

RIGHT = PipelineSettings(members=1, inputs_per_transaction=20, aborted_share=0.5)
# The next transaction that commits also commits the position behind the inputs whose output was aborted.
UNSAFE = replace(
    pipeline("none"),
    name="control-not_rewound",
    expected=Verdict.VIOLATED,
    requires={"missing_effect": 1},
    control=True,
    hazard="not_rewound",
    observed=False,
    producers=ProducerSettings(records_per_s=100),
    pipeline=replace(RIGHT, kind=Pipeline.NOT_REWOUND),
)
hazard = Hazard(
    title="An application that does not go back to the committed offsets after an abort",
    kind=Kind.TRANSACTIONS,
    at_risk="every client: an abort undoes the output and the offsets, but not the position of the consumer",
    cure="After an abort, seek every assigned partition to its committed offset.",
    sources=("KAFKA-17582", "KIP-98"),
    unsafe=UNSAFE,
    safe=safe_way(UNSAFE, pipeline=RIGHT),
)
