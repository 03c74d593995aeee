"""After an abort a pipeline reads the same input again: delivered twice, with one effect."""

from __future__ import annotations

from dataclasses import replace

from harness.scenario import PipelineSettings, ProducerSettings
from suites.scenarios.hazards import Hazard, Kind
from suites.scenarios.pipelines import pipeline

hazard = Hazard(
    title="Inputs that are delivered again after an abort",
    kind=Kind.FALSE_ALARMS,
    at_risk="monitoring that counts deliveries: in exactly-once an input is delivered again after each abort",
    cure="Count the effects in the committed output, not the deliveries.",
    sources=("KIP-98",),
    safe=replace(
        pipeline("none"),
        name="safe-repeated_after_abort",
        hazard="repeated_after_abort",
        requires={"redelivered": 1},
        observed=False,
        producers=ProducerSettings(records_per_s=100),
        pipeline=PipelineSettings(inputs_per_transaction=20, aborted_share=0.5),
    ),
)
