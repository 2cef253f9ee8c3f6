"""The collector's drivers at the bench's modems: two readings of the same manuals, written apart, must agree on every quantity."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from played_modems import FAMILIES, LAST, PERIOD_S, PHASES, TICK_S, Polled, phase_at, polled_modems, steps_ns

import tandem_bench.modem.families
from tandem.modem.poll import Poll
from tandem.modem.registry import drivers

pytestmark = pytest.mark.timeout(120)

FAULT_S = 1.1
SHAKEN = 2
"""Polls around the end of a fault that may find the modem in either state."""


@pytest.fixture(scope="module")
def modems(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Polled]]:
    with polled_modems(tmp_path_factory.mktemp("modems")) as running:
        yield running


@pytest.fixture(scope="module")
def journey(modems: dict[str, Polled]) -> dict[str, list[Poll]]:
    """Each modem's polls up to the last phase, which goes on while faults are played."""
    end_ns = {family: polled.epoch_ns + int((PHASES[LAST] + 1) * 1e9) for family, polled in modems.items()}
    return {
        f: p.wait(lambda made, f=f: bool(made) and made[-1].began_monotonic_ns > end_ns[f]) for f, p in modems.items()
    }


every_family = pytest.mark.parametrize("family", sorted(tandem_bench.modem.families.FAMILIES))


def test_every_family_of_the_bench_has_its_expectations_and_its_driver() -> None:
    assert set(tandem_bench.modem.families.FAMILIES) == set(FAMILIES) <= set(drivers())


@every_family
def test_auto_finds_the_driver_and_every_poll_is_on_its_due_time(journey: dict[str, list[Poll]], family: str) -> None:
    assert {poll.driver for poll in journey[family]} == {family}
    assert {poll.failure for poll in journey[family]} == {None}
    assert steps_ns(journey[family]) == {round(PERIOD_S * 1e9)}


@every_family
def test_every_quantity_is_the_timelines_at_the_moment_of_the_poll(
    modems: dict[str, Polled], journey: dict[str, list[Poll]], family: str
) -> None:
    assert [line for poll in journey[family] for line in modems[family].wrong(poll)] == []


@every_family
@pytest.mark.parametrize("phase", PHASES)
def test_every_phase_is_seen_as_what_it_is(
    modems: dict[str, Polled], journey: dict[str, list[Poll]], family: str, phase: str
) -> None:
    polled = modems[family]
    # A tick after the phase began: on a busy machine the modem's process comes to its new tick later than the clock.
    whole = [
        poll.record()
        for poll in journey[family]
        if phase_at(polled.seconds(poll.began_monotonic_ns) - TICK_S)
        == phase
        == phase_at(polled.seconds(poll.ended_monotonic_ns))
    ]
    assert len(whole) >= 3
    service = "searching" if phase == "no service" else FAMILIES[family].registered
    assert {record.fields["state"] for record in whole} == {service}
    if "SINR" in phase and "sinr_db" in FAMILIES[family].lte:
        assert {record.fields["sinr_db"] < 0 for record in whole} == {"negative" in phase}
    ecis = {record.fields.get("eci") for record in whole}
    assert (None in ecis) == (phase in ("no service", "WCDMA", "GSM"))
    assert len(ecis) == 1


@pytest.mark.parametrize(
    ("fault", "state"),
    [
        ({"fault": "hang"}, "no_answer"),
        ({"fault": "garbage"}, "no_answer"),
        ({"fault": "disappear"}, "port_lost"),
        ({"fault": "wrong_sim", "how": "pin"}, "pin"),
        ({"fault": "wrong_sim", "how": "foreign"}, "limited"),
        ({"fault": "cme_error", "code": 13}, "unknown"),
    ],
    ids=lambda value: "-".join(map(str, value.values())) if isinstance(value, dict) else "",
)
def test_a_fault_is_recorded_as_such_and_recovered_from(
    modems: dict[str, Polled], journey: dict[str, list[Poll]], fault: dict[str, object], state: str
) -> None:
    assert journey
    begun = {family: len(polled.made) for family, polled in modems.items()}
    terminals = {family: polled.port.readlink() for family, polled in modems.items()}
    for polled in modems.values():
        polled.play({**fault, "seconds": FAULT_S})
    for family, polled in modems.items():
        expected = FAMILIES[family].pin if state == "pin" else state
        well = FAMILIES[family].registered

        def over(made: list[Poll], start: int = begun[family], expected: str = expected, well: str = well) -> bool:
            states = [poll.state for poll in made[start:]]
            failed = any(p.state == expected and (p.failure is not None or expected != well) for p in made[start:])
            return failed and states[-3:] == [well] * 3 and not any(p.failure for p in made[-3:])

        made = polled.wait(over)[begun[family] :]
        # A poll in which the fault begins or ends has some of the answers.
        wrong = [line for p in made if p.reading for line in polled.wrong(p, registered=False, whole=p.state == well)]
        assert wrong == []
        assert [line for poll in made[-3:] for line in polled.wrong(poll)] == []
        ill = [poll for poll in made if poll.failure is not None or poll.state != well]
        assert len(ill) >= FAULT_S / PERIOD_S - SHAKEN, [poll.state for poll in made]
        assert {poll.state for poll in ill[1:-SHAKEN]} == {expected}, [poll.state for poll in made]
        for poll in ill:
            assert (poll.reading is None) == (poll.failure is not None)
        if "code" in fault:
            assert {poll.failure for poll in ill} == {"cme_error 13"}
        assert (polled.port.readlink() != terminals[family]) == (fault["fault"] == "disappear")
        assert steps_ns(polled.made) == {round(PERIOD_S * 1e9)}
        assert not any(poll.stale for poll in made)


def test_answers_that_come_too_late_are_nobodys(modems: dict[str, Polled], journey: dict[str, list[Poll]]) -> None:
    assert journey
    begun = {family: len(polled.made) for family, polled in modems.items()}
    for polled in modems.values():
        os.kill(polled.pid, signal.SIGSTOP)
    try:
        for family, polled in modems.items():
            polled.wait(lambda made, start=begun[family]: sum(p.failure == "no_answer" for p in made[start:]) >= 4)
    finally:
        for polled in modems.values():
            os.kill(polled.pid, signal.SIGCONT)
    for family, polled in modems.items():
        made = polled.wait(lambda made: not any(poll.failure for poll in made[-4:]))[begun[family] :]
        assert {poll.failure for poll in made} == {None, "no_answer"}
        assert [line for poll in made if poll.reading for line in polled.wrong(poll)] == []


@every_family
def test_nothing_was_out_of_range(modems: dict[str, Polled], journey: dict[str, list[Poll]], family: str) -> None:
    assert journey[family]
    assert modems[family].dropped == {}
