"""The wheel in a clean environment, used from folders elsewhere: commands, collecting, and packages that have our names."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from suites.support import wheel
from suites.support.wheel import Installed
from tests.pytest_plugin.users import TESTS, outcomes, write

USES_OWN_PACKAGE = "from harness.mine import NUMBER\ndef test_own(): assert NUMBER == 3\n"
COLLISION = "has the name of onceproof's own package 'harness'"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return wheel.install(tmp_path_factory.mktemp("installed"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, test_mine_py=TESTS)
    return tmp_path


def package(folder: Path, name: str) -> None:
    (folder / name).mkdir()
    write(folder / name, __init___py="", mine_py="NUMBER = 3\n")


def test_the_wheel_has_every_file_of_its_packages(installed: Installed) -> None:
    with zipfile.ZipFile(installed.wheel) as file:
        there = set(file.namelist())
    folders = [wheel.ROOT / name for name in wheel.PARTS]
    files = [path for each in folders for path in ([each] if each.is_file() else each.rglob("*"))]
    wanted = {str(path.relative_to(wheel.ROOT)) for path in files if path.is_file()}
    assert not {name for name in wanted - there if "__pycache__" not in name}


def test_commands_run_from_anywhere(installed: Installed, tmp_path: Path) -> None:
    assert "prove" in installed.run(["onceproof", "--help"], tmp_path).stdout
    doctor = installed.run(["onceproof", "doctor", "--json"], tmp_path)
    assert doctor.returncode in (0, 2), doctor.stderr  # 2: this machine lacks something
    assert doctor.stdout.startswith("{")
    assert "internal error" not in doctor.stderr


@pytest.mark.parametrize(
    "words", [["pytest"], ["python", "-m", "pytest"], ["onceproof", "pytest"]], ids=" ".join
)
def test_a_test_of_a_user_is_collected(installed: Installed, folder: Path, words: list[str]) -> None:
    for name in ("harness", "suites", "faults", "reports"):
        (folder / name).mkdir()  # plain folders
    done = installed.run([*words, "--collect-only", "-q", "-m", "onceproof"], folder)
    assert "3/4 tests collected" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("words", [["pytest"], ["python", "-m", "pytest"]], ids=" ".join)
def test_a_project_with_a_package_of_our_name_keeps_it(
    installed: Installed, tmp_path: Path, words: list[str]
) -> None:
    package(tmp_path, "harness")
    write(tmp_path, test_own_py=USES_OWN_PACKAGE, test_both_py="def test_both(execute): pass\n")
    done = installed.run([*words, "-p", "no:cacheprovider"], tmp_path)
    assert outcomes(done) == {"passed": 1, "error": 1}, done.stdout
    assert str(tmp_path / "harness" / "__init__.py") in done.stdout
    assert COLLISION in done.stdout


def test_with_importlib_both_can_be_used(installed: Installed, folder: Path) -> None:
    for name in ("harness", "suites", "faults", "reports"):
        package(folder, name)
    done = installed.run(["pytest", "--import-mode=importlib", "--collect-only", "-q"], folder)
    assert "4 tests collected" in done.stdout, done.stdout


def test_packages_suites_and_reports_of_a_user_work_beside_ours(installed: Installed, folder: Path) -> None:
    for name in ("suites", "reports"):
        package(folder, name)
    write(folder / "suites", test_own_py=USES_OWN_PACKAGE.replace("harness", "reports"))
    done = installed.run(["pytest", "-k", "own or without_onceproof"], folder)
    assert outcomes(done) == {"passed": 2}, done.stdout


def test_the_plugin_can_be_disabled(installed: Installed, tmp_path: Path) -> None:
    write(
        tmp_path,
        test_a_py="def test_a(pytestconfig): assert not hasattr(pytestconfig.option, 'onceproof_seed')\n",
    )
    assert outcomes(installed.run(["pytest", "-p", "no:onceproof_pytest"], tmp_path)) == {"passed": 1}
