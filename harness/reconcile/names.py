"""Names and choices of runs as expressions of Spark SQL: looked up in a constant, where a join would cost a job each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MANY = 64


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
        return _of_run(self.isolations)

    def is_unchanged(self) -> str:
        return _of_run({run: str(same).lower() for run, same in self.unchanged.items()}) + " = 'true'"

    @property
    def many(self) -> bool:
        """So many that a look-up for each row, which goes through all of them, would cost more than a join."""
        return len(self.senders) + len(self.readers) > MANY


def _of_run(values: Mapping[int, str]) -> str:
    same = set(values.values())
    if len(same) == 1:
        return f"'{same.pop()}'"
    return _looked_up({str(run): value for run, value in values.items()}, "CAST(run AS string)")


def _looked_up(values: Mapping[str, str], key: str) -> str:
    # Spark computes str_to_map of a constant once, while it plans; from_json it would compute for each row.
    text = "\n".join(f"{name}\t{value}" for name, value in values.items())
    quoted = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\t", "\\t")
    return f"element_at(str_to_map('{quoted}', '\\n', '\\t'), {key})"
