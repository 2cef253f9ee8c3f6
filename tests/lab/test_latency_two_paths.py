"""Latency against the real endpoint's reflector over two paths."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from real_endpoint import RealEndpoint
from run_experiment import run
from two_paths import SERVER, Lab, lab, why_not

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(why_not() is not None, reason=str(why_not())),
    pytest.mark.skipif(shutil.which("nft") is None, reason="nft is not installed"),
]


class Timed:
    def __init__(self, made: Lab, folder: Path, endpoint: RealEndpoint) -> None:
        self.lab, self.folder, self.endpoint = made, folder, endpoint
        (folder / "token").write_text(endpoint.token)

    def time(self, status: int = 0, **more: Any) -> dict[str, Any]:
        parameters = {
            "run": "run-1",
            "paths": [{"name": p, "interface": f"tmp5-{p}"} for p in "ab"],
            "server": {
                "control": f"http://{SERVER}:{self.endpoint.control_port}",
                "measurement": f"http://{SERVER}:{self.endpoint.measurement_port}",
                "token_file": str(self.folder / "token"),
            },
            "seconds": 1,
            "interval_ms": 10,
            "linger_s": 0.5,
            "settle_s": 0.2,
            "connect_timeout_s": 1,
            "control_timeout_s": 2,
            **more,
        }
        found = run(self.lab, "latency", parameters)
        assert found["status"] == status, found["failure"]
        assert "result_faults" not in found
        return found


@pytest.fixture
def timed(tmp_path: Path) -> Iterator[Timed]:
    with lab() as made:
        for name, number in (("a", 1), ("b", 2)):
            made.probe.run(f"ip route add default via 10.71.{number}.2 dev tmp5-{name} metric {number}")
        endpoint = made.server.inside(lambda: RealEndpoint(tmp_path))
        try:
            yield Timed(made, tmp_path, endpoint)
        finally:
            endpoint.close()


def stream(found: dict[str, Any], path: str, loaded: bool) -> dict[str, Any]:
    return next(s for s in found["result"]["streams"] if (s["path"], s["loaded"]) == (path, loaded))


def test_each_path_idle_and_loaded(timed):
    found = timed.time()
    assert len(found["result"]["streams"]) == 4
    for path in "ab":
        idle, loaded = stream(found, path, False), stream(found, path, True)
        assert (idle["sent"], idle["received"], idle["lost_up"], idle["lost_down"]) == (100, 100, 0, 0)
        assert 0 < idle["rtt_ms"]["p50"] < 20
        assert idle["up_variation_ms"]["p1"] >= 0
        assert loaded["load_goodput_bit_per_s"] > 10e6
        assert loaded["load_error"] is None
    clock = found["result"]["clock"]
    assert clock["absolute"] is (clock["error_ms"] is not None)
    if clock["absolute"]:  # both namespaces have one clock, so one-way times are about half the round trip
        assert -1 < stream(found, "a", False)["up_ms"]["p50"] < 20
    else:
        assert stream(found, "a", False)["up_ms"] is None
    assert found["result"]["bytes_by_path"]["a"]["sent"] == 2 * 100 * 100


def test_loss_is_told_by_its_direction(timed):
    """A quarter is lost on a's way up, a tenth on b's way down."""
    port = timed.endpoint.measurement_port
    timed.lab.server.run("nft 'add table ip t; add chain ip t i { type filter hook input priority 0; }'")
    timed.lab.server.run("nft 'add chain ip t o { type filter hook output priority 0; }'")
    timed.lab.server.run(f"nft 'add rule ip t i iifname tmp5-as udp dport {port} numgen inc mod 4 == 3 drop'")
    timed.lab.server.run(f"nft 'add rule ip t o oifname tmp5-bs udp sport {port} numgen inc mod 10 == 5 drop'")
    found = timed.time(load="none")
    a, b = stream(found, "a", False), stream(found, "b", False)
    assert (a["received"], a["lost_share"], a["lost_down"]) == (75, 0.25, 0)
    assert 23 <= a["lost_up"] <= 25  # until the last that was answered
    assert (b["received"], b["lost_up"], b["lost_down"]) == (90, 0, 10)


def test_a_path_that_is_down_is_a_stream_of_nothing(timed):
    timed.lab.probe.run("ip link set tmp5-b down")
    found = timed.time(load="none")
    assert stream(found, "a", False)["received"] == 100
    assert stream(found, "b", False)["received"] == 0
    assert stream(found, "b", False)["error"]


def test_a_reflector_that_is_silent_is_a_failure(timed):
    port = timed.endpoint.measurement_port
    timed.lab.server.run("nft 'add table ip t; add chain ip t i { type filter hook input priority 0; }'")
    timed.lab.server.run(f"nft 'add rule ip t i udp dport {port} drop'")
    found = timed.time(status=1, load="none")
    assert found["failure"] == {"reason": "no answer over any path", "retry": True}
    assert stream(found, "a", False)["lost_share"] == 1.0
    assert stream(found, "a", False)["lost_up"] is None
