"""What has to hold of the radio and the links, for any seed."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tandem_bench.scenario import load, play
from tandem_bench.scenario.capacity import down_bit_per_s_hz, up_bit_per_s
from tandem_bench.scenario.levels import filter_share, filtered
from tandem_bench.scenario.propagation import RESOURCE_BLOCKS, antenna_gain_db, band_of, frequency_ghz, path_loss_db

RANGES = {
    # As the probe's schema has them; it cannot be imported here, the bench knows nothing of the collector.
    "rsrp_dbm": (-156, -30), "rsrq_db": (-50, 25), "sinr_db": (-40, 60), "rssi_dbm": (-130, -10), "tac": (0, 0xFFFFFF),
    "eci": (0, 2**28 - 1), "pci": (0, 503), "earfcn": (0, 65535), "band": (1, 255), "down_bit_per_s": (0, 150e6),
    "up_bit_per_s": (0, 50e6), "rtt_ms": (1, 1000), "buffer_down_bytes": (1500, 1e9), "buffer_up_bytes": (1500, 1e9),
    "loss_down": (0, 0.01), "loss_up": (0, 0.01), "speed_m_s": (0, 40),
}  # fmt: skip


@settings(max_examples=settings.default.max_examples // 4)
@given(seed=st.integers(0, 2**63 - 1), name=st.sampled_from(["commute", "still", "walk", "drive"]))
def test_every_value_in_its_range(seed, name):
    played = play(load(name, 30, seed))
    for timeline in played.operators.values():
        assert len(timeline) == 300
        for column, (low, high) in RANGES.items():
            values = timeline.columns[column]
            assert len(values) == 300
            assert all(low <= v <= high for v in values), column
        for i in range(300):
            tick = timeline.tick(i)
            assert tick["band"] == band_of(tick["earfcn"])
            assert tick["outage"] is (tick["down_bit_per_s"] == 0) or tick["sinr_db"] <= -9


@settings(max_examples=settings.default.max_examples // 4)
@given(seed=st.integers(0, 10**6))
def test_rsrq_follows_from_rsrp_and_rssi(seed):
    for timeline in play(load("drive", 30, seed)).operators.values():
        widths = {1300: 20.0, 6300: 10.0, 1850: 15.0, 3150: 20.0}
        for i in range(len(timeline)):
            tick = timeline.tick(i)
            if -140 < tick["rsrp_dbm"] < -44 and -113 < tick["rssi_dbm"] < -20:
                blocks = RESOURCE_BLOCKS[widths[tick["earfcn"]]]
                expected = 10 * math.log10(blocks) + tick["rsrp_dbm"] - tick["rssi_dbm"]
                assert abs(tick["rsrq_db"] - expected) <= 0.5 + 0.5 + 0.25 + 1e-6
                assert tick["rsrq_db"] <= -3


@given(st.floats(15, 5000), st.floats(1.01, 3), st.sampled_from(["uma", "umi"]), st.sampled_from([1300, 6300, 3150]))
def test_loss_grows_with_distance(distance, factor, kind, earfcn):
    losses = path_loss_db(kind, np.array([distance, distance * factor]), frequency_ghz(earfcn))
    assert losses[1] > losses[0]


def test_level_falls_with_distance_on_average():
    """Far from the serving site RSRP is lower, over many seeds: shadowing averages out."""
    near, far = [], []
    for seed in range(6):
        drive = load("drive", 60, seed)
        fast = tuple(p if p.activity == "still" else replace(p, speed_m_s=30.0, stop_every_s=0.0) for p in drive.phases)
        played = play(replace(drive, phases=fast))
        levels = played.operators["A"].columns
        first = levels["eci"][0]
        with_first = [v for v, e in zip(levels["rsrp_dbm"], levels["eci"], strict=True) if e == first]
        near.append(sum(with_first[:100]) / 100)
        far += with_first[-10:]
    assert sum(near) / len(near) > sum(far) / len(far) + 6


def test_antenna_is_strongest_ahead_and_even_behind():
    gains = antenna_gain_db(np.array([0.0, 35.0, -35.0, 180.0, 540.0, 360.0]))
    assert gains[0] == gains[5] == 15.0
    assert gains[1] == gains[2] == pytest.approx(12.0)
    assert gains[3] == gains[4] == -5.0


@given(st.lists(st.floats(-30, 45), min_size=2, max_size=50))
def test_rate_never_negative_and_monotonic(sinr):
    rates = down_bit_per_s_hz(np.sort(np.array(sinr)))
    assert (rates >= 0).all()
    assert (np.diff(rates) >= -1e-12).all()
    assert rates.max() <= 2 * 5.55


@given(st.floats(60, 160), st.floats(0.1, 20), st.floats(1, 100))
def test_uplink_falls_with_loss(loss, more, blocks):
    near, far = (float(up_bit_per_s(np.array([x]), np.array([blocks]))[0]) for x in (loss, loss + more))
    assert 0 <= far <= near + 1e-6


def test_filter_halves_in_200_ms_at_k_4():
    response = filtered(np.array([0.0, 1.0, 1.0]), filter_share(4))
    assert response[2] == pytest.approx(0.5)
    assert filter_share(0) == 1.0


def test_standing_still_the_level_stands_still():
    changes = []
    for seed in range(4):
        for timeline in play(load("still", 60, seed)).operators.values():
            levels = np.array(timeline.columns["rsrp_dbm"])
            changes.append(np.abs(levels[10:] - levels[:-10]))
    together = np.concatenate(changes)
    assert (together >= 6).mean() < 0.001
    assert together.std() > 0.1, "people move about: not frozen altogether"


def test_buffers_hold_what_is_in_flight_and_more():
    for timeline in play(load("still", 60, 5)).operators.values():
        rate = max(timeline.columns["down_bit_per_s"])
        flight = rate * timeline.columns["rtt_ms"][0] / 1000 / 8
        size = timeline.columns["buffer_down_bytes"][0]
        assert size >= flight
        assert 0.3 <= size * 8 / (sum(timeline.columns["down_bit_per_s"]) / len(timeline)) <= 1.0
