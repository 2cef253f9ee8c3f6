"""The tables ``[status_led]`` and ``[e_paper]`` of the configuration: what the kit shows to whoever carries it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tandem.indicator.lamp import CLASS, NAMES, Leds
from tandem.schema.status_led import CHANNELS
from tandem.schema.toml_keys import Key
from tandem.schema.toml_lines import Place

_LED = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9:._-]{0,62}\Z")
LONGEST_CALL = 40
_LINES = ("data_command", "reset", "busy")


def _led(value: str) -> str | None:
    return None if _LED.match(value) else f"{value!r} is no name of an LED"


def _device(value: str) -> str | None:
    return None if value.startswith("/dev/") and len(value) > 5 else f"{value!r} is no device"


def _call(value: str) -> str | None:
    return None if len(value) <= LONGEST_CALL else f"{len(value)} letters are more than the paper has room for"


def _line(name: str, default: int) -> Key:
    return Key(name, "whole", "the GPIO's number, 0 to 63", default=default, minimum=0, maximum=63)


LED_KEYS: tuple[Key, ...] = (
    Key("enabled", "truth", "true or false", default=False),
    *(Key(c, "text", f"as ls {CLASS} shows it, as in {NAMES[c]}; or give only", check=_led) for c in CHANNELS),
    Key("only", "text", "the LED of a kit with one colour, instead of red, green and blue", check=_led),
    Key("folder", "text", "where the kernel's LEDs are", default=str(CLASS)),
)
PAPER_KEYS: tuple[Key, ...] = (
    Key("enabled", "truth", "true or false", default=False),
    Key("call", "text", "whom to call, as in: Ana, 555 0100; at most 40 characters", default=None, check=_call),
    Key("spi", "text", "as in /dev/spidev0.0", default="/dev/spidev0.0", check=_device),
    Key("gpio", "text", "as in /dev/gpiochip0", default="/dev/gpiochip0", check=_device),
    _line("data_command", 25),
    _line("reset", 23),
    _line("busy", 24),
)
_DEFAULTS = {key.name: key.default for key in PAPER_KEYS}


@dataclass(frozen=True, slots=True)
class StatusLedConfig:
    """Which of the kernel's LEDs make the lamp."""

    leds: Leds


@dataclass(frozen=True, slots=True)
class EPaperConfig:
    """``call``: whom to call, empty when nobody is named; the GPIOs are lines of ``gpio``."""

    call: str
    spi: str
    gpio: str
    data_command: int
    reset: int
    busy: int


Fail = Callable[[Place, str, str], Exception]


def status_led_config(values: dict[str, Any], here: Path, fail: Fail) -> StatusLedConfig | None:
    """The checked table; None when it is off. ``here``: the folder that relative names start from."""
    place: Place = ("status_led",)
    given = {channel: values[channel] for channel in CHANNELS if values[channel] is not None}
    if values["only"] is not None and given:
        first = next(iter(given))
        raise fail((*place, first), f"status_led.{first} and status_led.only are both given", "keep one of them")
    if not values["enabled"]:
        return None
    return StatusLedConfig(Leds(here / values["folder"], {**NAMES, **given}, values["only"]))


def e_paper_config(values: dict[str, Any], fail: Fail) -> EPaperConfig | None:
    """The checked table; None when it is off."""
    taken: dict[int, str] = {}
    for name in _LINES:
        other = taken.setdefault(values[name], name)
        if other != name:
            given = name if values[name] != _DEFAULTS[name] else other
            raise fail(("e_paper", given), f"e_paper.{other} and {name} are both GPIO {values[name]}", "one GPIO each")
    if not values["enabled"]:
        return None
    return EPaperConfig(values["call"] or "", **{name: values[name] for name in ("spi", "gpio", *_LINES)})
