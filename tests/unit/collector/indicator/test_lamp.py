"""The lamp writes the kernel's LEDs, and what cannot be written is counted and told, once, and never raised."""

import json
import logging
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.waiting import until
from tandem.indicator.lamp import (
    DATA_WAITING_AFTER_S,
    FROZEN_AFTER_S,
    LOOKS_EVERY_S,
    MODEM_GONE_AFTER_S,
    NO_NETWORK_AFTER_S,
    Lamp,
    Leds,
    Player,
    Situation,
    at,
    choose,
    holding,
    missing_leds,
)
from tandem.schema.status_led import CALL, NOT_RUNNING, OFF, STATES, WELL


def lit(folder: Path) -> set[str]:
    """The channels that are lit."""
    return {led.name.split(":")[1] for led in folder.iterdir() if (led / "brightness").read_text().strip() != "0"}


def test_a_colour_is_its_channels_at_full_light_and_the_kernels_trigger_lets_go(leds):
    lamp = Lamp(Leds(leds))
    colours = {"red": "red", "yellow": "red green", "white": "red green blue", "dark": "", "magenta": "red blue"}
    for colour, channels in colours.items():
        lamp.show(colour)
        assert lit(leds) == set(channels.split())
    lamp.show("red")
    assert (lamp.failures, lamp.trouble) == (0, None)
    assert (leds / "tandem:red:status" / "trigger").read_text() == "none\n"
    assert (leds / "tandem:green:status" / "trigger").read_text() == "[none] timer default-on\n"
    assert (leds / "tandem:red:status" / "brightness").read_text() == "255\n"


def test_a_lamp_of_one_colour_is_lit_for_every_colour_and_one_led_may_stand_for_two(leds):
    lamp = Lamp(Leds(leds, only="tandem:blue:status"))
    for colour in ("red", "green", "yellow", "dark"):
        lamp.show(colour)
        assert lit(leds) == ({"blue"} if colour != "dark" else set())
    Lamp(Leds(leds, {"red": "tandem:red:status", "green": "tandem:green:status", "blue": "tandem:green:status"})).show(
        "blue"
    )
    assert lit(leds) == {"green"}


def test_a_led_that_goes_is_told_once_and_taken_again_when_it_comes_back(leds, caplog):
    caplog.set_level(logging.WARNING)
    lamp = Lamp(Leds(leds))
    lamp.show("white")
    led = leds / "tandem:red:status"
    shutil.move(led, leds.parent / "away")
    lamp.show("white")
    lamp.show("dark")
    assert lit(leds) == set()  # the others follow
    assert lamp.failures == 2
    assert lamp.trouble is not None
    assert "tandem:red:status: No such file" in lamp.trouble
    assert [r.levelname for r in caplog.records] == ["WARNING"]
    assert "; hint: " in caplog.text
    assert not led.exists()  # no file was made in its place
    shutil.move(leds.parent / "away", led)
    (led / "trigger").write_text("none [default-on]\n")
    lamp.show("red")
    assert lit(leds) == {"red"}
    assert (led / "trigger").read_text() == "none\n"
    assert lamp.trouble is None
    assert caplog.messages[1] == "status LED: is written again"


def test_a_write_that_the_kernel_refuses_is_counted(leds):
    (leds / "tandem:blue:status" / "brightness").unlink()
    (leds / "tandem:blue:status" / "brightness").symlink_to("/dev/full")
    lamp = Lamp(Leds(leds))
    lamp.show("white")
    assert lamp.failures == 1
    assert lamp.trouble is not None
    assert "No space left" in lamp.trouble
    assert (leds / "tandem:green:status" / "brightness").read_text() == "255\n"


def test_a_brightest_that_makes_no_sense_is_one_and_a_kernel_may_be_without_triggers(leds):
    (leds / "tandem:red:status" / "trigger").unlink()
    for told in ("", "0", "much"):
        (leds / "tandem:red:status" / "max_brightness").write_text(told)
        lamp = Lamp(Leds(leds))
        lamp.show("red")
        assert (leds / "tandem:red:status" / "brightness").read_text() == "1\n"
        assert lamp.failures == 0


def test_what_lacks_is_told_with_its_mend(leds):
    assert missing_leds(Leds(leds)) == []
    shutil.rmtree(leds / "tandem:green:status")
    (line,) = missing_leds(Leds(leds))
    assert "tandem:green:status" in line
    assert "; hint: the overlay gpio-led" in line


def test_the_commands_by_hand(leds, tmp_path, capsys):
    from tandem.cli.main import main

    assert main(["indicator", "list", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [state["name"] for state in told] == [state.name for state in STATES]
    assert told[0]["pattern"] == [[1000, 0]]
    assert main(["indicator", "list"]) == 0
    listed = capsys.readouterr().out
    assert all(state.do in listed for state in STATES)
    good = Path(__file__).parents[1] / "app/good.toml"
    file = tmp_path / "config.toml"
    file.write_text(good.read_text() + f'\n[status_led]\nenabled = true\nfolder = "{leds}"\n')
    assert main(["indicator", "show", "call", "--seconds", "0.05", "--config", str(file)]) == 0
    assert lit(leds) == {"red"}
    shutil.rmtree(leds)
    assert main(["indicator", "show", "call", "--seconds", "0.05", "--config", str(file)]) == 3
    assert "not below" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        main(["indicator", "show", "call", "--seconds", "nan"])
    assert ended.value.code == 2


# --- which state is shown in which situation: the gravest wins, and a frozen collector never looks well

RUNNING = Situation("running")
HOUR_S = 3600.0

SITUATIONS = [
    (RUNNING, "well"),
    (replace(RUNNING, measuring=True), "measuring"),
    (Situation("starting"), "starting"),
    (Situation("stopping"), "stopping"),
    (Situation("ended"), "not-running"),
    (replace(RUNNING, unsent_s=DATA_WAITING_AFTER_S), "data-waiting"),
    (replace(RUNNING, unsent_s=DATA_WAITING_AFTER_S - 1), "well"),
    (replace(RUNNING, no_network_s=NO_NETWORK_AFTER_S), "no-network"),
    (replace(RUNNING, no_network_s=NO_NETWORK_AFTER_S - 1), "well"),
    (replace(RUNNING, modem_gone_s=MODEM_GONE_AFTER_S), "call"),
    (replace(RUNNING, modem_gone_s=MODEM_GONE_AFTER_S - 1), "well"),
    (replace(RUNNING, disk_low=True), "call"),
    (replace(RUNNING, undervoltage=True), "charge"),
    (replace(RUNNING, beat_age_s=FROZEN_AFTER_S), "not-running"),
    (replace(RUNNING, beat_age_s=FROZEN_AFTER_S - 1), "well"),
    (replace(RUNNING, measuring=True, unsent_s=3 * HOUR_S), "data-waiting"),
    (replace(RUNNING, no_network_s=HOUR_S, unsent_s=3 * HOUR_S), "no-network"),
    (replace(RUNNING, no_network_s=HOUR_S, modem_gone_s=HOUR_S), "call"),
    (replace(RUNNING, modem_gone_s=HOUR_S, undervoltage=True, disk_low=True), "charge"),
    (replace(RUNNING, undervoltage=True, beat_age_s=HOUR_S), "not-running"),
    (Situation("stopping", undervoltage=True), "stopping"),
    (Situation("stopping", beat_age_s=HOUR_S), "stopping"),
]


def test_each_situation_has_its_state_and_every_state_but_off_its_situation():
    assert [(situation, choose(situation).name) for situation, _ in SITUATIONS] == SITUATIONS
    assert {name for _, name in SITUATIONS} == {state.name for state in STATES} - {"off"}


seconds = st.none() | st.floats(0, 1e7)
situations = st.builds(
    Situation,
    st.sampled_from(("starting", "running", "stopping", "ended")),
    st.floats(0, 1e7),
    st.booleans(),
    st.booleans(),
    seconds,
    seconds,
    seconds,
    st.booleans(),
)


@given(situations)
def test_the_gravest_of_what_holds_is_shown(situation):
    held = holding(situation)
    assert held == sorted(held, key=STATES.index)
    assert choose(situation) is held[0]
    frozen = situation.phase == "running" and situation.beat_age_s >= FROZEN_AFTER_S
    assert (choose(situation) is NOT_RUNNING) == (situation.phase == "ended" or frozen)
    assert choose(situation).blinks or choose(situation) is NOT_RUNNING
    if choose(situation) is WELL:
        assert situation.phase == "running"
        assert not any((situation.undervoltage, situation.disk_low, situation.measuring))


# --- a state is played as its pattern says, with no more writes than edges; what is chosen anew is shown at once


class Shown:
    """A lamp that remembers, and lets a test wait for a colour."""

    def __init__(self) -> None:
        self.colours: list[str] = []
        self.show = self.colours.append

    def wait_for(self, *colours: str) -> None:
        """Until these came last, in this order."""
        until(lambda: tuple(self.colours[-len(colours) :]) == colours, lambda: self.colours)


def test_what_is_chosen_anew_is_shown_at_once_and_the_end_is_steady():
    shown, chosen = Shown(), [CALL]
    player = Player(shown, lambda: chosen[0])
    player.start()
    shown.wait_for("red", "dark", "red")
    chosen[0] = WELL
    player.wake()
    shown.wait_for("green", "dark")
    assert player.state is WELL
    player.close()
    assert shown.colours[-1] == "red"
    assert player.state is NOT_RUNNING
    assert not player.playing
    shown = Shown()
    Player(shown, lambda: WELL).close()
    assert shown.colours == ["red"], "one that never began"


def test_edge_after_edge_makes_the_pattern():
    for state in (one for one in STATES if one.blinks):
        now, played = 0, []
        while now < state.period_ms:
            lit, left_ms = at(state, now)
            assert left_ms > 0
            played.append((lit, left_ms))
            now += left_ms
        assert now == state.period_ms
        assert played == [(lit, ms) for pair in state.pattern for lit, ms in zip((True, False), pair, strict=True)]
        assert at(state, 3 * state.period_ms + 1) == (played[0][0], played[0][1] - 1)
    assert (at(NOT_RUNNING, 12345), at(OFF, 12345)) == ((True, LOOKS_EVERY_S * 1000), (False, LOOKS_EVERY_S * 1000))
