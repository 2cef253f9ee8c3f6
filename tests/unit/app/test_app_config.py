"""The configuration: what is taken, and for everything else the line and the mend."""

import re
from pathlib import Path

import pytest
from good_config import FILE, GOOD, wrongly_told
from hypothesis import given
from hypothesis import strategies as st

from tandem.app.config import Config, ConfigError, load, parse
from tandem.schema.toml_lines import line_of, places


def test_a_good_file_is_taken_with_defaults() -> None:
    config = parse(GOOD, FILE)
    assert isinstance(config, Config)
    assert [p.name for p in config.paths] == ["a", "b"]
    assert config.paths[1].modem is not None
    assert config.paths[1].modem.driver == "auto"
    assert config.server.token_file == Path("/etc/tandem/token")
    assert config.folder == Path("/etc/tandem")
    assert config.runs.seconds == 8.0
    assert config.runs.bytes is None
    assert config.period_s == 1.0
    assert config.mobility.threshold_db == 6.0
    assert config.mobility.detector == "published"
    assert config.drain_s == 30.0
    assert config.spool_limit_bytes == 1 << 29
    assert config.sysctl["net.mptcp.blackhole_timeout"] == 0


BAD = [
    # what is replaced, by what, words of the message; what stands in the line that must be named, where that is not all of the new
    ('source = "system"', 'source = "sundial"', "mend: auto, chrony, kernel, gpsd or system"),
    ("[capture]", "[captures]", "unknown table or key 'captures'; mend: known are probe, server, path"),
    ('driver = "auto"', 'drver = "auto"', "unknown key 'drver' in [path.modem]; mend: known are port, driver"),
    ('driver = "auto"', 'driver = "quektel"', "there is no driver 'quektel'; mend: known are auto, "),
    ("seconds = 8.0", 'seconds = "8 s"', "runs.seconds: '8 s' is not a number; mend: how long one download lasts"),
    ("[capture]", "[spool]\nlimit_bytes = 32_767\n[capture]", "spool.limit_bytes: 32767 is below 32768", "limit_bytes"),
    ("seconds = 8.0", "seconds = nan", "is not a number"),
    ("seconds = 8.0", "seconds = -1", "runs.seconds: -1 is below 0.5"),
    ("seconds = 8.0", "seconds = inf", "is above 3600"),
    ("seconds = 8.0", "seconds = 8.0\nbytes = 10", "seconds and runs.bytes are both given; mend: keep one", "bytes"),
    ("budget_bytes = 500_000_000", "budget_bytes = 5e8", "capture.budget_bytes: 500000000.0 is not a whole number"),
    ('"sequential"', '"parallel"', "is none of sequential, simultaneous, off", "on_mobility_start"),
    ('primary = "random"', 'primary = "c"', "runs.primary: 'c' is no path; mend: random, or one of a, b"),
    ('interface = "wwan1"', 'interface = "wwan0"', "interface 'wwan0' is another path's already"),
    ('name = "b"', 'name = "a"', "name 'a' is another path's already"),
    ('"/dev/ttyUSB6"', '"/dev/ttyUSB2"', "port '/dev/ttyUSB2' is another path's already", "port"),
    ('interface = "wwan1"', 'interface = "a name much too long"', "is no interface's name"),
    ('gateway = "10.64.0.1"', 'gateway = "10.64.0.256"', "is no IPv4 address"),
    ('"https://server.tandem.test:8443"', '"http://server.tandem.test:8443"', "is not of the form https://HOST:PORT"),
    ('"https://server.tandem.test:8443"', '"https://server.tandem.test:99999"', "is not of the form https://HOST:PORT"),
    ('token_file = "token"', "", "has no 'token_file'; mend: add it: written by: tandem-server probe add", "[server]"),
    ('"net.mptcp.blackhole_timeout" = 0', "net.mptcp.blackhole_timeout = 0", "a name with dots needs quotes"),
    ('"net.mptcp.blackhole_timeout" = 0', '"vm.swappiness" = 0', "is no name of net.*"),
    ('"net.mptcp.blackhole_timeout" = 0', '"net.mptcp.blackhole_timeout" = 1.5', "neither text nor a whole number"),
    ("[sysctl]", "[sysctl", "no TOML:"),
    ("seconds = 8.0", "seconds = 8.0\nseconds = 9.0", "no TOML:", "seconds = 9.0"),
    ('name = "probe-1"', 'name = "pro be"', "probe.name: 'pro be' is no probe's name; mend: use lower-case"),
    ('operator = "B"', 'operator = "B\\\\"', "holds a backslash, which no tag may; mend: the network's name"),
    ('name = "probe-1"', 'name = ""', "the text is empty"),
]


def test_a_bad_line_is_named_with_its_mend() -> None:
    cases = []
    for old, new, words, *where in BAD:
        last = old.startswith(("seconds", "primary", "budget", '"seq'))
        before, after = GOOD.rsplit(old, 1) if last else GOOD.split(old, 1)
        cases.append((before + new + after, where[0] if where else new, words))
    assert wrongly_told(cases) == []


def test_a_missing_table_is_named() -> None:
    for name, first, behind in (("[probe]", "[probe]", "[server]"), ("[[path]]", "[[path]]", "[runs]")):
        with pytest.raises(ConfigError, match=re.escape(f"there is no {name}")):
            parse(GOOD[: GOOD.index(first)] + GOOD[GOOD.index(behind) :], FILE)


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"No such file.*mend"):
        load(tmp_path / "nowhere.toml")
    (tmp_path / "latin").write_bytes(b"# \xe9\n")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load(tmp_path / "latin")


@given(st.text(max_size=300))
def test_any_text_is_a_configuration_or_one_clear_line(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text, FILE)
    assert str(caught.value).startswith("/etc/tandem/config.toml:")


@given(st.text(max_size=300))
def test_places_takes_any_text(text: str) -> None:
    assert all(1 <= line <= len(text.splitlines()) for line in places(text).values())


def test_places_knows_lists_of_tables_dotted_keys_and_long_texts() -> None:
    text = 'a.b = 1\n[t]\nx = """\ny = 2\n"""\nz = [\n  1,\n  2,\n]\n[[l]]\nk = 1\n[[l]]\nk = 2\n[l.m]\nn = "]"\n'
    text += '["q r"]\n"s t" = 1\n'
    found = places(text)
    assert found[("a", "b")] == 1
    assert found[("t", "x")] == 3
    assert ("t", "y") not in found
    assert found[("t", "z")] == 6
    assert found[("l", 0, "k")] == 11
    assert found[("l", 1, "k")] == 13
    assert found[("l", 1, "m", "n")] == 15
    assert found[("q r", "s t")] == 17
    assert line_of(found, ("l", 1, "m", "absent")) == 14
    assert line_of(found, ("nothing",)) is None
