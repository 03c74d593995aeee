"""Files on any file system that Hadoop knows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import LedgerError, UsageError
from harness.reconcile.spark.masters import first_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class HadoopStorage:
    """Hadoop's FileSystem, through the JVM of a session, with that session's settings and credentials; places are texts."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm: Any = spark._jvm
        self._settings: Any = spark.sparkContext._jsc.hadoopConfiguration()

    def read_text(self, place: str) -> str:
        with self._at(place) as (files, path):
            stream = files.open(path)
            try:
                return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
            finally:
                stream.close()

    def write_text(self, place: str, text: str) -> None:
        """Write the file, whole or not at all."""
        draft = _beside(place)
        with self._at(draft) as (files, path):
            stream = files.create(path, True)
            try:
                stream.write(bytearray(text.encode()))
            finally:
                stream.close()
        self.rename(draft, place)

    def exists(self, place: str) -> bool:
        with self._at(place) as (files, path):
            return bool(files.exists(path))

    def names(self, place: str) -> list[str]:
        """Return the names in a folder, sorted."""
        with self._at(place) as (files, path):
            return sorted(str(entry.getPath().getName()) for entry in files.listStatus(path))

    def delete(self, place: str) -> None:
        """Delete a file, or a folder with its content; a missing one is no error."""
        with self._at(place) as (files, path):
            files.delete(path, True)

    def rename(self, place: str, to: str) -> None:
        """Rename a file or folder; replace whatever is at the new place."""
        # Most file systems refuse to rename onto an existing file, object stores among them.
        self.delete(to)
        with self._at(place) as (files, path):
            if not files.rename(path, self._jvm.org.apache.hadoop.fs.Path(to)):
                raise LedgerError(f"{to}: cannot be written; is the folder writable?")

    def fetch(self, place: str, to: Path) -> None:
        """Copy a file or a folder to this machine."""
        with self._at(place) as (files, path):
            files.copyToLocalFile(
                False, path, self._jvm.org.apache.hadoop.fs.Path(to.absolute().as_uri()), True
            )

    def put(self, local: Path, place: str) -> None:
        """Copy a file or a folder from this machine; it appears whole or not at all."""
        draft = _beside(place)
        self.delete(draft)
        with self._at(draft) as (files, path):
            source = self._jvm.org.apache.hadoop.fs.Path(local.absolute().as_uri())
            files.copyFromLocalFile(False, True, source, path)
        self.rename(draft, place)

    def find(self, place: str, name: str) -> list[str]:
        """Return every file of this name at or beneath a place, sorted."""
        found = []
        with self._at(place) as (files, path):
            if not files.exists(path):
                return []
            entries = files.listFiles(path, True)
            while entries.hasNext():
                entry = entries.next().getPath()
                if entry.getName() == name:
                    found.append(str(entry.toString()))
        return sorted(found)

    @contextmanager
    def _at(self, place: str) -> Iterator[tuple[Any, Any]]:
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException

        try:
            path = self._jvm.org.apache.hadoop.fs.Path(place)
            files = path.getFileSystem(self._settings)
            if place.startswith("file:"):
                # Hadoop would keep a checksum beside each file, wrong as soon as another program writes the file.
                files.setWriteChecksum(False)
                files.setVerifyChecksum(False)
            yield files, path
        except (Py4JJavaError, PySparkException) as error:
            raise _usage_error(place, error) from error


def _usage_error(place: str, error: Exception) -> UsageError:
    text = first_line(error)
    if "No FileSystem for scheme" in text or "ClassNotFoundException" in text:
        text = "Spark has no file system of this kind; add its package with --conf spark.jars.packages=… (docs/spark.md)"
    return UsageError(f"{place}: {text}")


def _beside(place: str) -> str:
    folder, _, name = place.rstrip("/").rpartition("/")
    return f"{folder}/.{name}.{os.getpid()}"
