"""The power over a node's memory: MemoryStarvable, by a control group that contains only the node."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from typing import ClassVar

from harness.clusters.base.composition import Power, Site, without
from harness.clusters.processes.server_process import ServerProcess
from harness.contracts import Memory, MemoryStarvable
from harness.errors import FaultError
from harness.machine.cgroup import Group, Home, home_of, place_for
from harness.machine.cgroup_memory import MemoryGroup


def trouble() -> str | None:
    """Return why the memory of processes on this machine cannot be limited; None if it can."""
    if os.geteuid() != 0:
        return "only root may make control groups"
    place = place_for(os.getpid(), "memory")
    if place is None:
        return "there is no control group for memory in which to make one"
    return (
        None
        if os.access(place.parent, os.W_OK)
        else f"{place.parent} is read-only: no control group can be made"
    )


class Squeezed(Power):
    """A server with its own control group, as every container has."""

    gives: ClassVar[type] = MemoryStarvable
    _left_mb: float | None = None

    @classmethod
    def why_not(cls, _site: Site, /) -> str | None:
        if os.geteuid() != 0:
            return "only root may limit the memory of control groups"
        known = place_for(os.getpid(), "memory") or home_of(os.getpid(), "memory")
        return None if known else "this machine has no control group for memory"

    def memory_home(self) -> Home | None:
        """Return its group; None if it has no group with a memory controller."""
        pid = self.pid
        return home_of(pid, "memory") if pid is not None else None

    def restart(self) -> None:
        """Start the process without the limit, and set the limit again once the node takes part."""
        began = not self.running()
        super().restart()
        if began and self._left_mb is not None:
            self._memory_group().squeeze(self._left_mb)

    def residue(self) -> list[str]:
        squeezed = [f"{self.name} is short of memory"] if self._left_mb is not None else []
        return super().residue() + squeezed

    def closed(self) -> None:
        super().closed()
        self.give_memory()

    # MemoryStarvable

    def take_memory(self, left_mb: float) -> str:
        group = self._memory_group()
        self._left_mb = left_mb
        group.squeeze(left_mb)
        return "cgroup"

    def give_memory(self) -> None:
        if self._left_mb is not None and (home := self.memory_home()) is not None:
            MemoryGroup(home).release()
        self._left_mb = None

    def memory_under_load(self, for_s: float) -> Memory:
        group = self._memory_group()
        try:
            before = group.look()
            self.ask_for_memory(for_s)
            after = group.look()
        except OSError:
            raise FaultError(f"{self.name} ended under load") from None
        return replace(after, refused=after.refused - before.refused)

    def _memory_group(self) -> MemoryGroup:
        home = self.memory_home()
        if home is None:
            why = "it does not run" if self.pid is None else "this machine has no control group for it"
            raise FaultError(f"memory of {self.name} cannot be limited: {why}")
        return MemoryGroup(home)


class SqueezedProcess(Squeezed, ServerProcess):
    """A process that gets its own group when it starts, as memory is counted in the group that first used it."""

    _own_group: Group | None = None
    _version: int = 0

    @classmethod
    def why_not(cls, site: Site, /) -> str | None:
        return trouble() or (None if site.options.memory else without("memory=True"))

    def memory_home(self) -> Home | None:
        return Home(self._own_group.folder, self._version) if self._own_group is not None else None

    def launch(self) -> None:
        if (home := self.memory_home()) is not None:
            MemoryGroup(home).release()
        super().launch()
        if (pid := self.pid) is not None:
            self._join_group(pid)

    def closed(self) -> None:
        super().closed()
        if self._own_group is not None:
            self._own_group.remove()
            self._own_group = None

    def _join_group(self, pid: int) -> None:
        with suppress(OSError):  # not allowed inside this container: reported when memory is to be limited
            if self._own_group is None and (place := place_for(pid, "memory")) is not None:
                self._own_group, self._version = Group.made(place, {}), place.version
            if self._own_group is not None:
                self._own_group.take(pid)
