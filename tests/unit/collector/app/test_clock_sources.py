"""What chronyd, the kernel and gpsd say of the time, read; and whose word is taken."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.fake_chronyc import install, line
from support.hostile_json import any_json
from tandem.app import clock_watch as sources
from tandem.app.clock_watch import (
    PULSE_ERROR_NS,
    REPORTS,
    SERIAL_ERROR_NS,
    ClockWatch,
    KernelClock,
    Satellites,
    chrony_reading,
    kernel_reading,
    parse_tracking,
)
from tandem.export import clock as boots
from tandem.export.clock import Clock
from tandem.position.reports import Pulse, Tpv

S = 10**9
TRUE_NS = 1_790_000_000 * S
NO_KERNEL = KernelClock(synchronised=False, left_ns=0, max_error_us=16_000_000, est_error_us=16_000_000)


def test_what_chronyc_prints_is_read():
    told = parse_tracking(line(correction=-3.25))
    assert (told.reference, told.stratum, told.leap, told.correction_s) == ("C0A80001", 2, "Normal", -3.25)
    assert told.root_distance_s == pytest.approx(0.011, rel=1e-6)
    assert told.skew_ppm == 0.75
    said = chrony_reading(told, 5, 100 * S)
    assert said.offset_ns == 100 * S - 3_250_000_000
    assert said.slewing
    assert parse_tracking("506 Cannot talk to daemon\n") is None


def test_when_chronyd_does_not_vouch():
    for changes in (
        {"leap": "Not synchronised"},
        {"reference": "00000000"},
        {"reference": sources.LOCAL_REFERENCE},
        {"stratum": 0},
        {"dispersion": 1.5},
        {"dispersion": -1.5},
    ):
        assert chrony_reading(parse_tracking(line(**changes)), 0, 0) is None, changes


def test_a_chronyd_that_answers_one_that_does_not_and_none_at_all(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert sources.ask_chrony(60.0) is None
    install(tmp_path, line())
    assert sources.ask_chrony(60.0) == FOLLOWS
    install(tmp_path, "506 Cannot talk to daemon", 1)
    assert sources.ask_chrony(60.0) is None


# --- gpsd ----------------------------------------------------------------------------------------------------------------


def fixes(sky: Satellites, count: int, late_ns: Callable[[int], int], start: int = 0) -> list[object]:
    """``count`` reports, one a second, each ``late_ns`` after the second that it names."""
    said = []
    for n in range(start, start + count):
        arrived = n * S + late_ns(n)
        said.append(sky.heard(Tpv(3, "/dev/x", TRUE_NS + n * S), arrived, 0))
    return said


def test_a_receiver_is_believed_when_its_reports_agree_and_the_least_delayed_counts():
    said = fixes(Satellites(), REPORTS + 2, lambda n: 100_000_000 + 30_000_000 * (n % 3))
    assert said[: REPORTS - 1] == [None] * (REPORTS - 1)
    last = said[-1]
    assert last.offset_ns == TRUE_NS - 100_000_000
    assert last.error_ns == SERIAL_ERROR_NS


def test_a_receiver_that_has_no_fix_jumps_or_lost_weeks_is_not_believed():
    sky = Satellites()
    assert fixes(sky, REPORTS, lambda _n: 0)[-1] is not None
    assert sky.heard(Tpv(1, "/dev/x", TRUE_NS + 20 * S), 20 * S, 0) is None
    assert fixes(sky, 1, lambda _n: 0, start=21) == [None]
    assert fixes(sky, REPORTS, lambda _n: 3 * S, start=22)[: REPORTS - 1] == [None] * (REPORTS - 1)
    sky = Satellites()
    said = [sky.heard(Tpv(3, "/dev/x", 10**18 + n * S), n * S, 0) for n in range(20)]
    assert said == [None] * 20


def test_a_pulse_is_exact_once_the_sentences_say_which_second_it_was():
    sky = Satellites()
    system_ns = TRUE_NS + 7 * S  # the system's clock is 7 s fast
    pulse = Pulse("PPS", "/dev/x", TRUE_NS + 9 * S, system_ns + 9 * S + 1234)
    assert sky.heard(pulse, 9 * S, system_ns) is None
    fixes(sky, 10, lambda _n: 200_000_000)
    said = sky.heard(pulse, 9 * S + 300_000_000, system_ns)
    assert (said.offset_ns, said.error_ns) == (TRUE_NS - 1234, PULSE_ERROR_NS)
    another = Pulse("PPS", "/dev/x", TRUE_NS + 99 * S, system_ns + 9 * S)
    assert sky.heard(another, 9 * S + 400_000_000, system_ns) is None


# --- who is asked --------------------------------------------------------------------------------------------------------


FOLLOWS = parse_tracking(line())
LOST = parse_tracking(line(leap=sources.UNSYNCHRONISED))
DISCIPLINED = KernelClock(True, 0, 8_000, 500)


@pytest.mark.parametrize(
    ("source", "told", "state", "taken", "why"),
    [
        ("auto", FOLLOWS, NO_KERNEL, "chrony", None),
        ("auto", None, DISCIPLINED, "kernel", None),
        # chronyd knows better than the flag that it has not cleared yet
        ("auto", LOST, DISCIPLINED, None, "follows no server"),
        ("auto", None, NO_KERNEL, None, 'source = "system"'),
        ("chrony", None, DISCIPLINED, None, "no chronyd"),
        ("kernel", FOLLOWS, NO_KERNEL, None, "not disciplined"),
        ("gpsd", FOLLOWS, DISCIPLINED, None, "gpsd"),
        ("system", None, NO_KERNEL, "system", None),
    ],
)
def test_whose_word_is_taken(tmp_path, source, told, state, taken, why):
    clock = Clock(tmp_path / "boots.json", "boot-1", lambda: TRUE_NS, lambda: 5 * S)
    ClockWatch(clock, source, lambda: told, lambda: state, lambda: TRUE_NS, lambda: 5 * S).look()
    assert (None if clock.reading is None else clock.reading.source) == taken
    assert (why or "") in str(clock.trouble)
    assert (clock.trouble is None) == (why is None)
    error_ms = clock.state()["error_ms"]
    assert (error_ms is None) == (taken in (None, "system"))
    assert error_ms is None or error_ms > 0


# --- boots.json ----------------------------------------------------------------------------------------------------------

NS = st.integers(-(2**63), 2**63 - 1)
NAME = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)


@st.composite
def boot(draw: st.DrawFn) -> boots.Boot:
    starts = sorted(draw(st.sets(NS, max_size=4)))
    epochs = []
    for start in starts:
        first, until = sorted((draw(NS), draw(NS)))
        error = draw(st.none() | st.integers(0, 2**63 - 1))
        epochs.append(
            boots.Epoch(start, first, until, draw(NS), error, draw(NAME), *(draw(st.booleans()) for _ in range(3)))
        )
    return boots.Boot(draw(NAME), draw(st.none() | NS), draw(NS), draw(st.none() | NS), epochs)


@given(st.lists(boot(), max_size=5, unique_by=lambda b: b.id))
def test_boots_are_read_as_they_were_written(known):
    assert boots.read(boots.write(known)) == known


KEYS = ["format", "boots", "id", "epochs", "first_seq", "seen_ns", "system_offset_ns", "error_ns", "used", "source"]


@given(st.binary(max_size=200) | any_json(keys=st.sampled_from(KEYS)).map(lambda told: json.dumps(told).encode()))
@example(b'{"format": NaN, "boots": [NaN]}')
def test_no_bytes_break_the_reader_of_boots(noise):
    with pytest.raises(boots.BootsError):
        boots.read(noise)


def test_boots_that_cannot_be_are_refused():
    one = boots.Epoch(5, 0, 9, TRUE_NS, 10, "chrony")
    alone = [boots.Boot("boot-1", None, 0, None, [])]
    wrong = (
        ([one, one], "out of order"),
        ([replace(one, first_ns=10)], "ends before"),
        ([replace(one, error_ns=-1)], "below 0"),
    )
    for content, what in (
        (b'{"format": "another", "boots": []}', "format is 'another'"),
        (boots.write(alone * 2), "there twice"),
        *((boots.write([replace(alone[0], epochs=epochs)]), what) for epochs, what in wrong),
    ):
        with pytest.raises(boots.BootsError, match=what):
            boots.read(content)


@given(st.lists(boot(), min_size=1, max_size=3, unique_by=lambda b: b.id), st.data())
def test_a_damaged_file_is_read_or_refused(known, data):
    content = bytearray(boots.write(known))
    content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = boots.read(bytes(content))
    except boots.BootsError:
        return
    assert all(isinstance(b.seen_ns, int) for b in found)


def test_the_kernels_word():
    good = KernelClock(True, 2_000_000, 8_000, 0)
    said = kernel_reading(good, 5, TRUE_NS)
    assert (said.offset_ns, said.error_ns) == (TRUE_NS + 2_000_000, sources.FLOOR_NS)
    assert kernel_reading(NO_KERNEL, 5, TRUE_NS) is None
    assert kernel_reading(KernelClock(True, 0, 1_500_000, 0), 5, TRUE_NS) is None
    assert sources.ask_kernel() is not None  # this machine's own


def test_what_was_said_while_the_clock_was_set_is_not_taken(tmp_path):
    offsets = iter([TRUE_NS, TRUE_NS + S])
    clock = Clock(tmp_path / "boots.json", "boot-1", lambda: TRUE_NS, lambda: 5 * S)
    ClockWatch(clock, "chrony", lambda: FOLLOWS, lambda: None, lambda: next(offsets), lambda: 5 * S).look()
    assert clock.reading is None
