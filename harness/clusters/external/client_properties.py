"""The settings of a user's clients, from a file as Java clients or librdkafka have it. What it holds is never written.

A value may name where the secret is: `${env:NAME}` or `${file:PATH}`. Paths are relative to the folder of the file.
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
    """Settings for librdkafka; one that is wrong is told with the file and its name, never with its value."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is not text"
        raise UsageError(f"--client-config {file} cannot be read: {reason}") from error
    told: dict[str, str] = {}
    for key, value in _entries(text, file):
        if key == "bootstrap.servers":
            continue  # --bootstrap says it
        if not _ALLOWED.match(key):
            raise UsageError(
                f"{file}: {key}: only what a connection needs belongs here (security.protocol, sasl.*, ssl.*, socket.*)"
            )
        told[key] = _resolved(value, key, file)
    settings = _translated(told, file)
    for key in _PATHS:
        if key in settings:
            path = (file.parent / settings[key]).absolute()
            if not path.is_file():
                raise UsageError(f"{file}: {key}: there is no file {path}")
            settings[key] = str(path)
    Security.of(settings)  # refuses what only the client library could do
    return settings


def secrets_in(settings: Mapping[str, str]) -> list[str]:
    """The values that must not be seen anywhere."""
    return [value for key, value in settings.items() if SECRET.search(key) and value]


def _entries(text: str, file: Path) -> Iterator[tuple[str, str]]:
    """Lines of `key=value`; a backslash at the end goes on in the next line, # and ! begin a comment."""
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


def _translated(told: Mapping[str, str], file: Path) -> dict[str, str]:
    """Names of Java clients become those of librdkafka; stores have to be PEM, which both can read."""
    settings = dict(told)
    if (jaas := settings.pop("sasl.jaas.config", None)) is not None:
        if not any(module in jaas for module in _LOGIN_MODULES):
            raise UsageError(f"{file}: sasl.jaas.config: known are {' and '.join(_LOGIN_MODULES)}")
        named = {name: re.sub(r"\\(.)", r"\1", value) for name, value in _JAAS.findall(jaas)}
        if set(named) != {"username", "password"}:
            raise UsageError(f'{file}: sasl.jaas.config: it needs username="…" and password="…"')
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
                    f"{file}: ssl.{store}.type={kind}: only PEM can be read; convert it, or give ssl.ca.location"
                )
            settings |= dict.fromkeys(names, location)
    if (pem := settings.pop("ssl.truststore.certificates", None)) is not None:
        settings["ssl.ca.pem"] = pem
    if settings.get("ssl.endpoint.identification.algorithm") == "":
        settings["ssl.endpoint.identification.algorithm"] = "none"
    return settings
