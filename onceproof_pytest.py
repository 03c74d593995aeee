"""The entry point of the pytest plugin: loads harness/pytest_plugin, unless a package of the user has our name `harness`.

Then the plugin stays inactive: tests that do not use onceproof run as if it were not installed, and tests that use it fail
with one line that names the collision. With --import-mode=importlib sys.path stays as it is, so both can be used.
`-p no:onceproof_pytest` disables the plugin.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from onceproof import collision, pin

PLUGIN = "harness.pytest_plugin.plugin"
_OURS = Path(__file__).resolve().parent


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Decide before a conftest.py of the user imports its own package."""
    root = early_config.rootpath.resolve()
    if root != _OURS and (root / Path(__file__).name).is_file():
        return  # a clone of this project, whose conftest.py loads its own plugin
    if line := _collision(early_config):
        early_config.pluginmanager.register(Inactive(line), "onceproof_inactive")
        return
    pin("harness")
    early_config.pluginmanager.import_plugin(PLUGIN)


class Inactive:
    """The plugin where its package cannot be loaded: it reports why, and fails the tests that need it."""

    def __init__(self, line: str) -> None:
        self._line = line

    def pytest_report_header(self) -> str:
        return self._line

    def pytest_configure(self, config: pytest.Config) -> None:
        config.addinivalue_line("markers", "onceproof: tests that use onceproof")
        config.addinivalue_line("markers", "claim: tests of a statement about Kafka")

    @pytest.fixture
    def onceproof_cluster(self) -> None:
        """Fail with the reason."""
        pytest.fail(self._line, pytrace=False)

    @pytest.fixture
    def execute(self) -> None:
        """Fail with the reason."""
        pytest.fail(self._line, pytrace=False)


def _collision(config: pytest.Config) -> str:
    loaded = sys.modules.get("harness")
    if loaded is not None:
        mine = any(Path(path).resolve() == _OURS / "harness" for path in getattr(loaded, "__path__", ()))
        return "" if mine else collision("harness", str(getattr(loaded, "__file__", "harness")))
    if config.known_args_namespace.importmode == "importlib":
        return ""
    for folder in _folders(config):
        for other in (folder / "harness" / "__init__.py", folder / "harness.py"):
            if folder.resolve() != _OURS and other.is_file():
                return collision("harness", str(other))
    return ""


def _folders(config: pytest.Config) -> Iterator[Path]:
    """The folders that pytest may put at the beginning of sys.path."""
    here = config.invocation_params.dir
    yield from (here, config.rootpath)
    for word in config.known_args_namespace.file_or_dir:
        path = here / word.partition("::")[0]
        yield path if path.is_dir() else path.parent
