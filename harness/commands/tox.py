"""set up what is missing, then run the tests by tox

Everything after `tox` goes to tox as it is: `./onceproof tox -e unit -- -k cache`. Without arguments the
environments that belong to CI run. What only asks (`--version`, `--help`, `-l`) installs nothing. The exit code is that
of tox; 2 when the set-up failed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

passes_rest = True
_ASKING = frozenset(("--version", "-h", "--help", "-l", "--listenvs", "-a", "--listenvs-all", "--showconfig"))
_ASKING_COMMANDS = ("l", "list", "c", "config", "de", "depends", "s", "schema", "man", "q", "quickstart")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command: none of its own."""
    parser.usage = "onceproof tox [ARGUMENTS OF TOX]"


def only_asks(words: Sequence[str]) -> bool:
    """Whether tox would only print something: then nothing is fetched or installed."""
    before = list(words[: words.index("--")]) if "--" in words else list(words)
    return bool(_ASKING.intersection(before)) or before[:1] in ([word] for word in _ASKING_COMMANDS)


def run(args: argparse.Namespace) -> int:
    """Fetches first, so that no test waits for a download, then runs tox in the project's folder."""
    from harness.errors import SetupError
    from harness.provision import ensure_all
    from harness.provision.browser import browser
    from harness.provision.faketime import faketime
    from harness.provision.fuse import fuse

    root = Path(__file__).parents[2]
    if not (root / "tox.ini").is_file():
        raise SetupError(
            f"no tox.ini in {root}: `tox` runs from a clone of the project, not from an installed package"
        )
    if not only_asks(args.rest):
        ensure_all()
        browser()
        faketime()
        fuse()
    # tox-uv looks for uv on the path when it is not installed beside it.
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    return subprocess.run(
        [sys.executable, "-m", "tox", *args.rest], cwd=root, env=env, check=False
    ).returncode
