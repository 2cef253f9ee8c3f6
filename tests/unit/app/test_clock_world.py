"""Whatever clocks do: every record ends at its true time, within the error it states, once; or in quarantine with what is known."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from clock_world import S, World
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108  thousands of synced commits, in which the disk has no part
YEAR_NS = 365 * 86_400 * S
SECONDS = st.integers(4, 4000)
WRONG = st.sampled_from([0, -5 * YEAR_NS, -3600 * S, 30 * S, YEAR_NS])
ERROR = st.floats(1, 900)
OFF = st.floats(-1, 1)
ACTIONS = st.one_of(
    st.tuples(st.just("run"), SECONDS),
    st.tuples(st.just("says"), OFF, ERROR),
    st.tuples(st.just("says"), OFF, ERROR),
    st.tuples(st.just("lies"), st.sampled_from([YEAR_NS, 4000 * S])),
    st.tuples(st.just("step"), WRONG),
    st.tuples(st.just("network"), st.sampled_from(["on", "off", "deaf"])),
    st.tuples(st.just("reboot"), st.floats(1, 20_000), WRONG, st.floats(-60, 60)),
)


def act(world: World, action: tuple) -> None:
    match action:
        case "run", seconds:
            world.run(seconds)
        case "says", off, error_ms:
            world.says(off, error_ms)
        case "lies", by_ns if (
            by_ns >= YEAR_NS or world.network == "on"
        ):  # a little lie that nobody hears of, nobody finds out
            world.says(0.0, 1.0, by_ns)
            world.run(4)
        case "step", by_ns:
            world.step(by_ns)
        case "network", state:
            world.network = state
        case "reboot", off_s, wrong_ns, ppm:
            world.reboot(off_s, wrong_ns, ppm)


def judge(world: World) -> None:
    quarantined = world.quarantined()
    counts = world.spool.counts()
    assert (counts.pending, counts.dropped) == (0, 0)
    for seq, true_ns in world.truth.items():
        times = world.stored.get(seq, set())
        assert len({utc_ns for utc_ns, _ in times}) == (seq not in quarantined), (seq, times, quarantined.get(seq))
        for utc_ns, stated_ms in times:
            assert abs(utc_ns - true_ns) <= stated_ms * 1.001e6 + 1000, (seq, (utc_ns - true_ns) / S, stated_ms)
    assert all("never synchronised" in reason for reason in quarantined.values()), quarantined


@settings(suppress_health_check=list(HealthCheck))
@example([("run", 4), ("lies", 4000 * S), ("reboot", 3940.0, 0, 0.0)])  # found once
@given(st.lists(ACTIONS, max_size=14))
def test_every_record_ends_at_its_true_time_once(actions: list[tuple]) -> None:
    with tempfile.TemporaryDirectory(prefix="tandem-clock-", dir=MEMORY) as folder:
        world = World(Path(folder))
        for action in actions:
            act(world, action)
        # In the end somebody tells the truth, and the network is there.
        world.network = "on"
        world.says(0.5, 20)
        world.run(8)
        world.now_ns += 3 * S
        world.send()
        judge(world)
        world.spool.close()


@pytest.mark.parametrize("system_error_ns", [-5 * YEAR_NS, YEAR_NS])
def test_a_probe_that_boots_at_the_wrong_time_and_is_set_later(tmp_path: Path, system_error_ns: int) -> None:
    world = World(tmp_path)
    world.says(0, 10)
    world.run(40)
    world.reboot(60, system_error_ns, 40)
    world.run(400)
    assert set(world.stored) == set(range(1, 13))  # of this boot nothing, of the one before all
    world.step(-system_error_ns)
    world.says(0, 10)
    world.run(4)
    judge(world)
    assert len(world.stored) == 36
    world.spool.close()


def test_a_clock_that_jumps_a_year_ahead_in_mid_recording(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.says(0, 10)
    world.run(40)
    world.step(YEAR_NS)
    world.run(40)  # nobody says that it is right: times go on as before
    assert len(world.stored) == 24
    world.says(0, 10, YEAR_NS)  # and now somebody does: the server does not agree
    world.run(40)
    assert len(world.stored) == 24
    assert world.quarantined() == {}
    world.step(-YEAR_NS)
    world.says(0, 10)
    world.run(40)
    judge(world)
    assert len(world.stored) == 48
    world.spool.close()


def test_held_records_hold_up_nobody(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.says(0, 10)
    world.network = "off"
    world.run(3000)
    world.network = "on"
    world.send()
    world.network = "off"
    world.run(3000)
    world.reboot(60, 0, 0)
    world.run(3000)
    world.network = "on"
    world.send()
    assert sorted(world.stored) == list(range(1, 25))
    assert world.exporter.holding
    assert world.exporter.step() == 0  # and does not spin
    world.spool.close()
