"""Find plug-ins by listing their folder: one file a plug-in; its file name is the name that users type.

The last line of such a file names its class, for example `fault_class = Kill`. A file is imported only
when it is chosen, so an optional library is needed only by users of its plug-in.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from harness.errors import UsageError

PACKAGES = {
    "fault": "faults",
    "cluster": "harness.clusters",
    "client": "harness.clients",
    "workload": "harness.workloads",
    "role": "harness.workers.roles",
    "finder": "harness.reconcile.anomalies",
}


def names(kind: str) -> list[str]:
    """Return the names of all plug-ins of a kind, without importing them."""
    return listed(PACKAGES[kind])


def listed(package: str) -> list[str]:
    """Return the names of the plug-in files in the folder of a package, without importing them.

    Folders, and modules with an underscore, are shared by plug-ins. Modules that begin with `test_` belong to pytest.
    """
    found = pkgutil.iter_modules(importlib.import_module(package).__path__)
    return sorted(m.name for m in found if not m.ispkg and not m.name.startswith(("_", "test_")))


def load(kind: str, name: str) -> Any:
    """Return the class that the plug-in file `name` offers as `<kind>_class`."""
    if name not in names(kind):
        raise UsageError(f"unknown {kind} {name!r}; choose one of {', '.join(names(kind))}")
    module = importlib.import_module(f"{PACKAGES[kind]}.{name}")
    try:
        return getattr(module, f"{kind}_class")
    except AttributeError:
        raise UsageError(f"{module.__file__}: add a last line `{kind}_class = …`") from None
