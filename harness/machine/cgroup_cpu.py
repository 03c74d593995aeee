"""A control group that limits the CPU share of a process; only root may make one."""

from __future__ import annotations

from harness.machine import cgroup
from harness.machine.cgroup import Group, Place

_PERIOD_US = 100_000


class CpuGroup(Group):
    @classmethod
    def make(cls, place: Place, share: float) -> Group:
        """Make a group with this share of one processor. Raises OSError if that is not permitted."""
        quota_us = max(1000, round(share * _PERIOD_US))
        if place.version == 2:
            return cls.made(place, {"cpu.max": f"{quota_us} {_PERIOD_US}"})
        return cls.made(place, {"cpu.cfs_period_us": f"{_PERIOD_US}", "cpu.cfs_quota_us": f"{quota_us}"})


def place_for(pid: int) -> Place | None:
    """Return the place where such a group can be made for this process; None if there is none."""
    return cgroup.place_for(pid, "cpu")
