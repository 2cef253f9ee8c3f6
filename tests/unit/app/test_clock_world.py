"""Whatever clocks do: every record ends at its true time, within the error it states, once; or in quarantine with what is known."""

import tempfile
from pathlib import Path

from clock_world import S, World
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108  thousands of synced commits, in which the disk has no part
YEAR_NS = 365 * 86_400 * S
SECONDS = st.integers(4, 4000)
WRONG = st.sampled_from([0, -5 * YEAR_NS, -3600 * S, 30 * S, YEAR_NS])
ERROR = st.floats(1, 900)
OFF = st.floats(-1, 1)
TRUE = ("says", 0, 10)
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
@example([TRUE, ("run", 40), ("reboot", 60, -5 * YEAR_NS, 40), ("run", 400), ("step", 5 * YEAR_NS), TRUE, ("run", 4)])
@example([TRUE, ("run", 40), ("step", YEAR_NS), ("run", 40), ("lies", YEAR_NS), ("step", -YEAR_NS), TRUE, ("run", 40)])
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
