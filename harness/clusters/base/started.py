"""A cluster in a `with` block: started at its beginning, stopped at its end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class StartedByWith(ABC):
    @abstractmethod
    def start(self) -> None:
        """Return when the cluster was observed to be ready. After an error nothing is left running."""

    @abstractmethod
    def stop(self) -> None:
        """Stop the cluster, also after a partial start or none."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
