"""run tests that use onceproof, by pytest with the plugin loaded

Everything after `pytest` goes to pytest as it is: `./onceproof pytest mytests -k leader --onceproof-kafka 3.9.2`. The exit
code is that of pytest.
"""

from __future__ import annotations

import argparse
import os
import sys
import sysconfig
from pathlib import Path

passes_rest = True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add no options: pytest parses all of them."""
    parser.usage = "onceproof pytest [ARGUMENTS OF PYTEST]"


def run(args: argparse.Namespace) -> int:
    """Become pytest, in the folder of the caller: so Ctrl-C reaches it alone, and it can undo faults first."""
    root, env = str(Path(__file__).parents[2]), dict(os.environ)
    if root != sysconfig.get_path("purelib"):  # a clone; an installed package is found anyway
        paths = [root, *filter(None, env.get("PYTHONPATH", "").split(os.pathsep))]
        env["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))
    sys.stdout.flush()
    words = [sys.executable, "-P", "-m", "pytest", "-p", "onceproof_pytest", *args.rest]
    os.execve(sys.executable, words, env)
