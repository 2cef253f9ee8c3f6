from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from https_gateway import Gateway


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    made = Gateway(tmp_path / "gateway")
    yield made
    made.close()
