"""The pictures of runs: leaders, messages, members and lag over time, and what lies around findings, from pictures.json."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

from harness.errors import LedgerError
from harness.ledger.pictures import FATES, read_pictures
from harness.ledger.rundir import RunDir
from reports.model import Finding, RunReport, Standing
from reports.picture_tables import lag_rows, leader_rows, member_rows, partition_name

FEW = 20  # runs: a report of so many shows the pictures of each
MOST_BYTES = 400_000  # of the pictures in a larger report
MARKS = (
    "●",
    "■",
    "▲",
    "✕",
    "✚",
    "◆",
    "★",
    "⬟",
)  # of fates, as in report-pictures.js; the last one again and again
LEFT_OUT = "left out of a report on so many runs"

Near = Mapping[str, Any]


@dataclass(frozen=True)
class Fate:
    """One kind of dot: its place among the marks, how many messages have it, and how many are drawn."""

    name: str
    mark: str
    number: int
    count: int | None
    drawn: int
    anomaly: bool


@dataclass(frozen=True)
class Pictures:
    """The pictures of one run; `missing` says why there are none."""

    missing: str = ""
    embedded: Markup = Markup()  # noqa: RUF009  it cannot be changed
    fates: Sequence[Fate] = ()
    sampled: int = 0
    attempted: int = 0
    leaders: Sequence[Mapping[str, Any]] = ()
    more_partitions: int = 0
    members: Sequence[Mapping[str, Any]] = ()
    lag: Sequence[Mapping[str, Any]] = ()
    logs: str = ""
    around: Mapping[int, Near] = field(default_factory=dict)  # by the number of the finding

    @property
    def is_left_out(self) -> bool:
        return self.missing == LEFT_OUT

    def near(self, run: RunReport, finding: Finding) -> Near | None:
        """Return the neighbours and log lines of a finding of the run, if they are known."""
        return self.around.get(run.findings.index(finding))


def of_runs(runs: Sequence[RunReport], most_bytes: int = MOST_BYTES) -> list[Pictures]:
    """Return the pictures of each run. With many runs only those that are not as promised have them, while there is room."""
    if len(runs) <= FEW:
        return [of_run(run) for run in runs]
    left = most_bytes
    made = []
    for run in runs:
        drawn = Pictures(LEFT_OUT)
        if run.standing is not Standing.AS_PROMISED and left > 0:
            read = of_run(run)
            left -= len(read.embedded) + len(json.dumps(list(read.around.values())))
            if left >= 0:  # otherwise the pictures of the runs that follow are not even read
                drawn = read
        made.append(drawn)
    return made


def of_run(run: RunReport) -> Pictures:
    """Return the pictures of one run."""
    folder = RunDir(run.path)
    if run.error or not len(run.timeline):
        return Pictures("")  # the report says already that there is nothing to show
    if not folder.pictures.exists():
        return Pictures("there is no pictures.json: ./onceproof reconcile makes one")
    try:
        stored = read_pictures(folder)
    except LedgerError as error:
        return Pictures(str(error).replace(f"{run.path}/", ""))
    if "error" in stored:
        return Pictures(f"they could not be made: {stored['error']}")
    dots = stored.get("messages", {})
    return Pictures(
        embedded=htmlsafe_json_dumps(_compact(stored, run.timeline.end_s), separators=(",", ":")),
        fates=_fates(run, stored),
        sampled=len(dots.get("t_ms", ())),
        attempted=stored.get("attempted", 0),
        leaders=leader_rows(stored),
        more_partitions=stored.get("more_partitions", 0),
        members=member_rows(stored),
        lag=lag_rows(stored),
        logs=stored.get("logs", ""),
        around={each["number"]: each for each in stored.get("findings", ())},
    )


def _fates(run: RunReport, stored: Mapping[str, Any]) -> list[Fate]:
    dots = stored.get("messages", {"fate": [], "fates": []})
    drawn = Counter(dots["fate"])
    fates = []
    for number, name in enumerate(dots["fates"]):
        anomaly = name not in FATES.values()
        count = stored.get("anomalies", {}).get(name) if anomaly else run.count(name)
        if drawn[number] or count:
            mark = MARKS[min(number, len(MARKS) - 1)]
            fates.append(Fate(name, mark, number, count, drawn[number], anomaly))
    return fates


# --- for the script -------------------------------------------------------------------------------


def _compact(stored: Mapping[str, Any], end_s: float) -> dict[str, Any]:
    """Return the numbers for the script in the page, in few bytes: names once, times as steps."""
    nodes: dict[str, int] = {}
    leaders = [
        {
            "name": partition_name(lane, stored),
            "of": len(lane.get("replicas", ())),
            "states": [
                [t, -1 if leader is None else nodes.setdefault(leader, len(nodes)), len(in_sync)]
                for t, leader, in_sync in lane["states"]
            ],
        }
        for lane in stored.get("leaders", ())
    ]
    lag = stored.get("lag")
    return {
        "end": end_s,
        "nodes": list(nodes),
        "leaders": leaders,
        "members": [
            {"name": lane["member"], "states": [[t, ", ".join(held)] for t, held in lane["states"]]}
            for lane in stored.get("members", ())
        ],
        "lag": lag and {
            "t0": lag["start_s"], "dt": lag["step_s"],
            "partitions": [{"name": partition_name(one, stored), "behind": one["behind"]} for one in lag["partitions"]],
        },
        "dots": _compact_dots(stored.get("messages")),
    }  # fmt: skip


def _compact_dots(dots: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if not dots or not dots["t_ms"]:
        return None
    times = [round(t) for t in dots["t_ms"]]
    return {
        "fates": len(dots["fates"]),
        "first": times[0],
        "step": [after - before for before, after in zip([times[0], *times[:-1]], times, strict=True)],
        # Two digits are enough on a logarithmic axis.
        "ack": [None if ms is None else _short(float(f"{ms:.2g}")) for ms in dots["ack_ms"]],
        "fate": dots["fate"],
    }


def _short(value: float) -> float:
    return int(value) if value.is_integer() else value
