"""A slow disk without root: Byteman delays the append of a broker's logs.

Its agent runs inside the broker's JVM and takes rules as text over a socket on the node's own address.
"""

from __future__ import annotations

import socket

from harness.contracts import DiskFault
from harness.errors import FaultError

_LIMIT_S = 10.0
_SCRIPT = "onceproof-slow-append"


def rule(how: DiskFault, also: str) -> str:
    """Sleep before each append to a partition folder of the topics under test, or of the topic `also`.

    The class is named without its package, which changed between Kafka versions. Paths look like
    `…/data/orders-0/00000000000000000000.log`. Kafka's own topics, which begin with two underscores, stay quick.
    """
    wanted = " OR ".join(f'folder.startsWith("{prefix}")' for prefix in (how.topics_prefix, also))
    return "\n".join(
        [
            f"RULE {_SCRIPT}",
            "CLASS FileRecords",
            "METHOD append",
            "AT ENTRY",
            "BIND folder:String = $0.file().getParentFile().getName()",
            f'IF NOT folder.startsWith("__") AND ({wanted})',
            f"DO Thread.sleep({how.delay_ms})",
            "ENDRULE",
        ]
    )


def load(address: tuple[str, int], text: str) -> None:
    answer = _talk(address, f"LOAD\nSCRIPT {_SCRIPT}\n{text}\nENDSCRIPT\nENDLOAD\n")
    if "install rule" not in answer and "redefine rule" not in answer:
        raise FaultError(f"Byteman at {address[0]} did not take the rule: {' '.join(answer.split())[:300]}")


def unload_all(address: tuple[str, int]) -> None:
    """Does nothing when there is no rule, which Byteman itself takes for an error."""
    if "no rules installed" not in loaded(address):
        _talk(address, "DELETEALL\n")


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
