"""Run an external tool of the set-up: output to a log file, a time limit, and one line when it fails."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.errors import SetupError
from harness.runtime.cache import log_file

TOOL_TIMEOUT_S = 900.0
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# Lines that tools print after the line with the cause of a failure.
_CHATTER = re.compile(
    r"^$|^\[ERROR\]\s*(\[Help|->|To see|Re-run|For more|$)|^(hint|note):|^make:|^BUILD |^\s+at |^\s*\^",
    re.IGNORECASE,
)


class ToolTimeout(SetupError):
    """A tool took longer than its limit: a busy machine or a slow network, so a later attempt may succeed."""


def run(
    command: Sequence[str | Path],
    *,
    log: str,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout_s: float = TOOL_TIMEOUT_S,
    outlives_us: bool = False,
) -> None:
    """Run `command` to its end and append its output to the log; raise SetupError with the last line if it fails.

    Raises ToolTimeout if it has not ended after `timeout_s`.

    The tool ends with the thread that started it, so that a killed set-up stops writing, unless
    it `outlives_us` because interrupting it would do harm.
    """
    words = [str(word) for word in command]
    path = log_file(log)
    with path.open("ab") as out:
        out.write(f"\n$ {' '.join(words)}\n".encode())
        out.flush()
        try:
            ended = subprocess.run(
                [*([] if outlives_us else _ends_with_us()), *words],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(env or {})},
                cwd=cwd,
                timeout=timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise ToolTimeout(
                f"{Path(words[0]).name} took longer than {timeout_s:.0f} s (log: {path})"
            ) from error
        except OSError as error:
            raise SetupError(f"{words[0]} cannot be run: {error.strerror}") from error
    if ended.returncode != 0:
        raise SetupError(f"{Path(words[0]).name}: {last_words(path)} (log: {path})")


def output(command: Sequence[str | Path], *, timeout_s: float = 10.0, must_end: bool = False) -> str | None:
    """Return the output of a quick command, both streams; None if it cannot be run, fails or times out.

    With `must_end` a time-out raises ToolTimeout.
    """
    try:
        ended = subprocess.run(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        if must_end:
            raise ToolTimeout(f"{Path(command[0]).name} took longer than {timeout_s:.0f} s") from error
        return None
    except OSError:
        return None
    return ended.stdout.strip() if ended.returncode == 0 else None


def pip_install() -> list[str | Path]:
    """Return the command that installs packages for this Python: the uv next to it or on the path, otherwise pip."""
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    return (
        [uv, "pip", "install", "--python", sys.executable] if uv else [sys.executable, "-m", "pip", "install"]
    )


def last_words(log: Path) -> str:
    """Return the last informative line of a log, short enough for a message of one line."""
    lines = [_COLOUR.sub("", line).strip() for line in log.read_text(errors="replace").splitlines()[-200:]]
    informative = [line for line in lines if not _CHATTER.search(line)]
    return informative[-1][:300] if informative else "it failed without output"


def _ends_with_us() -> list[str]:
    """Return the prefix that makes the kernel kill the tool when the thread waiting for it dies, if setpriv can."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []
