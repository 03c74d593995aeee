"""Run folders that keep less than a run wrote, so that hundreds of runs fit on a disk.

A packed run has `ledger.tar.gz` and `logs.tar.gz` instead of `ledger/` and `logs/`, and no `tables/`, which sealing makes
again. Everything that reads journals opens the run by `readable`, which unpacks them for that long. If there is an
archive, it is used, whatever else a killed packing left. A run is packed when its verdict is written, and never while it is read.
"""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import os
import re
import shutil
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import IO, Any

from harness.errors import LedgerError, OnceproofError
from harness.ledger.rundir import RunDir, read_json, write_json

KEEP = ("evidence", "all", "least")
KEEP_HELP = (
    "how much of each run folder is kept: all; evidence (default): everything of runs that are inconclusive or not as expected, "
    "the others packed, with all that reconcile needs; least: of those others only the manifest, the results and the findings"
)
_LEVEL = 6
_PIECE = 1 << 20
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")  # of a journal


def pack(run: RunDir, keep: str) -> str:
    """Keep of a judged run what `keep` says. Return why the run was left whole against `keep`, or an empty text."""
    if keep == "all":
        return ""
    try:
        if not _as_expected(run):
            return ""
        with _locked(run.path, fcntl.LOCK_EX | fcntl.LOCK_NB):
            if keep == "least":
                write_json(run.manifest, {**run.read_manifest(), "kept": "least"})
            else:
                for folder, archive in ((run.ledger, run.packed_ledger), (run.logs, run.packed_logs)):
                    if folder.is_dir() and not archive.exists():
                        _write(folder, archive)
            for folder in (run.path / "ledger", run.logs, run.tables):
                _remove(folder)
            if keep == "least":  # the run may have been packed before
                for archive in (run.packed_ledger, run.packed_logs):
                    archive.unlink(missing_ok=True)
    except BlockingIOError:
        return f"{run.path}: left whole, another process reads it"
    except (OSError, OnceproofError) as error:
        return f"{run.path}: left whole, it could not be packed: {error}"
    return ""


@contextmanager
def readable(run: RunDir) -> Iterator[RunDir]:
    """Yield the run with its journals readable, unpacked if necessary; meanwhile it is not packed."""
    with in_use(run):
        if not run.packed_ledger.exists():
            _must_have_ledger(run)
            yield run
            return
        with TemporaryDirectory(prefix="onceproof-ledger-") as scratch:
            _unpack(run.packed_ledger, Path(scratch))
            try:
                yield replace(run, unpacked=Path(scratch))
            except LedgerError as error:  # it names a file of the scratch folder, which is deleted soon
                raise LedgerError(str(error).replace(scratch, str(run.packed_ledger))) from error


@contextmanager
def in_use(run: RunDir) -> Iterator[None]:
    """Prevent packing of the run during the `with`. If folders cannot be locked, packing leaves them alone as well."""
    lock = _locked(run.path, fcntl.LOCK_SH)
    try:
        lock.__enter__()
    except OSError:
        yield
        return
    try:
        yield
    finally:
        lock.__exit__(None, None, None)


def drop_tables(run: RunDir) -> None:
    """Remove the tables of a packed run: they are made again when they are needed."""
    if run.packed_ledger.exists():
        with suppress(OSError), _locked(run.path, fcntl.LOCK_EX | fcntl.LOCK_NB):
            _remove(run.tables)


def _as_expected(run: RunDir) -> bool:
    """Return True if there is a verdict and it is the expected one; otherwise every file may be evidence."""
    verdict = read_json(run.verdict, "is the run judged?")
    return verdict.get("as_expected") is True and verdict.get("verdict") != "INCONCLUSIVE"


def _must_have_ledger(run: RunDir) -> None:
    if not run.ledger.is_dir() and run.keeps_results_only():
        raise LedgerError(
            f"{run.path}: kept with --keep least, so its ledger is gone and it cannot be read again; run the scenario again "
            "with --keep evidence"
        )


@contextmanager
def _locked(folder: Path, how: int) -> Iterator[None]:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, how)
        yield
    finally:
        os.close(fd)


# --- archives ---


def _write(folder: Path, archive: Path) -> None:
    """Write an archive of a folder, whole or not at all: it gets its name once it was read again and is on the disk."""
    draft = archive.with_name(f".{archive.name}.{os.getpid()}")
    try:
        wrote: dict[str, str] = {}
        with draft.open("wb") as file:
            with tarfile.open(fileobj=file, mode="w:gz", compresslevel=_LEVEL) as into:
                for path in sorted(
                    path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()
                ):
                    name = str(path.relative_to(folder))
                    into.add(path, name, recursive=False)
                    with path.open("rb") as source:
                        wrote[name] = _digest(source)
            file.flush()
            os.fsync(file.fileno())
        if _digests(draft) != wrote:
            raise LedgerError(
                f"{draft}: reading the archive back gave other data than was written; check the disk"
            )
        draft.replace(archive)
        _sync(archive.parent)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def _opened(archive: Path) -> Iterator[tarfile.TarFile]:
    """Yield an archive to be read once from begin to end; its checksum at the end is compared as well."""
    with gzip.open(archive, "rb") as stream:
        with tarfile.open(fileobj=stream, mode="r|") as file:
            yield file
        if len(stream.read(_PIECE)) == _PIECE:
            raise tarfile.TarError("more follows behind its end")


def _digests(archive: Path) -> dict[str, str]:
    with _opened(archive) as file:
        return {member.name: _digest(_content(file, member)) for member in file if member.isreg()}


def _digest(source: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while piece := source.read(_PIECE):
        digest.update(piece)
    return digest.hexdigest()


def _content(file: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    content = file.extractfile(member)
    assert content is not None, "a regular file has content"
    return content


def _unpack(archive: Path, into: Path) -> None:
    """Unpack journals. The archive may come from anywhere: plain files by plain names, and no more than the disk has."""
    room = shutil.disk_usage(into).free
    try:
        with _opened(archive) as file:
            for member in file:
                if not member.isreg() or not _NAME.fullmatch(member.name):
                    raise LedgerError(
                        f"{archive}: {member.name!r} is not the name of a journal: not a packed ledger"
                    )
                room -= member.size
                if room < 0:
                    raise LedgerError(
                        f"{archive}: no room to unpack it in {gettempdir()}; free some disk space or set TMPDIR=FOLDER"
                    )
                with (into / member.name).open("xb") as journal:
                    shutil.copyfileobj(_content(file, member), journal, _PIECE)
    except (tarfile.TarError, EOFError, zlib.error, OSError, ValueError) as error:
        raise LedgerError(f"{archive}: it cannot be unpacked: {error}") from error


def _remove(folder: Path) -> None:
    """Delete a folder; under its own name it is there whole or not at all."""
    if folder.is_symlink() or not folder.exists():
        return
    doomed = folder.with_name(f".{folder.name}.packed")
    shutil.rmtree(doomed, ignore_errors=True)
    folder.rename(doomed)
    shutil.rmtree(doomed, ignore_errors=True)


def _sync(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def add_keep_option(add: Any) -> None:
    """Give `--keep` to a parser: argparse's add_argument or pytest's addoption."""
    add("--keep", choices=KEEP, default=KEEP[0], help=KEEP_HELP)
