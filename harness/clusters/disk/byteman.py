"""A bad disk without root: Byteman delays or refuses a broker's operations on its logs.

Its agent runs inside the broker's JVM with rules that are fixed when the broker starts. It listens on no socket, since
any process that reaches Byteman's own listener could run code in the broker. Instead each rule reads an order from a file
in the node's folder, which only this user can write. An empty file means that the disk works.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from harness.contracts import DiskFault, DiskHarm

SCRIPT_NAME = "onceproof-disk.btm"
_PROPERTY = "onceproof.disk"
_FOLDER = "byteman"
# The kernel's error texts, which Java puts into its exceptions.
_TEXTS = {
    DiskHarm.FULL: "No space left on device",
    DiskHarm.BROKEN: "Input/output error",
    DiskHarm.READ_ONLY: "Read-only file system",
}
_METHODS = {DiskHarm.SLOW_FSYNC: "flush", DiskHarm.SLOW_READ: "writeTo"}  # all others: append


def script() -> str:
    """Return the script: one rule for each harm, the same for every node."""
    return "\n".join(_rule(harm) for harm in DiskHarm)


def _rule(harm: DiskHarm) -> str:
    """Return the rule that sleeps or throws where the order in the harm's file says so.

    The class is named without its package, which changed between Kafka versions. Paths look like
    `…/data/orders-0/00000000000000000000.log`; the order is a delay in ms, a blank, and a pattern of `data/orders-0`.
    The file is read once for each decision, so that a concurrent change gives either the old or the new order.
    """
    text = _TEXTS.get(harm)
    act = (
        f'throw new java.io.IOException("{text}")'
        if text
        else 'Thread.sleep(Long.parseLong(order.substring(0, order.indexOf(" "))))'
    )
    return "\n".join(
        [
            f"RULE onceproof-disk-{harm}",
            "CLASS FileRecords",
            f"METHOD {_METHODS.get(harm, 'append')}",
            "AT ENTRY",
            f'BIND file:java.io.File = new java.io.File(System.getProperty("{_PROPERTY}"), "{harm}");',
            '     order:String = (file.length() == 0 ? "" : new String(java.nio.file.Files.readAllBytes(file.toPath())));',
            "     folder:java.io.File = $0.file().getParentFile();",
            '     place:String = folder.getParentFile().getName() + "/" + folder.getName();',
            'IF order.indexOf(" ") > 0 AND place.matches(order.substring(order.indexOf(" ") + 1))',
            f"DO {act}",
            "ENDRULE",
            "",
        ]
    )


def options(agent: Path | str, script: Path | str, node: Path) -> list[str]:
    """Return the JVM options that load the agent; see `lay_out`."""
    return [f"-D{_PROPERTY}={node / _FOLDER}", f"-javaagent:{agent}=script:{script}"]


def lay_out(node: Path) -> None:
    """Make the order files, all empty, before the node starts. The container of a node only reads them."""
    folder = node / _FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    give(node, [], "")


def give(node: Path, faults: Iterable[DiskFault], also: str) -> None:
    """Set the faults of the disk to exactly these, for topics with each fault's prefix or with the prefix `also`."""
    wanted = {how.harm: order(how, also) for how in faults}
    for harm in DiskHarm:
        _write(node / _FOLDER / str(harm), wanted.get(harm, ""))


def order(how: DiskFault, also: str) -> str:
    """Return the content of an order file; it spares internal topics, whose names begin with two underscores."""
    names = "|".join(_quoted(prefix) for prefix in (how.topics_prefix, also))
    return f"{how.delay_ms} {_quoted(how.folder) if how.folder else '[^/]*'}/(?!__)({names}).*"


def given(node: Path) -> list[str]:
    """Return the harms for which the node has an order."""
    return [str(harm) for harm in DiskHarm if _size(node / _FOLDER / str(harm)) > 0]


def _quoted(text: str) -> str:
    """Quote the text for a Java pattern."""
    return rf"\Q{text}\E" if text else ""


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def _write(file: Path, text: str) -> None:
    """Write the file atomically: a rule that reads half an order would throw inside the broker."""
    draft = file.with_name(f".{file.name}")
    draft.write_text(text, encoding="ascii")
    draft.chmod(0o644)
    draft.replace(file)
