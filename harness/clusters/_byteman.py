"""A bad disk without root: Byteman delays or refuses what a broker does with its logs.

Its agent runs inside the broker's JVM and takes rules as text over a socket on the node's own address.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence

from harness.contracts import DiskFault, DiskHarm
from harness.errors import FaultError

_LIMIT_S = 10.0
_SCRIPT = "onceproof-disk"
# What the kernel calls it: the texts that Java puts into its exceptions.
_TEXTS = {
    DiskHarm.FULL: "No space left on device",
    DiskHarm.BROKEN: "Input/output error",
    DiskHarm.READ_ONLY: "Read-only file system",
}
_METHODS = {DiskHarm.SLOW_FSYNC: "flush", DiskHarm.SLOW_READ: "writeTo"}  # all others: append


def rule(how: DiskFault, also: str) -> str:
    """Sleep or throw in a partition folder of the topics under test, or of topics that begin with `also`.

    The class is named without its package, which changed between Kafka versions. Paths look like
    `…/data/orders-0/00000000000000000000.log`. Kafka's own topics, which begin with two underscores, stay well.
    """
    wanted = " OR ".join(f'folder.startsWith("{prefix}")' for prefix in (how.topics_prefix, also))
    text = _TEXTS.get(how.harm)
    place = (
        f'$0.file().getParentFile().getParentFile().getName().equals("{how.folder}") AND '
        if how.folder
        else ""
    )
    return "\n".join(
        [
            f"RULE {_SCRIPT}-{how.harm}",
            "CLASS FileRecords",
            f"METHOD {_METHODS.get(how.harm, 'append')}",
            "AT ENTRY",
            "BIND folder:String = $0.file().getParentFile().getName()",
            f'IF {place}NOT folder.startsWith("__") AND ({wanted})',
            f'DO throw new java.io.IOException("{text}")' if text else f"DO Thread.sleep({how.delay_ms})",
            "ENDRULE",
        ]
    )


def replace(address: tuple[str, int], rules: Sequence[str]) -> None:
    """From now on these rules and no others."""
    if has_rules(address):  # to delete none is an error to Byteman
        _talk(address, "DELETEALL\n")
    if not rules:
        return
    text = "\n".join(rules)
    answer = _talk(address, f"LOAD\nSCRIPT {_SCRIPT}\n{text}\nENDSCRIPT\nENDLOAD\n")
    if answer.count("install rule") < len(rules):
        raise FaultError(f"Byteman at {address[0]} did not take the rules: {' '.join(answer.split())[:300]}")


def has_rules(address: tuple[str, int]) -> bool:
    return "no rules installed" not in loaded(address)


def loaded(address: tuple[str, int]) -> str:
    """Byteman's own account of its rules and what they were applied to."""
    return _talk(address, "LIST\n")


def _talk(address: tuple[str, int], words: str) -> str:
    """Send one command, read up to the line OK; raises FaultError on anything else."""
    heard = b""
    try:
        with socket.create_connection((address[0], int(address[1])), timeout=_LIMIT_S) as connection:
            connection.sendall(words.encode())
            while not heard.endswith(b"OK\n"):
                part = connection.recv(65536)
                if not part:
                    break
                heard += part
    except OSError as error:
        raise FaultError(f"Byteman at {address[0]}:{address[1]} does not answer: {error}") from error
    text = heard.decode(errors="replace")
    if not text.endswith("OK\n") or "ERROR" in text or "EXCEPTION" in text:
        raise FaultError(f"Byteman at {address[0]} refused: {' '.join(text.split())[:300]}")
    return text
