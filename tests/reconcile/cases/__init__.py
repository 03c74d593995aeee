"""Literal ledgers: histories by hand, and exactly what has to be found in each; one subject per file, found by listing."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from tests.reconcile.cases.base import CASES

__all__ = ["CASES"]

for _found in iter_modules(__path__):
    import_module(f"{__name__}.{_found.name}")
