"""A broker's disk is replaced by an empty one: the broker starts again without a single record."""

from __future__ import annotations

import base64
import re
import shutil
import time
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from faults import _ensemble
from faults._cases import Case
from faults._damage import kill_and_wait, logs_of, victims_of, wait_same
from harness.contracts import Arena, Bite, Healing, Killable, Mode, Node
from harness.errors import ClusterError
from harness.targets import leader_of
from harness.waiting import in_parallel

_FORMATTED = ("meta.properties", "bootstrap.checkpoint")  # in a log folder that was formatted and never used
_METADATA = "__cluster_metadata-0"


@dataclass(frozen=True)
class WipeDisk:
    """Kills the targets, waits until the cluster has given them up, empties their log folders and starts them again.

    The broker keeps its ids. It fetches its copies from the leaders that were elected meanwhile; a partition of which it
    had the only copy is empty from then on. There is no undo. With `quick=True` it starts again at once, while the
    cluster may still believe that it runs. With `new_disk=True` its log folders get new directory ids, as formatting
    gives them. With `back=False` it stays down while the fault is held, and the undo starts it.
    """

    quick: bool = False
    new_disk: bool = False
    back: bool = True
    needs: ClassVar[type] = Killable
    reads_logs: ClassVar[bool] = True
    ways: ClassVar[Mapping[str, str]] = {"files": "brokers whose log folders are on this machine"}
    bites_when: ClassVar[str] = (
        "each target had records of the topic, its log folders contain none while it is down, and it starts again "
        "(with back=False: at the undo)"
    )

    @contextmanager
    def hold(self, arena: Arena, nodes: Sequence[Node]) -> Iterator[Bite]:
        victims = victims_of(arena, nodes)
        with ExitStack() as undo:
            undo.callback(in_parallel, lambda node: node.restart(), victims)
            yield self._wipe(arena, victims)

    def _wipe(self, arena: Arena, victims: Sequence[Killable]) -> Bite:
        if not victims:
            return Bite(False, "there was no disk to wipe")
        names = [node.name for node in victims]
        voters = set(_ensemble.voters(arena.cluster.view()))
        logs = logs_of(arena, names)
        begun = time.monotonic()
        if self.quick:
            in_parallel(lambda node: node.kill(), victims)
        else:
            kill_and_wait(arena, victims)
        had = {log: log.end() for log in logs}
        for broker, folder in dict.fromkeys((log.broker, log.folder.parent) for log in logs):
            # A combined node without its metadata would forget for which controller it has voted.
            _empty(folder, {*_FORMATTED, _METADATA} if broker in voters else _FORMATTED)
            if self.new_disk:
                _renew_id(folder / "meta.properties")
        left = [str(log) for log in logs if log.folder.exists()]
        still = _registered(arena, names)
        down_s = time.monotonic() - begun
        if self.back:
            in_parallel(lambda node: node.restart(), victims)
        if left:
            return Bite(False, f"{', '.join(left)} is still there", way="files")
        idle = [name for name in names if not any(had[log] for log in had if log.broker == name)]
        if idle:
            return Bite(False, f"{', '.join(idle)} had nothing of {arena.topic} to lose", way="files")
        proof = "; ".join(f"{log} lost its {end} records" for log, end in had.items() if end)
        measured = {"logs_wiped": float(len(had)), "records_wiped": float(sum(had.values()))}
        if self.quick:
            measured |= {"down_s": round(down_s, 3), "registered_when_wiped": float(len(still))}
            proof += (
                f"; wiped {down_s:.1f} s after the kill, {', '.join(still) or 'none'} still registered then"
            )
        return Bite(True, f"{proof}; {'started again' if self.back else 'stays down'}", measured, way="files")

    def healed(self, arena: Arena, nodes: Sequence[Node]) -> Healing:
        return wait_same(arena, nodes)

    def describe(self) -> Mapping[str, Any]:
        return {"fault": "wipe_disk", "quick": self.quick, "new_disk": self.new_disk, "back": self.back}

    def __str__(self) -> str:
        return "wipe_disk"


def _registered(arena: Arena, names: Collection[str]) -> list[str]:
    """Return the targets that the cluster still holds for registered; none if no broker answers."""
    try:
        return sorted(set(names) & set(arena.cluster.view().registered_brokers()))
    except ClusterError:
        return []


def _renew_id(properties: Path) -> None:
    """Give the log folder another directory id, if its format has one."""
    new = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    while new.startswith("-"):  # StorageTool never makes one that looks like an option
        new = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    text = properties.read_text(encoding="ascii")
    renewed = re.sub(r"(?m)^(directory\.id)=.*$", rf"\g<1>={new}", text)
    properties.write_text(renewed, encoding="ascii")


def _empty(folder: Path, keep: Collection[str]) -> None:
    for path in folder.iterdir():
        if path.name in keep:
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


cases = (Case(WipeDisk(), leader_of(0), modes=(Mode.AT_LEAST_ONCE,)),)
fault_class = WipeDisk
