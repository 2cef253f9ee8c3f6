from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from https_gateway import Gateway

# The HTTPS gateway of the export tests is used here as well.
sys.path.insert(0, str(Path(__file__).parents[1] / "export"))


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    """Accepts everything, unless the test scripts it."""
    from https_gateway import Gateway

    made = Gateway(tmp_path / "gateway")
    yield made
    made.close()
