"""The memory of a control group, version 1 or 2: its size, and a limit that makes it scarce without killing processes.

The page cache is dropped first: its content has to be read from the disk again. Beyond the limit processes wait: in version
1 until memory is released (the OOM killer is off), in version 2 they are slowed down.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.contracts import Memory
from harness.errors import FaultError
from harness.machine.cgroup import Home

MB = 1 << 20
_LEAST = MB
_TRIES = 10
_UNLIMITED = 1 << 60


@dataclass(frozen=True)
class MemoryGroup:
    home: Home

    def squeeze(self, left_mb: float) -> None:
        """Leave that much beyond memory that cannot be reclaimed, and at most half of the page cache, so that some goes.

        Raises FaultError if the limit cannot be set.
        """
        try:
            if self.home.version == 1:
                self._write("memory.oom_control", "1")
            error = self._set_limit(left_mb)
        except OSError as problem:
            error = problem
        if error is not None:
            self.release()
            raise FaultError(f"memory of {self.home.folder} cannot be limited: {error}") from error

    def release(self) -> None:
        """Remove the limit; do nothing without a limit, or if the group no longer exists."""
        try:
            if self.home.version == 2:
                self._write("memory.high", "max")
            else:
                self._write("memory.limit_in_bytes", "-1")
                self._write("memory.oom_control", "0")
        except FileNotFoundError:
            pass

    def look(self) -> Memory:
        limit = self._limit()
        return Memory(
            has_mb=self._has() / MB,
            cache_mb=self._cache() / MB,
            limit_mb=None if limit is None else limit / MB,
            refused=self._refused(),
        )

    def _set_limit(self, left_mb: float) -> OSError | None:
        """Set the limit; retry if memory use grew meanwhile, as version 1 refuses a limit below what is in use."""
        file = "memory.high" if self.home.version == 2 else "memory.limit_in_bytes"
        error: OSError | None = None
        for _ in range(_TRIES):
            try:
                cache = self._cache()
                left = max(_LEAST, min(round(left_mb * MB), cache // 2))
                self._write(file, str(self._has() - cache + left))
            except OSError as busy:
                error = busy
            else:
                return None
        return error

    def _has(self) -> int:
        return int(self._read("memory.current" if self.home.version == 2 else "memory.usage_in_bytes"))

    def _cache(self) -> int:
        stat = self._words("memory.stat")
        return stat["active_file"] + stat["inactive_file"]

    def _limit(self) -> int | None:
        limit = self._read("memory.high" if self.home.version == 2 else "memory.limit_in_bytes")
        return None if limit == "max" or int(limit) > _UNLIMITED else int(limit)

    def _refused(self) -> int:
        if self.home.version == 2:
            return self._words("memory.events")["high"]
        return int(self._read("memory.failcnt"))

    def _words(self, name: str) -> dict[str, int]:
        lines = (line.split() for line in self._read(name).splitlines())
        return {words[0]: int(words[1]) for words in lines}

    def _read(self, name: str) -> str:
        return (self.home.folder / name).read_text(encoding="ascii").strip()

    def _write(self, name: str, words: str) -> None:
        (self.home.folder / name).write_text(f"{words}\n", encoding="ascii")
