"""What becomes of a test that fails in ``./kit test``: it runs once more, alone, and is named in any case."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
SCRIPT = """
set -eu
here=$1 build=$1/build venv=$1/venv
say() { printf 'kit: %s\\n' "$*" >&2; }
. "$2/tests/suites.sh"
suite unit env -n 2 --dist loadfile tests
"""
BROKEN = "def test_broken():\n    assert False\n"
LATE = """
import pathlib
def test_late():
    once = pathlib.Path("once")
    if not once.exists():
        once.touch()
        raise AssertionError("too late")
"""
GOOD = "def test_good():\n    with open('good', 'a') as runs:\n        runs.write('.')\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "venv/bin").mkdir(parents=True)
    (tmp_path / "build").mkdir()
    python = tmp_path / "venv/bin/python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    (tmp_path / "tests").mkdir()
    return tmp_path


def suite(checkout: Path, **files: str) -> tuple[int, str, str]:
    for name, text in files.items():
        (checkout / "tests" / f"test_{name}.py").write_text(text)
    argv = ["sh", "-c", SCRIPT, "suite", str(checkout), str(REPOSITORY)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_all_pass_and_run_once(checkout: Path) -> None:
    assert suite(checkout, good=GOOD)[::2] == (0, "")
    assert (checkout / "good").read_text() == "."


def test_one_that_was_late_is_named_and_only_it_runs_again(checkout: Path) -> None:
    status, _, said = suite(checkout, good=GOOD, late=LATE)
    assert status == 0, said
    assert "kit: unit tests: 1 failed; once more, alone:" in said
    assert "NOT RELIABLE" in said
    assert "kit:   tests/test_late.py::test_late" in said
    assert (checkout / "good").read_text() == "."


def test_one_that_is_broken_fails_the_run(checkout: Path) -> None:
    status, printed, said = suite(checkout, late=LATE, broken=BROKEN)
    assert status == 1, said
    assert "NOT RELIABLE" not in said
    assert printed.count("FAILED tests/test_broken.py::test_broken") == 2


def test_many_that_fail_are_no_chance(checkout: Path) -> None:
    many = "".join(
        LATE.replace("test_late", f"test_{number}").replace('"once"', f'"once{number}"') for number in range(11)
    )
    status, _, said = suite(checkout, many=many)
    assert (status, said) == (1, "")


@pytest.mark.parametrize("text", ["import a_module_that_is_not_there\n", "raise SystemExit(3)\n"])
def test_a_file_that_cannot_be_read_fails_the_run(checkout: Path, text: str) -> None:
    assert suite(checkout, good=GOOD, broken=text)[0] != 0
