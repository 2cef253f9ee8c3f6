"""However the collector ended, the unit leaves the LED steady; while the machine goes down the kernel blinks "stopping"."""

import shutil
from pathlib import Path

import pytest

from support.service_stop_post import UNIT, stopped
from tandem.indicator.lamp import NAMES
from tandem.schema.status_led import COLOURS, NOT_RUNNING, STOPPING


@pytest.fixture
def leds(tmp_path: Path) -> Path:
    """All lit by the collector, in white."""
    for name in NAMES.values():
        led = tmp_path / "leds" / name
        led.mkdir(parents=True)
        (led / "max_brightness").write_text("255\n")
        (led / "brightness").write_text("255\n")
        (led / "trigger").write_text("[none] timer\n")
    return tmp_path / "leds"


def read(leds: Path, file: str) -> dict[str, str]:
    return {channel: (leds / name / file).read_text().strip() for channel, name in NAMES.items()}


@pytest.mark.parametrize("machine", ["running", "degraded", ""])
def test_the_light_is_steady_in_the_colour_of_not_running(leds: Path, machine: str) -> None:
    stopped(leds, machine)
    wanted = COLOURS[NOT_RUNNING.colour]
    assert read(leds, "brightness") == {channel: "255" if channel in wanted else "0" for channel in NAMES}
    assert set(read(leds, "trigger").values()) == {"none"}


def test_while_the_machine_goes_down_the_kernel_blinks_as_stopping(leds: Path) -> None:
    for name in NAMES.values():
        for file in ("delay_on", "delay_off"):  # the kernel makes them with the trigger
            (leds / name / file).touch()
    stopped(leds, "stopping")
    ((lit, dark),) = STOPPING.pattern
    assert COLOURS[STOPPING.colour] == set(NAMES)
    assert set(read(leds, "trigger").values()) == {"timer"}
    assert set(read(leds, "delay_on").values()) == {str(lit)}
    assert set(read(leds, "delay_off").values()) == {str(dark)}


def test_a_lone_led_of_another_colour_is_lit_and_without_leds_nothing_is_made(leds: Path) -> None:
    shutil.rmtree(leds / NAMES["red"])
    shutil.rmtree(leds / NAMES["green"])
    (leds / NAMES["blue"] / "brightness").write_text("0\n")
    stopped(leds)
    assert (leds / NAMES["blue"] / "brightness").read_text() == "255\n"
    shutil.rmtree(leds / NAMES["blue"])
    stopped(leds)
    leds.rmdir()
    stopped(leds)
    assert not leds.exists()


def test_it_runs_as_root_and_its_failure_is_no_failure_of_the_service() -> None:
    assert "\nExecStopPost=-+/bin/sh " in UNIT.read_text()
