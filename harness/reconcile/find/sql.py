"""Conditions and values as SQL text: they read like the question."""

from __future__ import annotations

import re

import polars as pl

# A text in quotes, or a lower-case word that is not a function.
_TEXT_OR_COLUMN = re.compile(r"'[^']*'|\b[a-z_][a-z0-9_]*\b(?!\()")


def sql(text: str) -> pl.Expr:
    """An SQL expression over columns. Keywords are in capitals: a lower-case word is a column, even `offset` or `end`."""
    quoted = _TEXT_OR_COLUMN.sub(lambda m: m[0] if m[0].startswith("'") else f'"{m[0]}"', text)
    return pl.sql_expr(quoted)
