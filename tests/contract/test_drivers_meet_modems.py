"""The collector's drivers at the bench's modems: two readings of the same manuals, written apart, must agree on every quantity."""

import os
import signal
from pathlib import Path

import pytest
from modems_on_a_clock import BENCH, FAMILIES, LAST, PHASES, TICKS, VirtualModem, phase_at, polled_modems

from support.modem_on_fake_clock import UNHEARD, write_timeline
from tandem.modem.families import drivers
from tandem.modem.poll import Poll
from tandem_bench.modem.faults import Fault
from tandem_bench.modem.timeline import read

PERIOD_S = 0.25
every_family = pytest.mark.parametrize("family", sorted(BENCH))


@pytest.fixture
def modem(family: str, tmp_path: Path) -> VirtualModem:
    return VirtualModem(family, read(write_timeline(tmp_path / "t.jsonl", TICKS, usual=UNHEARD)))


def test_every_family_of_the_bench_has_its_expectations_and_its_driver():
    assert set(BENCH) == set(FAMILIES) <= set(drivers())


@every_family
def test_every_quantity_is_the_timelines_at_the_moment_of_the_poll_and_every_phase_is_seen(modem, family):
    polls = []
    while modem.now_s < PHASES[LAST] + 2:
        polls.append(modem.poll())
        modem.advance(polls[-1].began_monotonic_ns / 1e9 + PERIOD_S)
    assert {(poll.driver, poll.failure) for poll in polls} == {(family, None)}
    assert [line for poll in polls for line in modem.wrong(poll)] == []
    for phase in PHASES:
        whole = [
            poll.record()
            for poll in polls
            if {phase_at(ns / 1e9) for ns in (poll.began_monotonic_ns, poll.ended_monotonic_ns)} == {phase}
        ]
        assert len(whole) >= 3
        service = "searching" if phase == "no service" else FAMILIES[family].registered
        assert {record.fields["state"] for record in whole} == {service}
        if "SINR" in phase and "sinr_db" in FAMILIES[family].lte:
            assert {record.fields["sinr_db"] < 0 for record in whole} == {"negative" in phase}
        ecis = {record.fields.get("eci") for record in whole}
        assert (None in ecis) == (phase in ("no service", "WCDMA", "GSM"))
        assert len(ecis) == 1


@every_family
def test_what_a_modem_says_of_its_sim_and_its_errors_is_recorded_as_such(modem, family):
    modem.advance(PHASES[LAST] + 1)
    for fault, state, failure in (
        (Fault("wrong_sim", 2.0, "pin"), FAMILIES[family].pin, None),
        (Fault("wrong_sim", 2.0, "foreign"), "limited", None),
        (Fault("cme_error", 2.0, code=13), "unknown", "cme_error 13"),
    ):
        modem.play(fault)
        ill = [modem.poll() for _ in range(3)]
        assert {(poll.state, poll.failure, poll.reading is None) for poll in ill} == {
            (state, failure, failure is not None)
        }
        assert [line for poll in ill if poll.reading for line in modem.wrong(poll, registered=False)] == []
        modem.advance(modem.now_s + 2.5)
        well = modem.poll()
        assert (well.state, well.failure, modem.wrong(well)) == (FAMILIES[family].registered, None, [])


def test_what_silences_a_process_is_recorded_as_such_and_recovered_from(tmp_path):
    """Hung, babbling, off the bus, stopped: never a wrong quantity, whatever of an answer came late or in pieces."""
    with polled_modems(tmp_path, 2 * PERIOD_S) as modems:

        def well(poll: Poll) -> bool:
            return poll.failure is None

        for fault, failure in (
            ("hang", "no_answer"),
            ("garbage", "no_answer"),
            ("disappear", "port_lost"),
            (None, "no_answer"),
        ):
            begun = [polled.until(well) for polled in modems]
            terminals = [polled.port.readlink() for polled in modems]
            for polled in modems:
                if fault is None:
                    os.kill(polled.process.pid, signal.SIGSTOP)
                else:
                    polled.wish(fault=fault, seconds=1.5)
            begun = [p.until(lambda poll, f=failure: poll.failure == f, n) for p, n in zip(modems, begun, strict=True)]
            for polled in modems if fault is None else ():
                os.kill(polled.process.pid, signal.SIGCONT)
            for polled, count, terminal in zip(modems, begun, terminals, strict=True):
                polled.until(well, count)
                assert (polled.port.readlink() != terminal) == (fault == "disappear")
        truth = {
            polled.family: VirtualModem(polled.family, read(tmp_path / "timeline.jsonl")).poll() for polled in modems
        }
        for polled in modems:
            assert {poll.failure for poll in polled.made} <= {None, "no_answer", "port_lost"}
            readings = {poll.reading for poll in polled.made if poll.reading is not None}
            assert readings == {truth[polled.family].reading}
