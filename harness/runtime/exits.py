"""Exit codes of every command, and the handling of errors that end one. The table is in docs/exit-codes.md.

An error that users can act on is one line on stderr. An internal error is one line as well, with its own exit code; its
traceback goes to a file that the line names. So exit code 1 always is a verdict.
"""

from __future__ import annotations

import atexit
import errno
import os
import select
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import harness
from harness.errors import OnceproofError
from harness.runtime.disk_space import room_error, scratch_folders
from harness.runtime.terminal import printable

AS_PROMISED = 0
VIOLATED = 1  # a promise was violated, or a control was missed
BAD_USE = 2  # bad use, bad input, or a machine that lacks something
INCONCLUSIVE = 3
OUR_ERROR = 70  # EX_SOFTWARE of sysexits.h
INTERRUPTED = 130  # 128 + SIGINT
STDOUT_CLOSED = 141  # 128 + SIGPIPE

# Errors of the machine or the call, not of this program, wherever they occur.
_OF_THE_MACHINE = (
    errno.EACCES, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENAMETOOLONG,
)  # fmt: skip
_LONGEST = 2000


def failed(error: BaseException) -> int:
    """Print the one line about an error that ends a command, and return the exit code for it."""
    if isinstance(error, BrokenPipeError) and _stdout_is_closed():
        _silence_stdout()
        return STDOUT_CLOSED
    if isinstance(error, KeyboardInterrupt):
        _say("interrupted")
        return INTERRUPTED
    known = (
        error
        if isinstance(error, OnceproofError)
        else room_error(error, *_written()) or _of_the_machine(error)
    )
    _say(unforeseen(error) if known is None else str(known))
    _keep_stdout_flushable()
    return OUR_ERROR if known is None else BAD_USE


def leave(code: int) -> NoReturn:
    """End the process with this code, even while threads are running.

    The reconciling thread may be inside pyarrow when an error ends a command; a normal exit of Python would then abort with 134.
    """
    if threading.active_count() == 1:
        sys.exit(code)
    atexit._run_exitfuncs()  # removes scratch folders
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def unforeseen(error: BaseException) -> str:
    """Write the traceback of an internal error to a file; return the line that describes the error and names the file."""
    cause = getattr(error, "java_exception", None)  # py4j's own text is the Java trace, over many lines
    with suppress(Exception):
        cause = cause.toString() if cause is not None else None
    text = next(iter(str(cause if cause is not None else error).strip().splitlines()), "")
    name = type(error).__name__
    place = _place(error)
    what = f"{name}: {text}" if text else name
    return f"internal error: {what}{place}; {_keep(error)}"


def guarded(command: Callable[[], int]) -> int:
    """Run a command and return its exit code, whatever happens in it or in its threads."""
    lost: list[BaseException] = []  # errors that ended threads

    def in_thread(args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None and not isinstance(args.exc_value, SystemExit):
            lost.append(args.exc_value)
            _say(unforeseen(args.exc_value))

    before, threading.excepthook = threading.excepthook, in_thread
    try:
        code = command()
        sys.stdout.flush()
        return OUR_ERROR if lost and code != VIOLATED else code
    except SystemExit as error:
        if error.code in (None, AS_PROMISED, BAD_USE):
            raise  # argparse has printed the error or its help
        return failed(error)
    except BaseException as error:  # noqa: BLE001  exit code 1 is a verdict, so no error may end with it
        return failed(error)
    finally:
        threading.excepthook = before


def _of_the_machine(error: BaseException) -> str | None:
    if not isinstance(error, OSError) or error.errno not in _OF_THE_MACHINE:
        return None
    place = f"{error.filename}: " if error.filename else ""
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return f"{place}{error.strerror}; raise the limit of open files: ulimit -n 4096"
    return f"{place}{error.strerror}" if place else None


def _written() -> list[Path]:
    """Return the folders that a command may have been writing to, for errors that do not name a file."""
    return [Path("runs"), *_folders()]


def _place(error: BaseException) -> str:
    """Return the line of this project in which the error happened, as ` (harness/cli.py:12)`."""
    root = Path(__file__).parents[2]
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if Path(f.filename).is_relative_to(root) and ".venv" not in f.filename]
    if not ours:
        return ""
    return f" ({Path(ours[-1].filename).relative_to(root)}:{ours[-1].lineno})"


def _keep(error: BaseException) -> str:
    """Write the traceback to the first folder that can be written; return a text that names the file."""
    trace = "".join(traceback.format_exception(error))
    # Without the command line: settings of Spark may be secrets.
    head = (
        f"onceproof {harness.__version__}, Python {sys.version.split()[0]}, {time.strftime('%F %T %z')}\n\n"
    )
    for folder in _folders():
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(
                prefix=time.strftime("error-%Y%m%d-%H%M%S-"), suffix=".txt", dir=folder
            )
            try:
                with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
                    file.write(head + trace)
            except OSError:
                Path(name).unlink()
                raise
            return f"the trace is in {name}; please report it"
    return "its trace could not be written anywhere"


def _folders() -> list[Path]:
    from harness.runtime.cache import cache_dir

    folders = []
    with suppress(OnceproofError):
        folders.append(cache_dir() / "logs")
    return [*folders, *scratch_folders()]


def _say(text: str) -> None:
    with suppress(OSError, ValueError):  # stderr may be closed
        # Several lines become one; control characters are escaped.
        line = printable(" ".join(text.split()))
        print(f"onceproof: {line[:_LONGEST]}", file=sys.stderr, flush=True)


def _stdout_is_closed() -> bool:
    """Return True if the reader of stdout has closed it; any other broken pipe is an internal error."""
    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
        return bool(poll.poll(0))
    except (OSError, ValueError, AttributeError):
        return False


def _keep_stdout_flushable() -> None:
    """Write or drop the rest of stdout's buffer: else the interpreter fails again at exit."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        _silence_stdout()


def _silence_stdout() -> None:
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
