"""The tunnel to the hub, by real WireGuard in user space: up by itself, and up again when a path dies."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tunnel_ends import Tunnel, awaited, tunnels, why_not

pytestmark = [
    pytest.mark.lab,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(why_not() is not None, reason=str(why_not())),
]

WITHIN_S = 420.0
"""``SILENT_S``, then at most four tries of 30 s; more than twice that on a busy machine."""


@pytest.fixture
def tunnel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tunnel]:
    with tunnels(tmp_path_factory.mktemp("tunnels")) as running:
        yield running


def test_it_carries_and_outlives_a_dead_path(tunnel: Tunnel) -> None:
    """A hub that moved: tests/system/test_provisioned.py."""
    kit = tunnel.kit
    up_s = awaited(kit.answered, tunnel.told, 120)
    assert kit.out_of() == "path-a"
    tunnel.kill_path("a")
    assert not kit.answered()
    again_s = awaited(kit.answered, tunnel.told, WITHIN_S)
    print(f"answered through the tunnel after {up_s:.0f} s, and {again_s:.0f} s after its path was dead")
    assert kit.out_of() == "path-b"
