"""A field or a tag that gets another name in the schema, and not in the boards: they can no longer be made, and it is said which."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tandem

SOURCES = Path(tandem.__file__).parent


def generated(packages: Path) -> subprocess.CompletedProcess[str]:
    """``python -m tandem_dashboards generate --check`` with the schema that is in ``packages``."""
    path = os.pathsep.join([str(packages), *sys.path])
    return subprocess.run(
        [sys.executable, "-m", "tandem_dashboards", "generate", "--check"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def renamed(folder: Path, word: str, other: str) -> int:
    """A copy of the schema with ``word`` called ``other`` in all of it; how often."""
    shutil.copytree(SOURCES / "schema", folder / "tandem" / "schema")
    (folder / "tandem" / "__init__.py").write_text((SOURCES / "__init__.py").read_text())
    times = 0
    for file in (folder / "tandem").rglob("*.py"):
        text, count = re.subn(rf"\b{word}\b", other, file.read_text())
        file.write_text(text)
        times += count
    return times


@pytest.mark.parametrize(
    ("word", "other"), [("rsrp_dbm", "rsrp_in_dbm"), ("pairing", "pair_way")], ids=["a field", "a tag"]
)
def test_a_renamed_name_is_an_error_that_names_it(tmp_path: Path, word: str, other: str) -> None:
    assert renamed(tmp_path, word, other) > 0
    done = generated(tmp_path)
    assert done.returncode != 0
    assert word in done.stdout + done.stderr
    assert other not in done.stderr.splitlines()[-1] or word in done.stderr.splitlines()[-1]


def test_the_same_schema_makes_the_same_boards(tmp_path: Path) -> None:
    renamed(tmp_path, "a word that is nowhere", "another")
    done = generated(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
