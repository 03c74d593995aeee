"""Names of senders and readers, and choices of runs, as expressions of Spark SQL.

In queries a sender or reader is a mark with its number in it. What finders give is small, and its marks are replaced by
names where it arrives: a look-up in the query costs a join for each finder, and all runs' names in each of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

# Around a number; nothing that is written to a ledger has these characters of control.
_SENDER, _READER, _END = "\x01", "\x02", "\x03"
_WITH_NAMES = ("sender", "reader", "messages", "evidence")


class Isolation(StrEnum):
    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


class Same(StrEnum):
    YES = "true"
    NO = "false"


@dataclass(frozen=True)
class Names:
    """Only numbers, booleans and members of Isolation get into the text of a query: a run's own texts never do."""

    senders: Mapping[tuple[int, int], str]  # run, session -> <producer>.<incarnation>
    readers: Mapping[tuple[int, int], str]  # run, reader -> its name
    isolations: Mapping[int, str]  # run -> what its group reads
    unchanged: Mapping[int, bool]  # run -> whether its topic's number of partitions stayed the same
    observers: Mapping[tuple[int, int], str] = field(default_factory=dict)  # run, reader -> what it reads

    def group_isolation(self) -> str:
        """What the group of the row's run reads."""
        return _of_run({run: Isolation(reads) for run, reads in self.isolations.items()})

    def isolation(self) -> str:
        """What the row's reader reads, one of the group or an observer."""
        return f"coalesce({self._observed()}, {self.group_isolation()})"

    def observes(self) -> str:
        """Whether the row's reader is an observer."""
        return f"{self._observed()} IS NOT NULL"

    def sees_anything(self) -> str:
        """Whether it is an observer of read_uncommitted, to which aborted records are shown by design."""
        return f"coalesce({self._observed()} = 'read_uncommitted', false)"

    def _observed(self) -> str:
        """What an observer reads, null for a reader of the group."""
        if not self.observers:
            return "CAST(NULL AS string)"
        text = "\\n".join(
            f"{int(run)}.{int(reader)}\\t{Isolation(reads)}"
            for (run, reader), reads in self.observers.items()
        )
        return f"try_element_at(str_to_map('{text}', '\\n', '\\t'), run || '.' || reader)"

    def is_unchanged(self) -> str:
        return (
            _of_run({run: Same.YES if same else Same.NO for run, same in self.unchanged.items()})
            + " = 'true'"
        )

    def spelled(self, findings: pa.Table) -> pa.Table:
        """Findings in order of their runs, with names for marks. A session that nobody began is called by its number."""
        runs = findings["run"].to_pylist()
        parts, first = [], 0
        for run, rows in groupby(runs):
            count = sum(1 for _ in rows)
            parts.append(self._spelled_of(run, findings.slice(first, count)))
            first += count
        return pa.concat_tables(parts) if parts else findings

    def _spelled_of(self, run: int, findings: pa.Table) -> pa.Table:
        names = {f"{_SENDER}{number}{_END}": name for (of, number), name in self.senders.items() if of == run}
        names |= {
            f"{_READER}{number}{_END}": name for (of, number), name in self.readers.items() if of == run
        }
        for column in _WITH_NAMES:
            at = findings.schema.get_field_index(column)
            texts = findings[column].combine_chunks()
            findings = findings.set_column(at, findings.field(column), _in_texts(texts, names))
        return findings


def sender_mark(session: str) -> str:
    return f"'{_SENDER}' || {session} || '{_END}'"


def reader_mark(reader: str) -> str:
    return f"'{_READER}' || {reader} || '{_END}'"


def _in_texts(array: Any, names: Mapping[str, str]) -> Any:
    """The same texts, or lists or maps of texts, with names for marks."""
    if pa.types.is_map(array.type):
        items = _in_texts(array.items, names)
        return pa.MapArray.from_arrays(array.offsets, array.keys, items, type=array.type)
    if pa.types.is_list(array.type):
        return pa.ListArray.from_arrays(array.offsets, _in_texts(array.values, names), type=array.type)
    for mark, name in names.items():
        array = pc.replace_substring(array, mark, name)
    return pc.replace_substring_regex(array, f"{_SENDER}([^{_END}]*){_END}", r"session \1")


def _of_run(values: Mapping[int, Isolation] | Mapping[int, Same]) -> str:
    same = {value.value for value in values.values()}
    if len(same) == 1:
        return f"'{same.pop()}'"
    # Spark computes str_to_map of a constant once, while it plans; from_json it would compute for each row.
    text = "\\n".join(f"{int(run)}\\t{value.value}" for run, value in values.items())
    return f"element_at(str_to_map('{text}', '\\n', '\\t'), CAST(run AS string))"
