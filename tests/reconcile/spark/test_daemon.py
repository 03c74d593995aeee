"""The process that Python workers of local mode are forked from: it is ours, and a failing import does not end it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.reconcile.spark import daemon

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[3]


def test_workers_are_forked_from_it_ready_and_with_one_thread_of_polars(spark: SparkSession) -> None:
    def seen(_: int) -> tuple[str, bool, str | None]:
        import gc
        import os
        import sys

        spec = sys.modules["__main__"].__spec__
        frozen = gc.get_freeze_count() > 0
        return spec.name if spec else "", frozen, os.environ.get("POLARS_MAX_THREADS")

    tasks = spark.sparkContext.parallelize(range(2), 2).map(seen).collect()
    assert tasks == [("harness.reconcile.spark.daemon", True, "1")] * 2
    assert "POLARS_MAX_THREADS" not in os.environ


def test_nothing_is_imported_that_starts_polars() -> None:
    program = "import sys; from harness.reconcile.spark.daemon import import_early; print(import_early(), 'polars' in sys.modules)"
    ended = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert ended.stdout == "[] False\n", ended.stderr


def test_modules_that_fail_or_print_are_kept_off_standard_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "early_broken.py").write_text("raise OSError('two\\nlines')\n", encoding="utf-8")
    (tmp_path / "early_loud.py").write_text("print('hello')\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    failed = daemon.import_early(["early_broken", "early_loud", "early_missing"])
    assert [line.partition(" ")[0] for line in failed] == ["early_broken", "early_missing"]
    assert "OSError: two lines" in failed[0]
    assert capsys.readouterr().out == ""


PROGRAM = """
import os
from pyspark.errors import PythonException
from harness.reconcile.spark import session
spark = session.spark(more={"spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"]})
print(spark.sparkContext.parallelize([1, 2], 1).map(lambda n: n + 1).sum())
def kernel(batches):
    import numpy
    yield from batches
try:
    spark.range(3).mapInArrow(kernel, "id bigint").toArrow()
except PythonException as error:
    print("numpy is broken today" in str(error))
"""

# Python runs it at its start. Of workers only: the driver is healthy.
BROKEN = """
import sys
class Broken:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy" and sys.orig_argv[-1] == "pyspark.worker":
            raise ImportError("numpy is broken today")
sys.meta_path.insert(0, Broken())
"""


@pytest.mark.spark
def test_a_module_that_cannot_be_imported_fails_the_task_that_needs_it_in_python_s_words(
    tmp_path: Path,
) -> None:
    (tmp_path / "sitecustomize.py").write_text(BROKEN, encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM], capture_output=True, text=True, timeout=400, check=False,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}", "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.split() == ["5", "True"], ended.stderr
