from __future__ import annotations

from collections.abc import Iterator

import pytest
from kit_on_rig import KitOnRig, find_influxd, kit_on_rig


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KitOnRig]:
    influxd = find_influxd()
    if influxd is None:
        pytest.skip("no influxd; ./kit setup takes it out of the distribution's package")
    with kit_on_rig(tmp_path_factory.mktemp("rig"), influxd) as running:
        yield running
