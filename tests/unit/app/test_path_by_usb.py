"""A path that is named by its USB place: the configuration, and the seam that asks for its interface."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tandem.app.config import ConfigError, parse
from tandem.app.real_parts import real_parts

GOOD = (Path(__file__).parent / "good.toml").read_text()
FILE = Path("/etc/tandem/config.toml")


def by_usb(place: str) -> str:
    return GOOD.replace('interface = "wwan1"', f'usb = "{place}"')


@pytest.mark.parametrize("place", ["1-1.2", "3-4", "1-1.2.3:1.4"])
def test_a_path_is_named_by_its_usb_place(place: str) -> None:
    config = parse(by_usb(place), FILE)
    assert [(p.interface, p.usb) for p in config.paths] == [("wwan0", None), (None, place)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (by_usb("usb1"), r":25: path.usb: 'usb1' is no USB path; mend: the USB place"),
        (GOOD.replace('interface = "wwan1"', ""), r"\[path\] has neither 'interface' nor 'usb'; mend: give one"),
        (GOOD.replace('interface = "wwan1"', 'interface = "wwan1"\nusb = "1-1"'), r":26: \[path\] has both"),
        (by_usb("1-1").replace('interface = "wwan0"', 'usb = "1-1"'), "usb '1-1' is another path's already"),
        (GOOD.replace('gateway = "10.64.0.1"', 'gateway = "fe80::zz"'), "is no IPv6 address"),
    ],
)
def test_what_is_wrong_names_its_line(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        parse(text, FILE)


def test_the_wired_paths_ask_for_the_place_again_and_again() -> None:
    asked: list[str] = []
    names = iter(["wwan7", None, "eth3"])

    def find(place: str) -> str | None:
        asked.append(place)
        return next(names)

    config = parse(by_usb("1-1.2"), FILE)
    paths = real_parts(find).paths(replace(config, paths=config.paths[1:]))
    (path,) = paths._paths.paths  # type: ignore[attr-defined]  the real part behind the seam
    assert paths.interfaces == {"b": None}
    assert [path.find() for _ in range(3)] == ["wwan7", None, "eth3"]
    assert asked == ["1-1.2"] * 3
