from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from https_gateway import Gateway


@pytest.fixture
def gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gateway]:
    monkeypatch.setattr("tandem.export.paths.FIRST_S", 0.02)  # what waits longer is tried in test_export_paths.py
    made = Gateway(tmp_path / "gateway")
    yield made
    made.close()
