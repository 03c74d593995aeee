"""Names and choices of runs as expressions of Spark SQL: looked up in a constant, where a join would cost a job each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Names:
    senders: Mapping[tuple[int, int], str]  # run, session -> <producer>.<incarnation>
    readers: Mapping[tuple[int, int], str]  # run, reader -> its name
    isolations: Mapping[int, str]  # run -> what its group reads
    unchanged: Mapping[int, bool]  # run -> whether its topic's number of partitions stayed the same

    def sender(self, session: str = "session") -> str:
        """The sender's name; a session that nobody began is called by its number."""
        found = _looked_up(
            {f"{run}/{number}": name for (run, number), name in self.senders.items()},
            f"run || '/' || {session}",
        )
        return f"coalesce({found}, 'session ' || {session})"

    def reader(self) -> str:
        return _looked_up(
            {f"{run}/{number}": name for (run, number), name in self.readers.items()}, "run || '/' || reader"
        )

    def isolation(self) -> str:
        """What the group of the row's run reads."""
        return _looked_up(
            {str(run): isolation for run, isolation in self.isolations.items()}, "CAST(run AS string)"
        )

    def is_unchanged(self) -> str:
        return (
            _looked_up(
                {str(run): str(same).lower() for run, same in self.unchanged.items()}, "CAST(run AS string)"
            )
            + " = 'true'"
        )


def _looked_up(values: Mapping[str, str], key: str) -> str:
    text = json.dumps(values).replace("\\", "\\\\").replace("'", "\\'")
    return f"element_at(from_json('{text}', 'map<string,string>'), {key})"
