"""The lamp writes the kernel's LEDs, and what cannot be written is counted and told, once, and never raised."""

import json
import logging
import shutil
from pathlib import Path

import pytest

from tandem.indicator.lamp import Lamp, Leds, lacking
from tandem.schema.status_led import STATES


def lit(folder: Path) -> set[str]:
    """The channels that are lit."""
    return {led.name.split(":")[1] for led in folder.iterdir() if (led / "brightness").read_text().strip() != "0"}


def test_a_colour_is_its_channels_at_full_light_and_the_kernels_trigger_lets_go(leds: Path) -> None:
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


def test_a_lamp_of_one_colour_is_lit_for_every_colour_and_one_led_may_stand_for_two(leds: Path) -> None:
    lamp = Lamp(Leds(leds, only="tandem:blue:status"))
    for colour in ("red", "green", "yellow", "dark"):
        lamp.show(colour)
        assert lit(leds) == ({"blue"} if colour != "dark" else set())
    Lamp(Leds(leds, {"red": "tandem:red:status", "green": "tandem:green:status", "blue": "tandem:green:status"})).show(
        "blue"
    )
    assert lit(leds) == {"green"}


def test_a_led_that_goes_is_told_once_and_taken_again_when_it_comes_back(
    leds: Path, caplog: pytest.LogCaptureFixture
) -> None:
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
    assert "; mend: " in caplog.text
    assert not led.exists()  # no file was made in its place
    shutil.move(leds.parent / "away", led)
    (led / "trigger").write_text("none [default-on]\n")
    lamp.show("red")
    assert lit(leds) == {"red"}
    assert (led / "trigger").read_text() == "none\n"
    assert lamp.trouble is None
    assert caplog.messages[1] == "status LED: is written again"


def test_a_write_that_the_kernel_refuses_is_counted(leds: Path) -> None:
    (leds / "tandem:blue:status" / "brightness").unlink()
    (leds / "tandem:blue:status" / "brightness").symlink_to("/dev/full")
    lamp = Lamp(Leds(leds))
    lamp.show("white")
    assert lamp.failures == 1
    assert lamp.trouble is not None
    assert "No space left" in lamp.trouble
    assert (leds / "tandem:green:status" / "brightness").read_text() == "255\n"


def test_a_brightest_that_makes_no_sense_is_one_and_a_kernel_may_be_without_triggers(leds: Path) -> None:
    (leds / "tandem:red:status" / "trigger").unlink()
    for told in ("", "0", "much"):
        (leds / "tandem:red:status" / "max_brightness").write_text(told)
        lamp = Lamp(Leds(leds))
        lamp.show("red")
        assert (leds / "tandem:red:status" / "brightness").read_text() == "1\n"
        assert lamp.failures == 0


def test_what_lacks_is_told_with_its_mend(leds: Path) -> None:
    assert lacking(Leds(leds)) == []
    shutil.rmtree(leds / "tandem:green:status")
    (line,) = lacking(Leds(leds))
    assert "tandem:green:status" in line
    assert "; mend: the overlay gpio-led" in line


def test_the_commands_by_hand(leds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
