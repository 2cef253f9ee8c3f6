"""server.toml: where it is found, what is right, and one line with file, line and hint for what is not."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.hostile_json import said
from support.serve_on_loopback import command
from tandem_server.cli.command import VARIABLE, ConfigError, config_file, found_config_file
from tandem_server.cli.configuration import load
from tandem_server.endpoint.sessions import Share


def test_an_empty_file_is_a_whole_configuration_and_a_probe_may_have_a_share_of_its_own(tmp_path):
    file = tmp_path / "server.toml"
    file.write_text("")
    config = load(file)
    assert (config.listen.gateway_port, config.store.kind, config.tls.key) == (
        8443,
        "private",
        tmp_path / "tls/server.key",
    )
    file.write_text(
        '[listen]\nfurther_addresses = ["203.0.113.11", "2001:db8::11"]\n'
        "[probes.probe-1]\nbytes_per_day = 5\n[probes.probe-2]\nsessions_at_once = 2\n"
    )
    config = load(file)
    assert config.listen.further_addresses == ("203.0.113.11", "2001:db8::11")
    assert config.probes == {"probe-1": Share(bytes_per_day=5), "probe-2": Share(sessions_at_once=2)}
    read = []
    for text in ('[traces]\ns3 = {bucket = "kit", region = "r"}\n', '[traces.s3]\nbucket = "kit"\nregion = "r"\n'):
        file.write_text(text)
        read.append(load(file).traces)
    assert read[0] == read[1]
    assert (read[0].s3.bucket, read[0].s3.prefix, read[0].folder) == ("kit", "traces", tmp_path / "traces")


def test_a_right_file_is_said_to_be_right_and_nothing_is_made(tmp_path):
    file = tmp_path / "server.toml"
    file.write_text("[listen]\ngateway_port = 9443\n")
    assert command("check", "--config", file) == (0, f"{file}: right\n", "")
    assert sorted(tmp_path.iterdir()) == [file]


RUNNING = "[store]\nkind = 'running'\n"
URL = "url = 'http://h:1'\n"
BAD_FILES = [
    ("[listen]\nport = 1", 2, "unknown key 'port' in [listen]; hint: one of host, gateway_port"),
    ("\n[lisen]\n", 2, "unknown section 'lisen'"),
    ("[listen]\nhost = 7", 2, "7 is not text in quotes; hint: write text in quotes"),
    ("[listen]\ngateway_port = 99999", 2, "gateway_port: 99999 is above 65535; hint: a port from 1 to 65535"),
    ("[listen]\ngateway_port = 5\ncontrol_port = 5", 1, "are the same"),
    ("[listen]\nprocesses = -1", 2, "hint: 1 to 256, or 0 for one a core"),
    ("[listen]\nfurther_addresses = 'x'", 2, 'hint: write texts in brackets, as in ["203.0.113.11"]'),
    ("[listen]\nfurther_addresses = ['server-2']", 2, "'server-2' is no address; hint: at most 4 addresses"),
    ("[listen]\nfurther_addresses = ['127.0.0.2']", 2, "127.0.0.2 is reached by no probe"),
    ("[listen]\n\nfurther_addresses = ['203.0.113.1', '203.0.113.1']", 3, "each once"),
    ("[listen]\nmultipath = 'no'", 2, "hint: one of required, optional"),
    (RUNNING, 1, "needs url"),
    (f"{RUNNING}{URL}user = 'u'", 1, "needs password_file"),
    (f"{RUNNING}url = 'localhost'\nuser = 'u'\npassword_file = 'p'", 3, "hint: http://HOST:PORT"),
    (f"{RUNNING}{URL}user = 'u'\npassword_file = 'p'\nbackup_port = 8088", 6, "not for kind"),
    (f"[store]\n{URL}", 2, 'url is not for kind "private"'),
    ("[store]\ndatabase = 'a b'", 2, "hint: letters"),
    ("[store]\nkind = 'influxdb2'", 2, "one of private, running"),
    ("[store]\nretention_days = 1", 2, "hint: 7 or more"),
    ("[store]\nport = 8087\nbackup_port = 8087", 3, "[store] port and backup_port are the same"),
    (f"[mirror]\n{URL}", 1, "needs texts"),
    ("[mirror]\ntexts = 'labels'", 1, "needs url"),
    (f"[mirror]\n{URL}texts = 'kept'", 3, "one of labels, dropped"),
    (f"[mirror]\n{URL}texts = 'labels'\nuser = 'u'", 1, "belong together"),
    ("[limits]\nstall_s = nan", 2, "hint: a number above 0"),
    ("probes = 3", 1, "hint: begin it with [probes]"),
    ("[probes.X_Y]\nbytes_per_day = 3", 1, "is no probe's name"),
    ("[probes]\nprobe-1 = 3", 2, "hint: begin it with [probes.probe-1]"),
    ("[probes.probe-1]\nbytes = 3", 2, "hint: one of requests_per_minute, lines_per_minute"),
    ("[probes.probe-1]\n\nbytes_per_day = 1.5", 3, "bytes_per_day: 1.5 is not a whole number; hint: a number above 0"),
    ("[probes.probe-1]\nsessions_at_once = 0", 2, "hint: a number above 0"),
    ("[wireguard]\nendpoint = 'a:1'", 2, "endpoint without network"),
    ("[wireguard]\nnetwork = '10.87.0.0/16'", 2, "network without endpoint; hint: add endpoint"),
    ("[wireguard]\nnetwork = '10.87.0.1/16'", 2, "has host bits set; hint: as 10.87.0.0/16"),
    ("[wireguard]\nnetwork = '10.87.0.0/28'\nendpoint = 'a:1'", 2, "has 16 addresses"),
    ("[wireguard]\nnetwork = 'fd00::/64'\nendpoint = '[::1]:65536'", 3, "hint: HOST:PORT"),
    ("[series]\nevery_s = 1", 2, "hint: 2 to 600 seconds"),
    ("[series]\nsettle_s = 0", 2, "settle_s: 0 is below 1; hint: 1 to 3600 seconds"),
    ("[traces]\nreserve_bytes = -1", 2, "reserve_bytes"),
    ("[traces]\ntrace_bytes = 0", 2, "trace_bytes"),
    ("[traces]\ns3 = 'x'", 2, "s3"),
    ("[traces]\ns3 = {bucket = 'fine', prefix = 'a b'}", 2, "prefix"),
    ("[traces]\ns3 = {bucket = 'fine', encryption = 'rot13'}", 2, "encryption"),
    ("[traces]\ns3 = {bucket = 'UPPER'}", 2, "hint: the bucket's name"),
    ("[traces]\ns3 = {bucket = 'fine', key = 'secret'}", 2, "unknown key 'key'"),
    ("[traces]\ns3 = {bucket = 'fine', endpoint_url = 'https://user:secret@x'}", 2, "hint: https://HOST"),
    ("[capture]\nallowed = 1", 2, "hint: write true or false"),
    ("[listen\n", 1, "no TOML"),
    ("[listen]\nhost = 'a", 2, "no TOML"),
]


def test_a_bad_file_is_told_with_its_line(tmp_path):
    file = tmp_path / "server.toml"
    for number, (text, line, reason) in enumerate(BAD_FILES):
        file.write_text(text)
        for args in (("check",), ("serve",), ("probe", "list"), ("ledger",))[: None if number == 0 else 1]:
            status, out, told = command(*args, "--config", file)
            assert (status, out, told.count("\n")) == (2, "", 1), text
            assert told.startswith(f"tandem-server: {file}:{line}: "), (text, told)
            assert reason in told, (text, told)
            assert "hint: " in told, (text, told)


PIECES = ["[listen]", "[store]", "[limits]", "host", "port", "=", "1", "'a'", "\n", "[", "]", "nan"]


@given(
    st.text()
    | st.binary(max_size=50).map(lambda b: b.decode("latin-1"))
    | st.lists(st.sampled_from(PIECES), max_size=12).map(" ".join)
)
def test_any_file_is_read_or_told_in_one_line(tmp_path_factory, text):
    file = tmp_path_factory.getbasetemp() / "any.toml"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    told = said(ConfigError, load, file)
    assert not told or told.startswith(str(file))
    assert "\n" not in told


# --- without --config: the environment's file, else ./server.toml, else /etc/tandem/server.toml


@pytest.fixture
def _empty_folder(tmp_path, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


@pytest.fixture
def places(tmp_path):
    return tmp_path / "here/server.toml", tmp_path / "etc.toml"


@pytest.mark.usefixtures("_empty_folder")
def test_the_nearest_file_is_taken_and_what_the_environment_names_is_not_passed_over(tmp_path, places):
    with pytest.raises(ConfigError, match=r"neither .*here/server.toml nor .*etc.toml is there; hint: .*--config"):
        config_file(None, {}, places)
    for place, environment in ((places[1], {}), (places[0], {}), (tmp_path / "told.toml", "told.toml")):
        place.write_text("")
        variable = {VARIABLE: str(tmp_path / environment)} if environment else {}
        assert config_file(None, variable, places) == place
    assert config_file(tmp_path / "named", {VARIABLE: str(tmp_path / "told.toml")}, places) == tmp_path / "named"
    assert config_file(None, {VARIABLE: ""}, places) == places[0]
    places[0].write_text("")
    with pytest.raises(ConfigError, match=rf"gone.toml: no such file, says {VARIABLE}; hint"):
        config_file(None, {VARIABLE: str(tmp_path / "gone.toml")}, places)


def test_a_folder_that_one_may_not_look_into_is_passed_over_and_a_whole_path_there_is_not(tmp_path, monkeypatch):
    def refused(path):
        raise PermissionError(13, "Permission denied", str(path))

    meant = tmp_path / "etc.toml"
    monkeypatch.setattr(Path, "is_file", refused)
    assert config_file(None, {}, (Path("server.toml"), meant)) == meant


@pytest.mark.usefixtures("_empty_folder")
def test_the_commands_work_as_they_are_written(tmp_path, monkeypatch):
    status, out, told = command("ledger", "--json")
    assert (status, out, told.count("\n")) == (2, "", 1)
    none = "tandem-server: no server.toml: neither server.toml nor /etc/tandem/server.toml is there; hint"
    assert (told[: len(none)], found_config_file()) == (none, None)
    (tmp_path / "here/server.toml").write_text("")
    assert command("probe", "add", "probe-1")[1].startswith("tandem_")
    assert [row["name"] for row in json.loads(command("probe", "list", "--json")[1])] == ["probe-1"]
    (tmp_path / "other").mkdir()
    (tmp_path / "other/server.toml").write_text("")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "other/server.toml"))
    assert json.loads(command("probe", "list", "--json")[1]) == []
    monkeypatch.setenv(VARIABLE, str(tmp_path / "gone"))
    assert command("probe", "list")[2].startswith(f"tandem-server: {tmp_path}/gone: no such file, says {VARIABLE}")
