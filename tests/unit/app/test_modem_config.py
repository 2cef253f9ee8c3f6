"""``[path.modem]``: a port or a place, and the SIM that must be in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tandem.app.config import ConfigError, PathConfig, parse
from tandem.app.parts import EnvironmentLackError, PathChange
from tandem.app.real_parts import real_parts
from tandem.modem.poller import Poller

GOOD = (Path(__file__).parent / "good.toml").read_text()
FILE = Path("/etc/tandem/config.toml")
FIRST, SECOND = 'port = "/dev/ttyUSB2"', 'port = "/dev/ttyUSB6"'
SIM = "0123456789abcdef01234567"


def paths(first: str, second: str = SECOND, file: Path = FILE) -> tuple[PathConfig, ...]:
    return parse(GOOD.replace(FIRST, first).replace(SECOND, second), file).paths


def test_a_modem_is_named_by_its_port_its_place_or_its_web_server() -> None:
    first, second = paths('usb = "1-1.2:1.3"', f'port = "http://192.168.8.1"\nsim = "{SIM}"')
    assert first.modem is not None
    assert second.modem is not None
    assert (first.modem.port, first.modem.usb, first.modem.sim) == (None, "1-1.2:1.3", None)
    assert (second.modem.port, second.modem.sim) == ("http://192.168.8.1", SIM)
    assert second.modem.sim_secret == Path("/etc/tandem/sim.secret")
    assert len(paths('port = "http://192.168.8.1"', 'port = "http://192.168.8.1"')) == 2, "identical sticks"


@pytest.mark.parametrize(
    ("first", "second", "what"),
    [
        ("", SECOND, "[path.modem] has neither 'port' nor 'usb'; mend: name one"),
        (f'{FIRST}\nusb = "1-1.2"', SECOND, "both 'port' and 'usb'; mend: name one"),
        ('usb = "/dev/ttyUSB2"', SECOND, "'/dev/ttyUSB2' is no USB path; mend: its place, as in 1-1.2"),
        ('usb = "1-1.2"', 'usb = "1-1.2"', "usb '1-1.2' is another path's already; mend: give each its own"),
        (f'{FIRST}\nsim = "8935801234567890123"', SECOND, "is no hash of 24 hexadecimal digits; mend: the SIM's hash"),
        ('port = "https://192.168.8.1"', SECOND, "is not of the form http://HOST:PORT"),
    ],
)
def test_what_is_wrong_is_named_with_its_mend(first: str, second: str, what: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(what)) as caught:
        paths(first, second)
    assert re.match(r"/etc/tandem/config\.toml:\d+: ", str(caught.value))


def test_the_parts_make_a_poller_of_each_and_say_what_is_lacking(tmp_path: Path) -> None:
    events: list[object] = []
    file = tmp_path / "config.toml"
    for first in (FIRST, 'usb = "1-1.2"', f'port = "http://192.168.8.1"\nsim = "{SIM}"'):
        poller = real_parts().poller(paths(first, file=file)[0], 1.0, events.append)
        assert isinstance(poller, Poller)
        poller.stop()
    assert (tmp_path / "sim.secret").stat().st_size == 32
    watch = poller._sim
    assert watch is not None
    watch.found("f" * 24)
    assert isinstance(events[0], PathChange)
    assert (events[0].kind, events[0].path) == ("sim_mismatch", "a")
    (tmp_path / "sim.secret").write_bytes(b"x")
    with pytest.raises(EnvironmentLackError, match=r"no secret.*mend"):
        real_parts().poller(paths(f'{FIRST}\nsim = "{SIM}"', file=file)[0], 1.0, events.append)
    web = paths(FIRST, 'port = "http://192.168.8.1"\ndriver = "quectel"', file=file)
    with pytest.raises(EnvironmentLackError, match="path b: the driver 'quectel' asks an AT port"):
        real_parts().poller(web[1], 1.0, events.append)
