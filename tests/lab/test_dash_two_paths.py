"""A play by Multipath TCP over two paths in namespaces: both are joined and told, each alone is what was asked for."""

import os

import pytest
from dash_server import Answer, DashEndpoint, manifest, play

from support.two_paths import PATHS, SERVER, lab, lab_with, up

pytestmark = lab_with()
SEGMENT_BYTES = 200_000


def script(target, _range):
    if target.endswith(".mpd"):
        return Answer(manifest((3_200_000,), 6, 0.5))
    return Answer(os.urandom(SEGMENT_BYTES), after_s=0.1)


@pytest.fixture
def two():
    with lab() as made:
        up(made)
        yield made


@pytest.mark.parametrize(("kind", "path", "used"), [("mptcp", "b", {"a", "b"}), ("tcp", "b", {"b"})])
def test_an_arm_uses_its_paths(two, tmp_path, kind, path, used):
    endpoint = two.server.inside(lambda: DashEndpoint(script, 262, ""))
    try:
        asked = {"host": SERVER, "enter": two.probe.enter, "kind": kind, "path": path, "paths": PATHS}
        asked |= {"startup_buffer_s": 0.5, "resume_buffer_s": 0.5}
        told = play(endpoint, tmp_path, **asked, congestion_control="reno", receive_buffer_bytes=100_000)
        opened = endpoint.opened[0]
    finally:
        endpoint.close()
    result = told["result"]
    assert told["failure"] is None
    assert (opened["kind"], opened["path"], set(opened["paths"])) == (kind, path, used)
    assert opened["options"] == {"congestion_control": "reno"}
    assert told["environment"]["receive_buffer_bytes"] == 200_000  # as the kernel counts
    assert not result["fallback"]
    assert {subflow["path"] for subflow in result["subflows"]} == used
    assert set(result["bytes_by_path"]) == used
    assert sum(subflow["bytes"] for subflow in result["subflows"]) > 6 * SEGMENT_BYTES
    last = told["segments"][-1]
    assert set(last["shares"]) == used
    assert sum(last["shares"].values()) == pytest.approx(1)
    assert result["bytes"] == 6 * SEGMENT_BYTES
    recorded = [record for record in told["records"] if record.measurement == "dash_segment"]
    assert [record.fields["bytes"] for record in recorded] == [SEGMENT_BYTES] * 6
    assert recorded[-1].fields["primary_share"] == pytest.approx(last["shares"][path], abs=0.001)
    watched = [record for record in told["records"] if record.measurement == "dash_playback"]
    assert [watched[0].fields["state"], watched[-1].fields["state"]] == ["starting", "ended"]
    assert watched[-1].fields["played_s"] == 3
    assert max(record.fields["buffer_level_ms"] for record in watched) >= 500
    (play_,) = [record for record in told["records"] if record.measurement == "dash"]
    assert (play_.fields["whole"], play_.fields["segments"], play_.tags["rule"]) == (True, 6, "dynamic")
    assert play_.fields["startup_delay_ms"] == pytest.approx(result["startup_delay_ms"], abs=0.001)
    assert {(record.tags["kind"], record.tags["path"]) for record in told["records"]} == {(kind, path)}
    arms = {(sample["connection"]["kind"], sample["connection"]["path"]) for sample in told["samples"]}
    assert arms == {(kind, path)}
