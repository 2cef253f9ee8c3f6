"""A probe in a folder."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from release_kit import Kit


@pytest.fixture
def kit(tmp_path, monkeypatch):
    monkeypatch.delenv("PYTHONPATH", raising=False)  # a release has its own folder, not the checkout's
    for name in ("opt", "root"):
        (tmp_path / name).mkdir()
    return Kit(tmp_path / "opt", tmp_path / "root")
