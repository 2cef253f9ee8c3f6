"""The tunnel to the hub, by real WireGuard in user space: up by itself, and up again when a path dies or the hub moves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tunnel_ends import HUB_FIRST, HUB_LATER, HUB_PORT, Tunnels, awaited, tunnels, why_not

pytestmark = [
    pytest.mark.lab,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(why_not() is not None, reason=str(why_not())),
]

OTHER = "203.0.113.11"
WITHIN_S = 420.0
"""``SILENT_S``, then at most four tries of 30 s; more than twice that on a busy machine."""


@pytest.fixture
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tunnels]:
    with tunnels(tmp_path_factory.mktemp("tunnels"), [HUB_FIRST, OTHER]) as running:
        yield running


def test_it_carries_and_outlives_a_dead_path_and_a_hub_that_moved(two: Tunnels) -> None:
    on_dead_path, of_moved_hub = two.kits
    for kit in two.kits:
        up_s = awaited(kit.answered, two.told, 120)
        print(f"{kit.name}: answered through the tunnel after {up_s:.0f} s")
        assert kit.out_of() == "path-a"
    assert of_moved_hub.endpoint() == f"{OTHER}:{HUB_PORT}"

    two.kill_path(on_dead_path, "a")
    two.move_hub(OTHER, HUB_LATER)
    of_moved_hub.hub_named(HUB_LATER)
    assert not on_dead_path.answered()
    assert not of_moved_hub.answered()

    print(f"hub moved: answered again after {awaited(of_moved_hub.answered, two.told, WITHIN_S):.0f} s")
    assert of_moved_hub.endpoint() == f"{HUB_LATER}:{HUB_PORT}"
    assert of_moved_hub.out_of() == "path-a"
    print(f"path a dead: answered again after {awaited(on_dead_path.answered, two.told, WITHIN_S):.0f} s more")
    assert on_dead_path.endpoint() == f"{HUB_FIRST}:{HUB_PORT}"
    assert on_dead_path.out_of() == "path-b"
