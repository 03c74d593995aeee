"""install missing tools, then run the tests by tox

All arguments after `tox` are passed on: `./onceproof tox -e unit -- -k cache`. Without arguments the environments of CI
run: first those without brokers, three at a time, then those with brokers, which need the processors for themselves.
Arguments that only print something (`--version`, `--help`, `-l`) install nothing. The exit code is that of tox; 2 if
the set-up failed.
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
# By their labels in tox.ini. Live output, so that a run that takes minutes shows its progress.
CI = (("run-parallel", "-p", "3", "-o", "-m", "without-brokers"), ("run", "-m", "brokers"))
_ASKING_COMMANDS = ("l", "list", "c", "config", "de", "depends", "s", "schema", "man", "q", "quickstart")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Set the usage line; all arguments are those of tox."""
    parser.usage = "onceproof tox [ARGUMENTS OF TOX]"


def only_asks(words: Sequence[str]) -> bool:
    """Return True if tox would only print something: then nothing is installed."""
    before = list(words[: words.index("--")]) if "--" in words else list(words)
    return bool(_ASKING.intersection(before)) or before[:1] in ([word] for word in _ASKING_COMMANDS)


def run(args: argparse.Namespace) -> int:
    """Install missing tools first, so that no test waits for a download, then run tox in the project's folder."""
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
    codes = [
        subprocess.run([sys.executable, "-m", "tox", *words], cwd=root, env=env, check=False).returncode
        for words in ([args.rest] if args.rest else CI)
    ]
    return next(filter(None, codes), 0)
