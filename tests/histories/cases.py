"""Histories by hand, and exactly what has to be found in them: anomaly, partition, scope, messages, events."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

Found = tuple[str, Any, str | None, tuple[Any, ...], tuple[int, ...]]


@dataclass
class Case:
    events: list[dict[str, Any]]
    found: set[Found] = field(default_factory=set)
    verdict: str = "HELD"
    options: frozenset[str] = frozenset()

    def text(self) -> str:
        return "".join(json.dumps(event) + "\n" for event in self.events)


def ev(type_: str, f: str, ops: Any = None, process: Any = 0, **more: Any) -> dict[str, Any]:
    event: dict[str, Any] = {"process": process, "type": type_, "f": f, "time": 0}
    if f in ("assign", "subscribe"):
        event["partitions"] = ops
    elif ops is not None:
        event["ops"] = ops
    return event | more


def send(partition: Any, message: Any, offset: int | None = None) -> list[Any]:
    return ["send", partition, message, offset]


def poll(*records: tuple[Any, int, Any]) -> list[Any]:
    return ["poll", [list(record) for record in records]]


def sent(*messages: str, first: int = 0, process: int = 0, partition: str = "p") -> list[dict[str, Any]]:
    """Return events that ack each message in a separate operation, at offsets from `first` on."""
    return [
        ev("ok", "send", [send(partition, message, first + n)], process) for n, message in enumerate(messages)
    ]


def got(*records: tuple[int, str], process: int = 1, type_: str = "ok", **more: Any) -> dict[str, Any]:
    return ev(
        type_, "poll", [poll(*(("p", offset, message) for offset, message in records))], process, **more
    )


ABCD = sent("a", "b", "c", "d")
ALL = [(0, "a"), (1, "b"), (2, "c"), (3, "d")]

CASES: dict[str, Case] = {
    "clean": Case([*ABCD, got(*ALL)]),
    "clean with invocations": Case(
        [
            ev("invoke", "send", [send(1, 7)], process="w"),
            ev("ok", "send", [send(1, 7, 0)], process="w"),
            ev("invoke", "poll", [["poll", None]], process="r"),
            ev("ok", "poll", [poll((1, 0, 7))], process="r"),
        ]
    ),
    "nothing completed": Case(
        [ev("invoke", "send", [send("p", "a")]), ev("info", "poll", [["poll", None]], 1)], verdict="INCONCLUSIVE"
    ),
    "empty": Case([], verdict="INCONCLUSIVE"),
    # --- lost and unseen
    "lost": Case(
        [*ABCD, got((0, "a"), process=1), got((2, "c"), (3, "d"), process=2)],
        {("lost", "p", None, ("b",), (1,)), ("unseen", "p", None, ("b",), (1,))}, "VIOLATED",
    ),
    "unseen at the end": Case([*ABCD, got(*ALL[:2])], {("unseen", "p", None, (m,), (n,)) for m, n in (("c", 2), ("d", 3))}),
    "lost although a failed poll got it": Case(
        [*ABCD, got((1, "b"), process=3, type_="fail"), got((0, "a"), process=1), got(*ALL[2:], process=2)],
        {("lost", "p", None, ("b",), (1, 4)), ("unseen", "p", None, ("b",), (1, 4))}, "VIOLATED",
    ),
    "lost from a proven transaction": Case(
        [ev("info", "txn", [send("p", "a", 0), send("p", "b", 1)]), *sent("c", first=2, process=3), got((0, "a")),
         got((2, "c"), process=2)],
        {("lost", "p", None, ("b",), (0,))}, "VIOLATED",
    ),
    "an unproven transaction owes nothing": Case(
        [ev("info", "txn", [send("p", "a", 0), send("p", "b", 1)]), *sent("c", first=2, process=3), got((2, "c"))]
    ),
    "a rejected send owes nothing": Case([ev("fail", "send", [send("p", "a", 0)]), *sent("b", first=1), got((1, "b"))]),
    # --- places
    "duplicated": Case(
        [*ABCD, got(*ALL, (4, "a"))], {("duplicated", "p", None, ("a",), (0, 4))}, "VIOLATED",
    ),
    "offset_conflict": Case(
        [*sent("a", "b"), got((0, "a"), (1, "x"))],
        {("offset_conflict", "p", None, ("b", "x"), (1, 2)), ("unseen", "p", None, ("b",), (1,))}, "VIOLATED",
    ),
    "claims of unproven sends do not count": Case(
        [ev("info", "send", [send("p", "x", 0)]), ev("fail", "send", [send("p", "y", 0)], 2), *sent("a"), got((0, "a"))]
    ),
    # --- order of sends
    "reordered between": Case(
        [*sent("a", first=1), *sent("b", first=0), got((0, "b"), (1, "a"))],
        {("reordered", "p", "between", ("a", "b"), (0, 1))}, "VIOLATED",
    ),
    "reordered within, ranks from polls": Case(
        [ev("ok", "txn", [send("p", "a"), send("p", "b")]), got((0, "b"), (5, "a"))],
        {("reordered", "p", "within", ("a", "b"), (0, 0))}, "VIOLATED",
    ),
    "order of failed sends is not compared": Case(
        [*sent("a", first=1), ev("fail", "send", [send("p", "b", 0)]), got((1, "a"))]
    ),
    "order of two processes is free": Case([*sent("a", first=1), *sent("b", first=0, process=5), got((0, "b"), (1, "a"))]),
    # --- readers
    "skipped between": Case(
        [*ABCD, got((0, "a")), got((3, "d")), got((1, "b"), (2, "c"), process=2)],
        {("skipped", "p", "between", ("a", "d", "b", "c"), (4, 5))}, "VIOLATED",
    ),
    "skipped within": Case(
        [*ABCD, got((0, "a"), (1, "b"), (3, "d")), got((2, "c"), process=2)],
        {("skipped", "p", "within", ("b", "d", "c"), (4, 4))}, "VIOLATED",
    ),
    "rewound between and within": Case(
        [*ABCD, got(*ALL[:2]), got(*ALL), got((2, "c"), (2, "c"), process=2)],
        {("rewound", "p", "between", ("b", "a"), (4, 5)), ("rewound", "p", "within", ("c", "c"), (6, 6))}, "VIOLATED",
    ),
    "offset gaps without a cause": Case([*sent("a"), *sent("b", first=9), got((0, "a"), (9, "b"))]),
    "a failed poll is compared and does not move": Case(
        [*ABCD, got(*ALL[:2]), got((3, "d"), type_="fail"), got(*ALL[2:])],
        {("skipped", "p", "between", ("b", "d", "c"), (4, 5))}, "VIOLATED",
    ),
    "assignment forgets": Case(
        [*ABCD, got(*ALL[:1]), ev("ok", "assign", ["q"], 1), ev("ok", "assign", ["p"], 1), got(*ALL[2:]),
         got((1, "b"), process=2)]
    ),
    "an unknown assignment forgets": Case(
        [*ABCD, got(*ALL[:1]), ev("info", "assign", ["q"], 1), got(*ALL[2:]), got((1, "b"), process=2)]
    ),
    "a rejected assignment forgets nothing": Case(
        [*ABCD, got(*ALL[:1]), ev("fail", "assign", ["q"], 1), got(*ALL[2:]), got((1, "b"), process=2)],
        {("skipped", "p", "between", ("a", "c", "b"), (4, 6))}, "VIOLATED",
    ),
    "assignment keeps what it keeps": Case(
        [*ABCD, got(*ALL[:1]), ev("ok", "assign", ["p", "q"], 1), got(*ALL[2:]), got((1, "b"), process=2)],
        {("skipped", "p", "between", ("a", "c", "b"), (4, 6))}, "VIOLATED",
    ),
    "a rebalance excuses": Case(
        [*ABCD, got(*ALL[:1]), got(*ALL[2:], rebalanced=["p"]), got(*ALL[:1], rebalanced=["p"]), got((1, "b"), process=2)]
    ),
    "a rebalance of another partition does not": Case(
        [*ABCD, got(*ALL[:1]), got(*ALL[2:], rebalanced=["q"]), got((1, "b"), process=2)],
        {("skipped", "p", "between", ("a", "c", "b"), (4, 5))}, "VIOLATED",
    ),
    "a rebalance inside an operation": Case(
        [*ABCD, got((0, "a"), (2, "c"), (1, "b"), (3, "d"), rebalanced=["p"]), got(*ALL, process=3)]
    ),
    # --- transactions
    "aborted_read": Case(
        [ev("fail", "txn", [send("p", "a", 0)]), *sent("b", first=1), got((0, "a"), (1, "b"))],
        {("aborted_read", "p", None, ("a",), (0, 2))}, "VIOLATED",
    ),
    "premature_read of its own": Case(
        [ev("ok", "txn", [send("p", "a", 0), poll(("p", 0, "a"))])],
        {("premature_read", "p", None, ("a",), (0, 0))}, "VIOLATED",
    ),
    "premature_read before it was sent": Case(
        [got((0, "a")), ev("invoke", "send", [send("p", "a")]), ev("ok", "send", [send("p", "a", 0)])],
        {("premature_read", "p", None, ("a",), (2, 0))}, "VIOLATED",
    ),
    "read while it was being sent": Case(
        [ev("invoke", "send", [send("p", "a")]), got((0, "a")), ev("ok", "send", [send("p", "a", 0)])]
    ),
    "interleaved": Case(
        [ev("ok", "txn", [send("p", "a", 0), send("p", "c", 2)]), *sent("b", first=1, process=2),
         got((0, "a"), (1, "b"), (2, "c"))],
        {("interleaved", "p", "within", ("a", "c"), (0, 0))},
    ),
    "read_cycle": Case(
        [ev("ok", "txn", [send("p", "a", 0), poll(("q", 0, "b"))], 1), ev("ok", "txn", [send("q", "b", 0), poll(("p", 0, "a"))], 2)],
        {("read_cycle", None, None, (), (0, 1))}, "VIOLATED",
    ),
    "write_cycle": Case(
        [ev("ok", "txn", [send("p", "a", 0), send("q", "b", 1)], 1), ev("ok", "txn", [send("p", "c", 1), send("q", "d", 0)], 2),
         ev("ok", "poll", [poll(("p", 0, "a"), ("p", 1, "c"), ("q", 0, "d"), ("q", 1, "b"))], 3)],
        {("write_cycle", None, None, (), (0, 1))}, "HELD", frozenset({"ww_deps"}),
    ),
    "read_cycle through a write": Case(
        [ev("ok", "txn", [send("p", "a", 0), poll(("q", 0, "b"))], 1), ev("ok", "txn", [send("p", "c", 1), send("q", "b", 0)], 2),
         ev("ok", "poll", [poll(("p", 0, "a"), ("p", 1, "c"))], 3), ev("ok", "poll", [poll(("q", 0, "b"))], 3)],
        {("read_cycle", None, None, (), (0, 1))}, "VIOLATED", frozenset({"ww_deps"}),
    ),
    "read of a message without a send": Case([got((0, "x"))]),
    "phantom": Case([got((0, "x"))], {("phantom", "p", None, ("x",), (0,))}, "VIOLATED", frozenset({"closed"})),
    "a number is not its text": Case(
        [ev("ok", "send", [send(1, 1, 0)]), ev("ok", "send", [send("1", "1", 0)]),
         ev("ok", "poll", [poll((1, 0, 1), ("1", 0, "1"))], 1)]
    ),
}  # fmt: skip

BAD: dict[str, tuple[str, str]] = {
    "not JSON": ('{"process": 0,\n', ":1: not JSON"),
    "no object": ("[1]\n", ":1: a JSON object is expected"),
    "unknown type": (json.dumps(ev("done", "send", [])) + "\n", ":1: \"type\" is 'done'"),
    "unknown f": (json.dumps(ev("ok", "write", [])) + "\n", ":1: \"f\" is 'write'"),
    "no time": ('{"process": 0, "type": "ok", "f": "poll", "ops": []}\n', ':1: "time" is None'),
    "time goes back": (
        json.dumps(ev("ok", "poll", [], time=5)) + "\n" + json.dumps(ev("ok", "poll", [], time=4)) + "\n",
        ":2: time 4 is before",
    ),
    "no process": ('{"type": "ok", "f": "poll", "time": 1, "ops": []}\n', ":1: process None"),
    "a broken op": (json.dumps(ev("ok", "send", [["send", "p"]])) + "\n", ":1: ['send', 'p']"),
    "a broken record": (json.dumps(ev("ok", "poll", [["poll", [["p", "a"]]]])) + "\n", ":1: ['p', 'a']"),
    "an offset below 0": (json.dumps(ev("ok", "send", [send("p", "a", -1)])) + "\n", ":1: offset -1"),
    "a message twice": (
        "".join(json.dumps(e) + "\n" for e in [*sent("a"), *sent("a", first=4)]),
        ":2: message 'a' of partition 'p' was sent before, by line 1",
    ),
    "another end": (
        json.dumps(ev("invoke", "send", [send("p", "a")])) + "\n" + json.dumps(ev("ok", "poll", [])) + "\n",
        ":2: process 0 ends a poll, but began a send",
    ),
}
