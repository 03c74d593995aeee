"""Values as text for reports and terminals: numbers, times, names."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

NOTHING = "\u2013"
MODES = ("at_most_once", "at_least_once", "idempotent", "exactly_once")  # weakest promise first

# The meaning of each anomaly, for readers who do not know the vocabulary.
MEANINGS = {
    "lost": "acknowledged, but nowhere in the log",
    "unseen": "acknowledged and never read: lost or late",
    "duplicated": "one message at two or more offsets of the log",
    "reordered": "two messages of one producer are in the opposite order of their sends",
    "key_reordered": "two messages with one key are in the opposite order of their sends",
    "misplaced": "in another topic or partition than intended",
    "phantom": "in the log or delivered, but no producer sent it",
    "corrupted": "the content is not what was sent",
    "offset_conflict": "one offset is claimed by two different messages",
    "undelivered": "in the log, but the group never got it",
    "two_owners": "a partition belonged to two members of the group at once",
    "redelivered": "the group got one log position more than once",
    "skipped": "a reader jumped over records that exist",
    "rewound": "a reader saw a partition repeat or go backwards",
    "overcommitted": "an offset was committed beyond what the group had been given",
    "aborted_read": "a read_committed reader got a record of an aborted transaction",
    "premature_read": "a reader got a record before its transaction was committed",
    "torn": "only a part of a committed transaction is visible",
    "double_effect": "an input took effect more than once",
    "missing_effect": "an input took no effect",
    "interleaved": "another writer's record between two sends of a transaction",
    "write_cycle": "transactions order each other in a cycle, by writes alone",
    "read_cycle": "transactions order each other in a cycle, with a read",
    "stalled": "no progress within the limit after healing",
    "expired": "deleted by retention: excused",
    "late": "not yet stable when it was read: excused",
}


def number(value: float | None) -> str:
    """`20,132`, or a dash if it is not known."""
    if value is None:
        return NOTHING
    return f"{value:,.0f}" if float(value).is_integer() or abs(value) >= 100 else f"{value:,.3g}"


def short_number(value: float | None) -> str:
    """Return a short form of wide numbers: `12.4M`."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value is not None and abs(value) >= size:
            return f"{value / (1e3 if letter == 'k' else size):.3g}{letter}"
    return number(value)


def seconds(value: float | None) -> str:
    """`340 ms`, `3.4 s`, `4 min 12 s`."""
    if value is None:
        return NOTHING
    if 0 < abs(value) < 0.9995:
        return f"{value * 1000:.0f} ms"
    if abs(value) < 99.95:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def milliseconds(value: float | None) -> str:
    """A latency: `2.1 ms`, `205 ms`, `3.4 s`."""
    if value is None:
        return NOTHING
    return f"{value:.3g} ms" if value < 999.5 else seconds(value / 1000)


def mode(name: str) -> str:
    """`at_least_once` reads at-least-once."""
    return name.replace("_", "-") if name in MODES else name


def fault(name: str) -> str:
    return "no fault" if name in ("", "none") else name


def words(name: str) -> str:
    """A key of a JSON file as words: `drain_detail` reads drain detail."""
    return name.replace("_", " ")


def plural(count: int, one: str, many: str = "") -> str:
    return f"{number(count)} {one if count == 1 else many or one + 's'}"


def moment(value: Any) -> str:
    """Wall time from epoch seconds, or the text as it was written."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(value))
    return str(value) if value else NOTHING


def plain(value: Any) -> str:
    """Any JSON value as text for a cell."""
    if value is None or value == "":
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    if isinstance(value, list | tuple):
        return ", ".join(plain(v) for v in value) or NOTHING
    if isinstance(value, Mapping):
        return ", ".join(f"{k} {plain(v)}" for k, v in value.items()) or NOTHING
    return str(value)


def measures(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Evidence as words: {"append_ms": 52.4, "note": ""} reads append 52.4 ms; what is empty is left out."""
    measured = []
    for name, value in values.items():
        unit = next((u for u in ("ms", "s", "mb") if name.endswith(f"_{u}")), "")
        if unit and isinstance(value, int | float) and not isinstance(value, bool):
            measured.append(
                (words(name.removesuffix(f"_{unit}")), f"{plain(value)} {unit.replace('mb', 'MB')}")
            )
        elif value not in (None, "", [], {}):
            measured.append((words(name), plain(value)))
    return measured


def flat(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """Nested settings as rows: ("producers.keys", "64")."""
    for key, value in values.items():
        name = f"{above}.{key}" if above else str(key)
        if isinstance(value, Mapping) and value:
            yield from flat(value, name)
        elif isinstance(value, list) and value and all(isinstance(v, Mapping) for v in value):
            for place, member in enumerate(value):
                yield from flat(member, f"{name}[{place}]")
        else:
            yield name, plain(value)
