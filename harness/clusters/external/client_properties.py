"""The client settings of a user, from a file in the format of Java clients or librdkafka. Its values are never written.

A value may refer to a secret: `${env:NAME}` or `${file:PATH}`. Paths are relative to the folder of the file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from harness.errors import UsageError
from harness.kafka.protocol.security import Security

_REFERENCE = re.compile(r"\$\{(env|file):([^}]*)\}")
_ALLOWED = re.compile(
    r"security\.protocol|sasl\.|ssl\.|socket\.|enable\.ssl\.|broker\.address\.|client\.dns\."
)
_JAAS = re.compile(r'(username|password)\s*=\s*"((?:[^"\\]|\\.)*)"')
_LOGIN_MODULES = ("PlainLoginModule", "ScramLoginModule")
_PATHS = ("ssl.ca.location", "ssl.certificate.location", "ssl.key.location")
SECRET = re.compile(r"password|\.pem$|secret|\.key$")


def read_properties(file: Path) -> dict[str, str]:
    """Return the settings for librdkafka; an error names the file and the setting, never its value."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is not text"
        raise UsageError(f"--client-config {file} cannot be read: {reason}") from error
    given: dict[str, str] = {}
    for key, value in _entries(text, file):
        if key == "bootstrap.servers":
            continue  # --bootstrap sets it
        if not _ALLOWED.match(key):
            raise UsageError(
                f"{file}: {key}: not a setting of a connection; allowed are security.protocol, sasl.*, ssl.* and socket.*"
            )
        given[key] = _resolved(value, key, file)
    settings = _translated(given, file)
    for key in _PATHS:
        if key in settings:
            path = (file.parent / settings[key]).absolute()
            if not path.is_file():
                raise UsageError(f"{file}: {key}: there is no file {path}")
            settings[key] = str(path)
    Security.of(settings)  # refuses settings that only the client library supports
    return settings


def secrets_in(settings: Mapping[str, str]) -> list[str]:
    """Return the values that must not appear anywhere."""
    return [value for key, value in settings.items() if SECRET.search(key) and value]


def _entries(text: str, file: Path) -> Iterator[tuple[str, str]]:
    """Yield the entries `key=value`; a backslash at the end continues a line, # and ! begin a comment."""
    for number, line in enumerate(re.sub(r"\\\r?\n[ \t]*", "", text).splitlines(), start=1):
        bare = line.strip()
        if not bare or bare[0] in "#!":
            continue
        key, sign, value = bare.partition("=")
        if not sign or not key.strip():
            raise UsageError(f"{file}: entry {number} is not of the form key=value")
        yield key.strip(), value.strip()


def _resolved(value: str, key: str, file: Path) -> str:
    def found(match: re.Match[str]) -> str:
        kind, name = match.groups()
        if kind == "env":
            if name not in os.environ:
                raise UsageError(f"{file}: {key}: the environment has no variable {name}")
            return os.environ[name]
        try:
            return (file.parent / name).read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError):
            raise UsageError(f"{file}: {key}: the file {name} cannot be read") from None

    return _REFERENCE.sub(found, value)


def _translated(given: Mapping[str, str], file: Path) -> dict[str, str]:
    """Translate the names of Java clients to those of librdkafka; stores have to be PEM, which both can read."""
    settings = dict(given)
    if (jaas := settings.pop("sasl.jaas.config", None)) is not None:
        if not any(module in jaas for module in _LOGIN_MODULES):
            raise UsageError(
                f"{file}: sasl.jaas.config: unknown login module; use {' or '.join(_LOGIN_MODULES)}"
            )
        named = {name: re.sub(r"\\(.)", r"\1", value) for name, value in _JAAS.findall(jaas)}
        if set(named) != {"username", "password"}:
            raise UsageError(
                f'{file}: sasl.jaas.config: no user or password; add username="…" and password="…"'
            )
        settings |= {f"sasl.{name}": value for name, value in named.items()}
    for store, names in (
        ("truststore", ("ssl.ca.location",)),
        ("keystore", ("ssl.certificate.location", "ssl.key.location")),
    ):
        kind = settings.pop(f"ssl.{store}.type", "JKS")
        settings.pop(f"ssl.{store}.password", None)
        if (location := settings.pop(f"ssl.{store}.location", None)) is not None:
            if kind.upper() != "PEM":
                raise UsageError(
                    f"{file}: ssl.{store}.type={kind}: only PEM is supported; convert the store, or set ssl.ca.location"
                )
            settings |= dict.fromkeys(names, location)
    if (pem := settings.pop("ssl.truststore.certificates", None)) is not None:
        settings["ssl.ca.pem"] = pem
    if settings.get("ssl.endpoint.identification.algorithm") == "":
        settings["ssl.endpoint.identification.algorithm"] = "none"
    return settings
