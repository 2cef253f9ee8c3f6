"""The configuration: what is taken, and for everything else the line and the hint; and the parts that are made of its paths."""

import re
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from good_config import FILE, GOOD, good, wrongly_told
from hypothesis import given
from hypothesis import strategies as st

from support.hostile_json import said
from tandem.app.config import ConfigError, load, parse
from tandem.app.config_schema import PathConfig, PlanConfig, RecoveryConfig
from tandem.app.daemon.hardware import Hardware
from tandem.app.daemon.modems import ModemActions, OnceUntilChanged, modem_poller
from tandem.app.modem_list import holder
from tandem.experiment.base import MissingRequirementError
from tandem.modem.mm_poller import ConnectedPoller
from tandem.modem.poll import NO_ANSWER, PORT_LOST, Poll
from tandem.modem.poller import Poller
from tandem.mptcp.paths import PathEvent
from tandem.schema.toml_file import line_of, places

FIRST, SECOND = 'port = "/dev/ttyUSB2"', 'port = "/dev/ttyUSB6"'
SIM = "0123456789abcdef01234567"
CONNECTION = '[path.modem.connection]\napn = "internet"'
MANAGED = f'port = "modemmanager:1-1.2"\n{CONNECTION}'


def with_modems(first: str, second: str = SECOND) -> str:
    return GOOD.replace(FIRST, first).replace(SECOND, second)


def paths(first: str, second: str = SECOND, file: Path = FILE) -> tuple[PathConfig, ...]:
    return parse(with_modems(first, second), file).paths


def by_usb(place: str) -> str:
    return GOOD.replace('interface = "wwan1"', f'usb = "{place}"')


def with_plan(lines: str) -> str:
    """The second path's table is the last before [runs]."""
    return GOOD.replace("[runs]", f"{lines}\n[runs]")


def test_a_modem_is_named_by_port_place_web_server_or_modemmanager():
    first, second = (p.modem for p in paths('usb = "1-1.2:1.3"', f'port = "http://192.168.8.1"\nsim = "{SIM}"'))
    assert (first.port, first.usb, first.sim) == (None, "1-1.2:1.3", None)
    assert (second.port, second.sim, second.sim_secret) == ("http://192.168.8.1", SIM, Path("/etc/tandem/sim.secret"))
    assert len(paths('port = "http://192.168.8.1"', 'port = "http://192.168.8.1"')) == 2, "identical sticks"
    modem = paths(FIRST, f'{MANAGED}\npin_file = "pin"\nroaming = true\nip_type = "ipv4"')[1].modem
    assert modem.port == "modemmanager:1-1.2"
    connection = modem.connection
    assert (connection.apn, connection.roaming, connection.ip_type) == ("internet", True, "ipv4")
    assert (connection.pin_file, connection.password_file) == (Path("/etc/tandem/pin"), None)
    assert connection.tried == Path("/etc/tandem/sim")


USB = 'usb = "1-1.2"'
BAD_PATHS = [
    (by_usb("usb1"), 'usb = "usb1"', "path.usb: 'usb1' is no USB path; hint: the USB place"),
    (GOOD.replace('interface = "wwan1"', ""), "[[path]]", "[path] has neither 'interface' nor 'usb'; hint: give one"),
    (GOOD.replace('interface = "wwan1"', 'interface = "wwan1"\nusb = "1-1"'), 'usb = "1-1"', "[path] has both"),
    (by_usb("1-1").replace('interface = "wwan0"', 'usb = "1-1"'), 'usb = "1-1"', "usb '1-1' is another path's already"),
    (GOOD.replace('"10.64.0.1"', '"fe80::zz"'), "fe80::zz", "is no IPv6 address"),
    (with_modems(""), "[path.modem]", "[path.modem] has neither 'port' nor 'usb'; hint: name one"),
    (with_modems(f"{FIRST}\n{USB}"), "[path.modem]", "both 'port' and 'usb'; hint: name one"),
    (with_modems('usb = "/dev/x"'), "/dev/x", "'/dev/x' is no USB path; hint: its place, as in 1-1.2"),
    (with_modems(USB, USB), USB, "usb '1-1.2' is another path's already; hint: give each its own"),
    (with_modems(f'{FIRST}\nsim = "8935801234567890123"'), "sim", "is no hash of 24 hexadecimal digits; hint: the SIM's hash"),
    (with_modems('port = "https://192.168.8.1"'), "https", "is not of the form http://HOST:PORT"),
    (with_modems(FIRST, f'{MANAGED}\nip_type = "x"'), "ip_type", "none of ipv4, ipv6, ipv4v6; hint: ipv4, ipv6 or ipv4v6"),
    (with_modems(FIRST, f'{MANAGED}\npin = "1234"'), "pin", "unknown key 'pin' in [path.modem.connection]"),
    (with_modems(FIRST, MANAGED.replace('apn = "internet"', "")), "connection", "has no 'apn'"),
    (with_modems(FIRST, f"{SECOND}\n{CONNECTION}"), "connection", "for modems that ModemManager has"),
    (with_modems(FIRST, MANAGED.replace("1-1.2", "")), "modemmanager:", "names no modem"),
    (with_modems(FIRST, f'driver = "quectel"\n{MANAGED}'), "driver", "has no driver of ours; hint: leave it out"),
    (GOOD + '\n[recovery]\nsteps = "at,restart"\n', "restart", "'restart' is no step of the recovery ladder"),
    (GOOD + "\n[recovery]\nafter_s = 1\n", "after_s", "recovery.after_s: 1 is below 5"),
    (with_plan("[path.plan]"), "[path.plan]", "[path.plan] has no 'bytes'; hint: add it: what the SIM may carry"),
    (with_plan('[path.plan]\nbytes = "10 GB"'), "10 GB", "path.plan.bytes: '10 GB' is not a whole number; hint: what the SIM may"),
    (with_plan("[path.plan]\nbytes = 9\nreset_day = 32"), "reset_day", "path.plan.reset_day: 32 is above 31"),
    (GOOD.replace('"B"', '"B"\nplan = 5'), "plan = 5", "'plan' is no table; hint: begin it with [path.plan]"),
]  # fmt: skip


def test_a_bad_line_of_a_path_is_named_with_its_hint():
    assert wrongly_told(BAD_PATHS) == []


def test_the_parts_make_a_poller_of_each_and_say_what_is_lacking(tmp_path):
    events: list[object] = []
    file = tmp_path / "config.toml"
    for first in (FIRST, USB, f'port = "http://192.168.8.1"\nsim = "{SIM}"'):
        poller = Hardware().poller(paths(first, file=file)[0], 1.0, events.append)
        assert isinstance(poller, Poller)
        poller.stop()
    assert (tmp_path / "sim.secret").stat().st_size == 32
    poller._sim.found("f" * 24)
    assert isinstance(events[0], PathEvent)
    assert (events[0].kind, events[0].path) == ("sim_mismatch", "a")
    (tmp_path / "sim.secret").write_bytes(b"x")
    with pytest.raises(MissingRequirementError, match=r"no secret.*hint"):
        Hardware().poller(paths(f'{FIRST}\nsim = "{SIM}"', file=file)[0], 1.0, events.append)
    web = paths(FIRST, 'port = "http://192.168.8.1"\ndriver = "quectel"', file=file)
    with pytest.raises(MissingRequirementError, match="path b: the driver 'quectel' asks an AT port"):
        Hardware().poller(web[1], 1.0, events.append)
    with pytest.raises(MissingRequirementError, match="path b: the driver 'hilink' asks a web server"):
        Hardware().poller(paths(FIRST, f'{SECOND}\ndriver = "hilink"', file=file)[1], 1.0, events.append)


def test_who_holds_a_port_is_named(tmp_path):
    (tmp_path / "812/fd").mkdir(parents=True)
    (tmp_path / "812/comm").write_text("ModemManager\n")
    (tmp_path / "ttyUSB2").touch()
    (tmp_path / "812/fd/7").symlink_to(tmp_path / "ttyUSB2")
    assert holder(str(tmp_path / "ttyUSB2"), tmp_path) == "ModemManager (812)"
    assert holder(str(tmp_path / "ttyUSB3"), tmp_path) is None


# --- a modem with an AT port to spare: polled there, and kept connected by ModemManager

PLACE = 'usb = "9-9.9:1.3"\n[path.modem.connection]\napn = "internet"'


def poll(failure: str | None) -> Poll:
    return Poll("b", None, "modemmanager", None, 0, 0, 1, None, failure, False, 0)


def test_its_records_and_its_connections_state_are_both_told(monkeypatch, tmp_path):
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", f"unix:path={tmp_path}/none")
    path = parse(GOOD.replace('port = "/dev/ttyUSB6"', PLACE), tmp_path / "config.toml").paths[1]
    told, changed = list[object](), threading.Condition()

    def put(thing: object) -> None:
        with changed:
            told.append(thing)
            changed.notify_all()

    poller = modem_poller(path, 0.1, put, lambda _path: None)
    assert isinstance(poller, ConnectedPoller)
    poller.start()
    try:
        with changed:
            assert changed.wait_for(lambda: len([one for one in told if isinstance(one, Poll)]) > 2, 60)
            assert changed.wait_for(lambda: any(isinstance(one, PathEvent) for one in told), 60)
    finally:
        poller.stop(60)
    assert {one.failure for one in told if isinstance(one, Poll)} == {PORT_LOST}, "one poller makes records"
    changes = [one for one in told if isinstance(one, PathEvent)]
    assert [(one.kind, one.path, one.detail) for one in changes] == [
        ("path_state", "b", "not_managed: ModemManager does not answer")
    ]
    ModemActions(path, poller).seen()


def test_what_modemmanager_lacks_is_told_once_at_each_change():
    told: list[str] = []
    once = OnceUntilChanged("b", lambda change: told.append(change.detail))
    for failure in (None, PORT_LOST, PORT_LOST, None, PORT_LOST, NO_ANSWER):
        once.polled(poll(failure))
    assert [one.partition(";")[0] for one in told] == [
        "not_managed: ModemManager has no such modem",
        "not_managed: ModemManager has no such modem",
        "not_managed: ModemManager does not answer",
    ]


def test_the_keeper_is_stopped_though_the_poller_does_not_end():
    stopped: list[str] = []

    def hang(_timeout: float) -> None:
        raise TimeoutError("still busy")

    poller, keeper = SimpleNamespace(stop=hang), SimpleNamespace(stop=lambda _timeout: stopped.append("keeper"))
    with pytest.raises(TimeoutError):
        ConnectedPoller(poller, keeper).stop(0.1)
    assert stopped == ["keeper"]


# --- the configuration: what is taken, and for everything else the line and the hint


def test_a_good_file_is_taken_with_defaults_and_with_what_it_says():
    config = parse(GOOD, FILE)
    assert [p.name for p in config.paths] == ["a", "b"]
    assert config.paths[1].modem.driver == "auto"
    assert (config.folder, config.server.token_file) == (Path("/etc/tandem"), Path("/etc/tandem/token"))
    assert (config.runs.seconds, config.runs.bytes, config.period_s, config.drain_s) == (8.0, None, 1.0, 30.0)
    assert (config.mobility.threshold_db, config.mobility.detector) == (6.0, "published")
    assert (config.round_trip.enabled, config.round_trip.period_s) == (False, 1.0)
    assert config.spool_limit_bytes == 1 << 29
    assert config.sysctl["net.mptcp.blackhole_timeout"] == 0
    assert config.recovery.steps == ("at", "session", "cfun", "reboot", "usb", "power")
    ladder = good('[recovery]\nsteps = "power, at"\nafter_s = 30').recovery
    assert ladder == RecoveryConfig(True, 30.0, ("at", "power"), 3600.0)
    assert config.paths[0].plan is None
    told = parse(with_plan("[path.plan]\nbytes = 10_000_000_000"), FILE).paths[1].plan
    assert told == PlanConfig(10**10, reset_day=1, warn_share=1.0)
    told = parse(with_plan("[path.plan]\nbytes = 1\nreset_day = 31\nwarn_share = 0.8"), FILE).paths[1].plan
    assert told == PlanConfig(1, 31, 0.8)
    costs = {s: good(f"[round_trip]\nperiod_s = {s}").round_trip.day_bytes for s in (0.2, 1, 5)}
    assert costs == {0.2: 86_400_000, 1: 17_280_000, 5: 3_456_000}


BAD = [
    # what is replaced, by what, words of the message; what stands in the line that must be named, where that is not all of the new
    ("[sysctl]", "[round_trip]\nenabled = 1\n[sysctl]", "round_trip.enabled: 1 is not true or false", "enabled = 1"),
    (
        "[sysctl]",
        "[round_trip]\nperiod_s = 6\n[sysctl]",
        "6 is above 5; hint: seconds from one instant",
        "period_s = 6",
    ),
    ("[capture]", "[captures]", "unknown table or key 'captures'; hint: known are probe, server, path"),
    ('driver = "auto"', 'drver = "auto"', "unknown key 'drver' in [path.modem]; hint: known are port, driver"),
    ('driver = "auto"', 'driver = "quektel"', "there is no driver 'quektel'; hint: known are auto, "),
    ("seconds = 8.0", 'seconds = "8 s"', "runs.seconds: '8 s' is not a number; hint: how long one download lasts"),
    ("[capture]", "[spool]\nlimit_bytes = 32_767\n[capture]", "spool.limit_bytes: 32767 is below 32768", "limit_bytes"),
    ("seconds = 8.0", "seconds = nan", "is not a number"),
    ("seconds = 8.0", "seconds = 8.0\nbytes = 10", "seconds and runs.bytes are both given; hint: keep one", "bytes"),
    ("budget_bytes = 500_000_000", "budget_bytes = 5e8", "capture.budget_bytes: 500000000.0 is not a whole number"),
    ('"sequential"', '"parallel"', "is none of sequential, simultaneous, off", "on_mobility_start"),
    ('primary = "random"', 'primary = "c"', "runs.primary: 'c' is no path; hint: random, or one of a, b"),
    ('interface = "wwan1"', 'interface = "wwan0"', "interface 'wwan0' is another path's already"),
    ('name = "b"', 'name = "a"', "name 'a' is another path's already"),
    ('"/dev/ttyUSB6"', '"/dev/ttyUSB2"', "port '/dev/ttyUSB2' is another path's already", "port"),
    ('interface = "wwan1"', 'interface = "a name much too long"', "is no interface's name"),
    ('gateway = "10.64.0.1"', 'gateway = "10.64.0.256"', "is no IPv4 address"),
    ('"https://server.tandem.test:8443"', '"http://server.tandem.test:8443"', "is not of the form https://HOST:PORT"),
    ('"https://server.tandem.test:8443"', '"https://server.tandem.test:99999"', "is not of the form https://HOST:PORT"),
    ('token_file = "token"', "", "has no 'token_file'; hint: add it: written by: tandem-server probe add", "[server]"),
    ('"net.mptcp.blackhole_timeout" = 0', "net.mptcp.blackhole_timeout = 0", "a name with dots needs quotes"),
    ('"net.mptcp.blackhole_timeout" = 0', '"vm.swappiness" = 0', "is no name of net.*"),
    ('"net.mptcp.blackhole_timeout" = 0', '"net.mptcp.blackhole_timeout" = 1.5', "neither text nor a whole number"),
    ("[sysctl]", "[sysctl", "no TOML:"),
    ("seconds = 8.0", "seconds = 8.0\nseconds = 9.0", "no TOML:", "seconds = 9.0"),
    ('name = "probe-1"', 'name = "pro be"', "probe.name: 'pro be' is no probe's name; hint: use lower-case"),
    ('operator = "B"', 'operator = "B\\\\"', "holds a backslash, which no tag may; hint: the network's name"),
    ('name = "probe-1"', 'name = ""', "the text is empty"),
]


def test_a_bad_line_is_named_with_its_hint():
    cases = []
    for old, new, words, *where in BAD:
        last = old.startswith(("seconds", "primary", "budget", '"seq'))
        before, after = GOOD.rsplit(old, 1) if last else GOOD.split(old, 1)
        cases.append((before + new + after, where[0] if where else new, words))
    assert wrongly_told(cases) == []


def test_a_missing_table_or_file_is_one_line(tmp_path):
    for first, behind in (("[probe]", "[server]"), ("[[path]]", "[runs]")):
        with pytest.raises(ConfigError, match=re.escape(f"there is no {first}")):
            parse(GOOD[: GOOD.index(first)] + GOOD[GOOD.index(behind) :], FILE)
    (tmp_path / "latin").write_bytes(b"# \xe9\n")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load(tmp_path / "latin")


@given(st.text(max_size=300))
def test_any_text_is_a_configuration_or_one_clear_line(text):
    with pytest.raises(ConfigError) as caught:
        parse(text, FILE)
    assert str(caught.value).startswith("/etc/tandem/config.toml:")


def test_one_that_cannot_be_read_says_what_helps(tmp_path, monkeypatch):
    nowhere, hint = tmp_path / "nowhere.toml", "name the collector's configuration with --config"
    assert said(ConfigError, load, nowhere) == f"{nowhere}: No such file or directory; hint: {hint}"

    def refuse(_file):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    hint = "it holds secrets: begin the command with sudo"
    assert said(ConfigError, load, FILE) == f"{FILE}: Permission denied; hint: {hint}"


@given(st.text(max_size=300))
def test_places_takes_any_text(text):
    assert all(1 <= line <= len(text.splitlines()) for line in places(text).values())


def test_places_knows_lists_of_tables_dotted_keys_and_long_texts():
    text = 'a.b = 1\n[t]\nx = """\ny = 2\n"""\nz = [\n  1,\n  2,\n]\n[[l]]\nk = 1\n[[l]]\nk = 2\n[l.m]\nn = "]"\n'
    found = places(text + '["q r"]\n"s t" = 1\n')
    assert ("t", "y") not in found
    lines = {("a", "b"): 1, ("t", "x"): 3, ("t", "z"): 6, ("l", 0, "k"): 11, ("l", 1, "k"): 13, ("l", 1, "m", "n"): 15}
    assert {place: found[place] for place in lines} == lines
    assert found["q r", "s t"] == 17
    assert line_of(found, ("l", 1, "m", "absent")) == 14
    assert line_of(found, ("nothing",)) is None
