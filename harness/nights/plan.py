"""The plan of a night: its seed, its scenarios in order, and the one among them that has to be VIOLATED."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.running.scenario_data import scenario_of
from harness.scenario import Scenario
from harness.schedule import length_s

_RUN_S = 14.0  # a run without its faults, on a quiet machine
_FAULT_S = 4.0  # beginning, undoing and proving one


@dataclass(frozen=True)
class Plan:
    """The scenarios of a night in order; one of them is unsafe, the canary."""

    seed: int
    minutes: float
    scenarios: tuple[Scenario, ...]
    canary: str  # the name of one of them
    # By name of the scenario:
    carried: Mapping[str, str] = field(default_factory=dict)  # its name in the earlier night that found it
    kafka: Mapping[str, str] = field(default_factory=dict)  # release of its brokers, if the night has several

    def as_data(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "minutes": self.minutes,
            "canary": self.canary,
            "carried": dict(self.carried),
            "kafka": dict(self.kafka),
            "scenarios": [scenario.describe() for scenario in self.scenarios],
        }

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Plan:
        """Return the plan that `as_data` wrote."""
        scenarios = tuple(
            scenario_of(each, f"plan.scenarios[{number}]") for number, each in enumerate(data["scenarios"], 1)
        )
        carried, kafka = (
            {
                str(scenario): str(value) for scenario, value in data.get(name, {}).items()
            }  # older plans have none
            for name in ("carried", "kafka")
        )
        return cls(int(data["seed"]), float(data["minutes"]), scenarios, str(data["canary"]), carried, kafka)


def expected_s(scenario: Scenario) -> float:
    """Return about how long a run takes on a quiet machine."""
    faults_s = length_s(scenario.schedule) if scenario.schedule else scenario.produce_s
    return _RUN_S + faults_s + _FAULT_S * len(scenario.schedule)
