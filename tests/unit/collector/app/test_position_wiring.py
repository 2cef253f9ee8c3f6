"""The table [position], and position in the collector as a whole."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from doubles import Rehearsal
from good_config import GOOD

from support.fake_gpsd import FakeGpsd
from tandem.app.config import Config, ConfigError, parse
from tandem.app.daemon import hardware
from tandem.app.daemon.hardware import Hardware
from tandem.app.daemon.status_socket import ask
from tandem.experiment.base import MissingRequirementError
from tandem.mobility.detectors import Detectors
from tandem.mobility.settings import FusedSettings, Settings
from tandem.position.receiver import Receiver
from tandem.schema.line_protocol import parse as parse_line

HOME = """
[[position.home_zone]]
latitude_deg = 51.897911
longitude_deg = -8.471700
radius_m = 300
"""


def config(more: str, folder: Path = Path("/x")) -> Config:
    return parse(GOOD + more, folder / "config.toml")


def test_the_table_off_with_defaults_with_zones_and_with_a_modem():
    assert config("").position is None
    assert config('[position]\nmode = "off"\nsource = "device"\ndevice = "/dev/ttyACM0"').position is None
    position = config('[position]\nmode = "coarse"\n' + HOME * 2).position
    assert (position.source, position.host, position.port) == ("gpsd", "localhost", 2947)
    assert (position.grid_deg, position.lost_after_s) == (0.01, 5.0)
    assert [zone.radius_m for zone in position.zones] == [300, 300]
    assert "51.89" not in repr(position)
    found = config('[position]\nmode = "full"\nsource = "modem"\nmodem = "b"')
    assert [p.gnss for p in found.paths] == [False, True]


def test_a_bad_line_is_named_and_a_home_never_shown():
    table, zone = '[position]\nmode = "full"\n', "[[position.home_zone]]\n"
    for more, line, what in (
        ('[position]\nmode = "on"', 1, "'on' is none of off, coarse, full"),
        (f'{table}source = "device"', 2, "has no 'device'"),
        (f'{table}device = "/dev/x"', 2, "source is 'gpsd'"),
        (f'{table}source = "modem"\nmodem = "c"', 3, "'c' is no path with a modem; hint: known: a, b"),
        (f"{zone}longitude_deg = 8.4717", 0, "has no 'latitude_deg'"),
        (f"{zone}latitude_deg = 151.8979\nlongitude_deg = 8.4717", 1, "is private and not shown"),
        (f'{zone}latitude_deg = "51.8979"\nlongitude_deg = 8.4717', 1, "is private and not shown"),
        (f"{zone}latitude_deg = 51.8979\nlongitude_deg = 8.4717\nradius_m = 50", 3, "50 is below 100"),
        (f"{zone}latitude_deg = 51.8979\nlongitude_deg = 8.4717\nname = 5", 3, "unknown key 'name'"),
    ):
        with pytest.raises(ConfigError) as error:
            config(more)
        told = str(error.value)
        assert told.startswith(f"/x/config.toml:{len(GOOD.splitlines()) + 1 + line}: ")
        assert what in told
        assert "51.8" not in told
        assert "8.47" not in told


def receiver(wanted: Config) -> Receiver:
    return Hardware().position(wanted, *[lambda *_: None] * 5)


def test_the_key_lies_in_the_spool_and_only_with_zones(tmp_path):
    for zones in ("", HOME):
        wanted = config('[position]\nmode = "full"\n' + zones, tmp_path)
        receiver(wanted).stop()
        assert (tmp_path / "spool" / "zones.key").exists() == bool(zones)


def test_a_modems_port_is_looked_up_again_and_again(tmp_path, monkeypatch):
    program = tmp_path / "gpsd"
    program.write_text("#!/bin/sh\nexec sleep 1000\n")
    program.chmod(0o755)
    monkeypatch.setenv("TANDEM_GPSD", str(program))
    asked: list[tuple[str, str]] = []
    monkeypatch.setattr(hardware, "beside", lambda at, role: asked.append((at, role)))
    wanted = config('[position]\nmode = "full"\nsource = "modem"\nmodem = "a"', tmp_path)
    made = receiver(wanted)
    made._source.look()
    made._source.look()
    made.stop()
    assert asked == [("/dev/ttyUSB2", "nmea")] * 2


@pytest.mark.parametrize(("age_s", "moving"), [(0.1, True), (4.0, False)])
def test_gpsds_speed_decides_in_the_fused_detector_unless_it_is_too_old(tmp_path, gateway, age_s, moving):
    """In coarse mode, whose records tell no speed, from the daemon's report to the event in the database."""
    gpsd = FakeGpsd()
    collector = Rehearsal(tmp_path, gateway)
    position = config(f'[position]\nmode = "coarse"\nhost = "127.0.0.1"\nport = {gpsd.port}').position
    fused = Detectors(Settings(detector="fused"), FusedSettings(speed_start_s=1.0))
    located = replace(collector.config, position=position)
    collector.rewired(located, position=Hardware().position, detectors=lambda _config: fused).start()
    try:
        wanted, enough = ("kind=mobility_start", 1) if moving else ("position,", 4)

        def told() -> bool:
            gpsd.fix(age_s, eph=5.0, speed=8.0)
            return sum(wanted in line for line in gateway.lines.values()) >= enough

        gateway.until(told)
        (status,) = ask(tmp_path / "status.sock", {"op": "status"})
        assert collector.stop()
    finally:
        gpsd.close()
    assert status["position"]["state"] == "fix"
    assert "itude" not in json.dumps(status), "no position is ever in the status"
    points = list(map(parse_line, gateway.lines.values()))
    starts = [p for p in points if p.measurement == "event" and p.tags["kind"] == "mobility_start"]
    assert [p.fields["detail"] for p in starts] == (["by speed"] if moving else [])
    positions = [p for p in points if p.measurement == "position"]
    assert all("speed_m_per_s" not in p.fields and p.tags["mode"] == "coarse" for p in positions)


def test_a_gpsd_of_our_own_that_is_missing_is_a_lack(tmp_path, monkeypatch):
    monkeypatch.setenv("TANDEM_GPSD", "no-such-gpsd")
    wanted = config('[position]\nmode = "full"\nsource = "device"\ndevice = "/dev/x"', tmp_path)
    with pytest.raises(MissingRequirementError, match="install the package gpsd"):
        receiver(wanted)
