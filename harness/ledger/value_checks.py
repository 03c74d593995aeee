"""Checks for values from files that a stranger may have written: JSON texts, and the fields in them.

A check is a function that returns the value it was given, or raises `Wrong`, whose text names the field, the value and
what was expected. Checks are put together from small ones: `shape({"session": integer(0, 9)})`. Fields that a shape
does not name are ignored, so that a newer writer may add some.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from typing import Any, NoReturn

MOST_DEPTH = 40  # lists and objects inside each other
LEAST_64, MOST_64 = -(1 << 63), (1 << 63) - 1
MOST_TEXT = 1_000_000  # characters
MOST_ITEMS = 10_000_000
_SHOWN = 60  # characters of a wrong value
_LONG_NUMBER = re.compile(r"\d{19}")

Check = Callable[[Any], Any]


class Wrong(ValueError):
    """A value that is not what its file promises."""

    def __init__(self, expected: str, value: Any, path: str = "") -> None:
        self.expected, self.value, self.path = expected, value, path
        super().__init__(expected, value, path)

    def __str__(self) -> str:
        return f"{self.path or 'the value'} is {shown(self.value)}: {self.expected} is expected"

    def below(self, name: str) -> Wrong:
        """Return the same error, seen from the object or list that contains the value as `name`."""
        path = f"{name}{self.path}" if self.path.startswith("[") or not self.path else f"{name}.{self.path}"
        return type(self)(self.expected, self.value, path)


class Missing(Wrong):
    def __str__(self) -> str:
        return f"{self.path} is missing: {self.expected} is expected"


def shown(value: Any) -> str:
    """Return a value for an error line: short, and without control characters."""
    # Only the top of a large value: repr of all of it may take long.
    text = (
        f"{type(value).__name__} of {len(value)}" if isinstance(value, dict | list) and value else repr(value)
    )
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


# --- JSON -----------------------------------------------------------------------------------------


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
        raise ValueError(f"{text[:_SHOWN]} is too large for a number")
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


# --- single values --------------------------------------------------------------------------------


def integer(low: int = LEAST_64, high: int = MOST_64) -> Check:
    def check(value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise Wrong(f"an integer from {low} to {high}", value)
        return value

    return check


def number(low: float = -1e300, high: float = 1e300) -> Check:
    def check(value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise Wrong(f"a number from {low:g} to {high:g}", value)
        return value

    return check


def text(most: int = MOST_TEXT, pattern: str = "", what: str = "") -> Check:
    compiled = re.compile(pattern) if pattern else None

    def check(value: Any) -> Any:
        if not isinstance(value, str) or len(value) > most or (compiled and not compiled.fullmatch(value)):
            raise Wrong(what or f"a text of at most {most} characters", value)
        return value

    return check


def boolean(value: Any) -> Any:
    if not isinstance(value, bool):
        raise Wrong("true or false", value)
    return value


def one_of(values: Iterable[str]) -> Check:
    known = [str(value) for value in values]

    def check(value: Any) -> Any:
        if not isinstance(value, str) or value not in known:
            raise Wrong(f"one of {', '.join(known)}", value)
        return value

    return check


def optional(check: Check) -> Check:
    """Return a check that also allows null."""
    return lambda value: None if value is None else check(value)


def either(first: Check, second: Check) -> Check:
    def check(value: Any) -> Any:
        try:
            return first(value)
        except Wrong:
            return second(value)

    return check


# --- lists and objects ----------------------------------------------------------------------------


def list_of(check: Check, most: int = MOST_ITEMS, least: int = 0) -> Check:
    def check_all(value: Any) -> Any:
        if not isinstance(value, list) or not least <= len(value) <= most:
            raise Wrong(f"a list of {least} to {most} values", value)
        for place, one in enumerate(value):
            try:
                check(one)
            except Wrong as wrong:
                raise wrong.below(f"[{place}]") from None
        return value

    return check_all


def mapping(check: Check, names: Check | None = None) -> Check:
    """Return a check for an object with any names whose values all pass."""

    def check_all(value: Any) -> Any:
        if not isinstance(value, dict):
            raise Wrong("an object", value)
        for name, one in value.items():
            try:
                if names is not None:
                    names(name)
                check(one)
            except Wrong as wrong:
                raise wrong.below(f"[{shown(name)}]") from None
        return value

    return check_all


def anything(value: Any) -> Any:
    """Accept any value: it is only shown, and the JSON itself was checked."""
    return value


def shape(
    needed: Mapping[str, Check], more: Mapping[str, Check] | None = None, *, only: bool = False
) -> Check:
    """Return a check for an object with these fields, and maybe with `more`. `only`: any other field is an error."""
    allowed = more or {}

    def check_all(value: Any) -> Any:
        if not isinstance(value, dict):
            raise Wrong("an object", value)
        for name, check in (*needed.items(), *allowed.items()):
            if name not in value:
                if name in needed:
                    raise Missing(_expected(check), None, name)
                continue
            try:
                check(value[name])
            except Wrong as wrong:
                raise wrong.below(name) from None
        if only:
            for name in value:
                if name not in needed and name not in allowed:
                    raise Wrong("no such field", value[name], shown(name))
        return value

    return check_all


def _expected(check: Check) -> str:
    try:
        check(_NOTHING)
    except Wrong as wrong:
        return wrong.expected
    return "a value"


_NOTHING = object()
