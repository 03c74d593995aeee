"""JSON that strangers may have written: no deep nesting, no huge numbers, no repeated names, no broken characters."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from math import isfinite
from typing import Any, NoReturn

from harness.ledger.value_checks import LEAST_64, MOST_SHOWN, shown

MOST_DEPTH = 40  # lists and objects inside each other
_LONG_NUMBER = re.compile(r"\d{19}")


def parse_json(data: bytes, *, wide: bool = False) -> Any:
    """Return the value of a JSON text; raise a ValueError that says in one line what is wrong.

    Refused are also: NaN and Infinity, integers beyond 64 bits (unless `wide`), names that an object has twice, lone
    surrogates, and nesting deeper than MOST_DEPTH.
    """
    try:
        text = data.decode("utf-8")
        value = json.loads(
            text, object_pairs_hook=_without_repeats, parse_float=_finite, parse_constant=_no_constant
        )
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start} is not UTF-8") from None
    except RecursionError:
        raise ValueError(f"nested deeper than {MOST_DEPTH} levels") from None
    # Most texts are flat and plain and need no further check.
    if "\\u" in text or text.count("[") + text.count("{") > MOST_DEPTH or _LONG_NUMBER.search(text):
        _look_through(value, wide=wide)
    return value


def dump_json(value: Any, **options: Any) -> str:
    """Return a JSON text that `parse_json` accepts, whatever texts and numbers are in the value."""
    try:
        made = json.dumps(value, allow_nan=False, default=str, **options)
    except ValueError:
        return json.dumps(_tame(value), default=str, **options)
    # Half a surrogate pair comes from a file name that is not UTF-8, in an error's text for example.
    return made if "\\ud" not in made else json.dumps(_tame(value), default=str, **options)


def _tame(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {_tame(str(name)): _tame(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_tame(one) for one in value]
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    return value.encode("utf-8", "backslashreplace").decode("utf-8") if isinstance(value, str) else value


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{shown(next(n for n in names if names.count(n) > 1))} occurs twice in one object")
    return made


def _finite(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise ValueError(f"{text[:MOST_SHOWN]} is too large for a number")
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _look_through(value: Any, *, wide: bool) -> None:
    """Check all nested values. It keeps a list instead of recursing, because they may be nested very deeply."""
    level: list[Any] = [value]
    for _ in range(MOST_DEPTH + 1):
        below: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                below += one.keys()
                below += one.values()
            elif isinstance(one, list):
                below += one
            elif isinstance(one, str):
                _need_characters(one)
            elif isinstance(one, int) and not wide and not LEAST_64 <= one < 1 << 64:
                raise ValueError(f"{shown(one)} does not fit into 64 bits")
        if not below:
            return
        level = below
    raise ValueError(f"nested deeper than {MOST_DEPTH} levels")


def _need_characters(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(f"a lone surrogate, \\u{ord(text[error.start]):04x}, in a text") from None
