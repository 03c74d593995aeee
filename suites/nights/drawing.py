"""Draw values of a Hypothesis strategy from a seed: the same seed gives the same values, everywhere.

Hypothesis itself does not promise that: under CI=1 its default profile ignores seeds, and its own provider mixes in constants
of whatever modules are loaded. So a profile and a provider of this project are used, both only for the time of a drawing.
"""

from __future__ import annotations

import random
from contextvars import ContextVar
from typing import Any, ClassVar, TypeVar

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity, settings
from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS, PrimitiveProvider
from hypothesis.strategies import SearchStrategy

Drawn = TypeVar("Drawn")
_BACKEND = "onceproof-nights"
_seed: ContextVar[str] = ContextVar("seed of the drawing")


class SeededProvider(PrimitiveProvider):
    """Chooses uniformly, by Python's generator with the seed of the drawing. It supports the strategies of nights, no others."""

    lifetime: ClassVar[Any] = "test_function"

    def __init__(self, conjecturedata: Any, /) -> None:
        super().__init__(conjecturedata)
        self._random = random.Random(_seed.get())  # a text: seeds of texts do not depend on the process

    def draw_boolean(self, p: float = 0.5) -> bool:
        return self._random.random() < p

    def draw_integer(
        self,
        min_value: int | None = None,
        max_value: int | None = None,
        *,
        weights: dict[int, float] | None = None,
        shrink_towards: int = 0,
    ) -> int:
        assert min_value is not None
        assert max_value is not None
        return self._random.randint(min_value, max_value)

    def draw_float(self, **_: Any) -> float:
        raise NotImplementedError("strategies of nights sample from lists")

    def draw_string(self, *_: Any, **__: Any) -> str:
        raise NotImplementedError("strategies of nights sample from lists")

    def draw_bytes(self, *_: Any, **__: Any) -> bytes:
        raise NotImplementedError("strategies of nights sample from lists")


def drawn(strategy: SearchStrategy[Drawn], seed: str, count: int) -> list[Drawn]:
    """Return `count` values; equal ones may occur."""
    AVAILABLE_PROVIDERS.setdefault(_BACKEND, SeededProvider)
    found: list[Drawn] = []

    @hypothesis.seed(seed)
    @settings(
        backend=_BACKEND,
        database=None,
        derandomize=False,
        deadline=None,
        max_examples=count,
        phases=(Phase.generate,),
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
    )
    @hypothesis.given(strategy)
    def collect(value: Drawn) -> None:
        found.append(value)

    token = _seed.set(seed)
    try:
        collect()
    finally:
        _seed.reset(token)
    return found[:count]
