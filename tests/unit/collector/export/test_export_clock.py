"""The clock of records: UTC by the boot's epochs, what a source says, steps, and the records of earlier boots."""

import gzip
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tandem.export.clock import PLAUSIBLE_UTC_NS, SAVE_NS, Clock, NotYet, Reading
from tandem.export.exporter import Batches, PendingManifests
from tandem.export.gateway import Answer, Later
from tandem.schema.line_protocol import parse
from tandem.schema.record import Record
from tandem.spool import Spool
from tandem_server.ingest.lines import TimeWindow, validate_batch

S = 10**9
BEGIN_NS = 1_790_000_000 * S


# A probe in a world whose time is known: boots, quartzes, clocks that are set wrong, a network that comes and goes; with the real clock,
# spool, exporter's step and the gateway's own checks. Only time, the network and the database are made up.
class World:
    """``truth``: UTC of each record by its number. ``stored``: its times and stated errors in the database, by its number."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now_ns = BEGIN_NS
        self.network = "on"
        self.truth: dict[int, int] = {}
        self.stored: dict[int, set[tuple[int, float]]] = {}
        self.boots = 0
        self._boot(0, 0.0)

    # --- the machine -----------------------------------------------------------------------------------------------------

    def _boot(self, system_error_ns: int, ppm: float) -> None:
        self.boots += 1
        self._began_ns, self._rate = self.now_ns, 1 + ppm * 1e-6
        self._system_ns = system_error_ns + self.now_ns
        boot = f"boot-{self.boots}"
        self.clock = Clock(self.folder / "boots.json", boot, lambda: self._system_ns, self.monotonic_ns)
        self.spool = Spool(self.folder / "spool", boot)
        self.clock.began(self.spool.counts().made + 1)
        self.clock.save()
        pending = PendingManifests(self.folder / "pending", self.folder / "runs")
        self.exporter = Batches(self.spool, pending, "probe-1", self.clock, self._ask, lambda: self.now_ns / S)

    def monotonic_ns(self) -> int:
        return int((self.now_ns - self._began_ns) * self._rate)

    def reboot(self, off_s: float, system_error_ns: int, ppm: float) -> None:
        self.spool.close()  # what a power cut does to the spool is tests/unit/collector/spool's; boots.json is as it was last written
        self.now_ns += int(off_s * S)
        self._boot(system_error_ns, ppm)

    def step(self, by_ns: int) -> None:
        self._system_ns += by_ns
        assert self.clock.observe() == (by_ns or None)

    def says(self, off: float, error_ms: float, lie_ns: int = 0) -> None:
        """A source vouches: off by ``off`` (-1 to 1) of its error, and by ``lie_ns``."""
        error_ns = int(error_ms * 1e6)
        mono = self.monotonic_ns()
        self.clock.take(Reading("chrony", mono, self.now_ns - mono + int(off * error_ns) + lie_ns, error_ns))
        self.clock.save()

    def run(self, seconds: int) -> None:
        """Records and attempts to send."""
        for _ in range(4):
            self.now_ns += seconds * S // 4
            self.clock.observe()
            mono = self.monotonic_ns()
            first = self.spool.counts().made + 1
            self.spool.append([Record.make("radio", {"path": "a"}, {"eci": n}, mono - n) for n in range(3)])
            self.truth |= {first + n: self.now_ns - n for n in range(3)}
            self.send()

    def send(self) -> None:
        try:
            while self.exporter.step():
                pass
        except Later:
            pass
        self.spool.flush()

    # --- the other side --------------------------------------------------------------------------------------------------

    def _ask(self, method: str, url: str, content: bytes, _headers: dict[str, str]) -> Answer:
        if self.network == "off":
            raise Later("no path works", 1.0)
        date_s = float(self.now_ns // S)
        if method == "GET":
            return Answer(200, {"ok": True}, None, date_s)
        assert url == "/v1/records"
        sifted = validate_batch(gzip.decompress(content).decode(), "probe-1", TimeWindow.at(self.now_ns, 600.0, None))
        for line in sifted.lines:
            point = parse(line)
            assert point.utc_ns is not None
            stated = float(point.fields.get("utc_error_ms", 100.0))
            self.stored.setdefault(int(point.fields["seq"]), set()).add((point.utc_ns, stated))
        if self.network == "deaf":  # stored, and the answer lost
            raise Later("timeout", 1.0)
        rejected = [{"line": n, "reason": why} for n, why in sifted.rejected]
        return Answer(200, {"accepted": len(sifted.lines), "rejected": rejected}, None, date_s)

    def quarantined(self) -> dict[int, str]:
        file = self.folder / "spool" / "quarantine" / "rejected.jsonl"
        rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        return {row["seq"]: row["reason"] for row in rows}


# --- the clock of records: UTC by the boot's epochs, what a source says, steps, and the records of earlier boots

TRUE_NS = PLAUSIBLE_UTC_NS + 50_000_000 * S
"""UTC at the beginning of the first boot."""
MS = 10**6


class Hands:
    """Both clocks of a machine, set by hand. ``offset_ns``: what the system's clock shows less CLOCK_MONOTONIC."""

    def __init__(self, offset_ns: int = TRUE_NS, monotonic_ns: int = 0) -> None:
        self.offset_ns, self.monotonic_ns = offset_ns, monotonic_ns

    def clock(self, file: Path, boot: str = "boot-1", first_seq: int | None = 1) -> Clock:
        clock = Clock(file, boot, lambda: self.offset_ns, lambda: self.monotonic_ns)
        if first_seq is not None:
            clock.began(first_seq)
        return clock

    def says(
        self,
        offset_ns: int | None = None,
        error_ns: int | None = 10 * MS,
        source: str = "chrony",
        slewing: bool = False,
    ) -> Reading:
        return Reading(source, self.monotonic_ns, self.offset_ns if offset_ns is None else offset_ns, error_ns, slewing)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "boots.json"


def test_a_step_is_told_and_moves_no_record(file):
    hands = Hands()
    clock = hands.clock(file)
    clock.take(hands.says())
    hands.monotonic_ns = 10 * S
    hands.offset_ns += 365 * 86_400 * S
    assert clock.observe() == 365 * 86_400 * S
    assert clock.observe() is None
    assert clock.utc_ns(11 * S) == TRUE_NS + 11 * S
    state = clock.state(9 * S, 11 * S)
    assert state["steps"] == [{"monotonic_ns": 10 * S, "step_s": 365 * 86_400.0}]
    assert state["system_error_ms"] == 365 * 86_400_000.0
    assert clock.state(0, 5 * S)["steps"] == []


def test_a_clock_that_is_slewed_for_long_is_followed(file):
    """chronyd without makestep: 60 s off, and CLOCK_MONOTONIC runs 8 % fast until they are made up for."""
    hands = Hands()
    clock = hands.clock(file)
    true = {}
    utc_ns, left_ns = TRUE_NS, 60 * S
    while left_ns > 0:
        true[hands.monotonic_ns] = utc_ns
        error_ns = 10 * MS + min(left_ns, left_ns // 8 + 100 * MS)
        clock.take(hands.says(utc_ns - hands.monotonic_ns, error_ns, slewing=left_ns > 10 * MS))
        utc_ns += S
        hands.monotonic_ns += S + min(left_ns, 83 * MS)
        left_ns -= min(left_ns, 83 * MS)
    clock.take(hands.says(utc_ns - hands.monotonic_ns))
    for monotonic_ns, was_ns in true.items():
        stamp = clock.stamp("boot-1", monotonic_ns)
        assert stamp.error_ms is not None
        assert abs(stamp.utc_ns - was_ns) <= stamp.error_ms * MS
    assert len(clock._this.epochs) < 80


def test_a_boot_that_never_had_a_time_lies_between_its_neighbours(file):
    hands = Hands(monotonic_ns=600 * S)
    first = hands.clock(file, "boot-1")
    first.take(hands.says())
    first.save()
    hands = Hands(TRUE_NS + 600 * S, 500 * S)  # no battery: it stands at the last shutdown; 70 s went by unseen
    hands.clock(file, "boot-2", 100).save()
    hands = Hands(TRUE_NS + 1300 * S, 0)
    third = hands.clock(file, "boot-3", 200)
    assert third.held() == [(1, 99), (100, 199), (200, None)]  # boot-1 waits for somebody to compare it with
    with pytest.raises(NotYet):
        third.stamp("boot-2", 10 * S)
    third.take(hands.says())
    assert third.held() == []
    true_ns = TRUE_NS + 670 * S + 10 * S
    stamp = third.stamp("boot-2", 10 * S)
    assert stamp.error_ms is not None
    assert abs(stamp.utc_ns - true_ns) <= stamp.error_ms * MS < 201_000 * MS
    third.save()
    assert Hands().clock(file, "boot-4", 300).stamp("boot-2", 10 * S) == stamp  # for good


def test_a_boot_that_cannot_be_placed_well_is_named_with_what_is_known(file):
    Hands(0, 500 * S).clock(file, "boot-1").save()
    hands = Hands()
    later = hands.clock(file, "boot-2", 100)
    later.take(hands.says())
    with pytest.raises(ValueError, match=r"boot-1, which began between 2025-01-01 00:00:00 UTC and 2026-08-02 .* UTC"):
        later.stamp("boot-1", 7)
    with pytest.raises(ValueError, match="boot-0"):
        later.stamp("boot-0", 7)


def test_a_time_before_2025_is_nobodys_and_ages_are_monotonic(file):
    hands = Hands(PLAUSIBLE_UTC_NS - 10 * S)
    clock = hands.clock(file)
    clock.take(hands.says())
    assert not clock.synchronised
    hands.monotonic_ns, hands.offset_ns = 10 * S, 0
    assert clock.age_s("boot-1", 4 * S) == 6.0
    assert clock.age_s("boot-0", 4 * S) is None


def test_what_the_disk_did_not_take_is_written_later_and_not_more_often_than_needed(file, monkeypatch):
    hands = Hands()
    clock = hands.clock(file)
    clock.take(hands.says())

    def refuse(_file: Path, _content: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tandem.export.clock.write_durably", refuse)
    with pytest.raises(OSError, match="No space"):
        clock.save()
    clock.keep()  # sending goes on
    assert clock.utc_ns(0) == TRUE_NS
    monkeypatch.undo()
    clock.save()
    written = file.stat().st_mtime_ns, file.read_bytes()
    hands.monotonic_ns = SAVE_NS - 1
    clock.take(hands.says())
    clock.save()
    assert (file.stat().st_mtime_ns, file.read_bytes()) == written
    hands.monotonic_ns = SAVE_NS
    clock.save()
    assert file.read_bytes() != written[1]


def test_a_damaged_file_is_kept_and_it_begins_anew(file, caplog):
    file.write_text("{")
    clock = Hands().clock(file)
    assert file.with_name("boots.json.broken").read_text() == "{"
    assert "boots.json" in caplog.text
    clock.save()
    assert file.exists()


# --- whatever clocks do: every record ends at its true time, within the error it states, once; or in quarantine with what is known

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
def test_every_record_ends_at_its_true_time_once(actions):
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


def test_held_records_hold_up_nobody(tmp_path):
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
