"""The commands: one clear line and the right exit status for whatever is wrong."""

import contextlib
import os
import signal
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.hostile_json import said
from support.serve_on_loopback import await_ready, command, end, lay_out, start, tandem_server
from tandem_server.cli.command import ConfigError
from tandem_server.cli.configuration import load
from tandem_server.endpoint.sessions import Share


def test_the_defaults_are_a_whole_configuration_and_a_probe_may_have_a_share_of_its_own(tmp_path):
    (tmp_path / "server.toml").write_text("")
    config = load(tmp_path / "server.toml")
    assert (config.listen.gateway_port, config.store.kind, config.limits.sessions_per_probe) == (8443, "private", 8)
    assert (config.tls.key, config.store.binary) == (tmp_path / "tls/server.key", None)
    (tmp_path / "server.toml").write_text(
        '[listen]\nfurther_addresses = ["203.0.113.11", "2001:db8::11"]\n'
        "[probes.probe-1]\nbytes_per_day = 5\n[probes.probe-2]\nsessions_at_once = 2\n"
    )
    config = load(tmp_path / "server.toml")
    assert config.listen.further_addresses == ("203.0.113.11", "2001:db8::11")
    assert config.probes == {"probe-1": Share(bytes_per_day=5), "probe-2": Share(sessions_at_once=2)}


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
    ("[store]\nkind = 'running'", 1, "needs url"),
    ("[store]\nkind='running'\nurl='localhost'\nuser='u'\npassword_file='p'", 3, "hint: http://HOST:PORT"),
    ("[store]\ndatabase = 'a b'", 2, "hint: letters"),
    ("[store]\nport = 8087\nbackup_port = 8087", 3, "[store] port and backup_port are the same"),
    ("[store]\nkind='running'\nurl='http://h:1'\nuser='u'\npassword_file='p'\nbackup_port=8088", 6, "not for kind"),
    ("[store]\nretention_days = 1", 2, "hint: 7 or more"),
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
    ("[capture]\nallowed = 1", 2, "hint: write true or false"),
    ("limits = 3", 1, "hint: begin it with [limits]"),
    ("[listen\n", 1, "no TOML"),
    ("[listen]\nhost = 'a", 2, "no TOML"),
]


def test_a_bad_file_is_told_with_its_line(tmp_path):
    file = tmp_path / "server.toml"
    for number, (text, line, reason) in enumerate(BAD_FILES):
        file.write_text(text)
        for args in (("serve",), ("probe", "list"), ("ledger",))[: None if number == 0 else 1]:
            status, out, told = command(*args, "--config", file)
            assert (status, out, told.count("\n")) == (2, "", 1), text
            assert told.startswith(f"tandem-server: {file}:{line}: "), text
            assert reason in told, text


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


@pytest.fixture(scope="module")
def laid(tmp_path_factory):
    """A folder in which a whole server is started again and again, and its ports."""
    folder = tmp_path_factory.mktemp("laid")
    return folder, lay_out(folder)


def test_when_one_part_dies_all_end_and_it_is_named(laid):
    folder, _ = laid
    process = start(folder)
    await_ready(process, "worker")
    children = [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
    assert len(children) == 4
    gateway = next(pid for pid in children if b"gateway" in Path(f"/proc/{pid}/cmdline").read_bytes())
    os.kill(gateway, signal.SIGKILL)
    assert process.wait(120) == 1
    process.stdout.close()
    assert "gateway ended" in (folder / "serve.log").read_text()
    for pid in children:
        assert not Path(f"/proc/{pid}").exists()


def test_sigterm_while_starting_is_a_clean_end_and_ctrl_c_ends_all_with_130(laid):
    process = start(laid[0])
    await_ready(process, "database")
    assert end(process) == 0
    process = start(laid[0])
    await_ready(process, "gateway")
    process.send_signal(signal.SIGINT)
    assert process.wait(120) == 130
    process.stdout.close()


def test_what_the_environment_lacks_is_told_in_one_line_with_status_3(laid):
    folder, ports = laid
    config, other = folder / "server.toml", folder / "other.toml"
    elsewhere = config.read_text().replace("[store]\nbinary", "[store]\nfolder='nowhere/influxdb'\n#")
    other.write_text(elsewhere)
    (folder / "nowhere").write_text("a file")
    with contextlib.ExitStack() as taken:
        for port in ports:
            taken.enter_context(socket.create_server(("127.0.0.1", port)))
        cases = [("gateway", config, ports[0]), ("endpoint", config, ports[2]), ("database", config, ports[3])]
        told = [(serve_refused(role, file), port) for role, file, port in [*cases, ("database", other, "nowhere")]]
        taken.pop_all().close()
        taken.enter_context(socket.create_server(("127.0.0.1", ports[1])))
        told.append((serve_refused("endpoint", config), ports[1]))
    for (status, error), word in told:
        assert (status, error.count("\n"), "; hint: " in error, str(word) in error) == (3, 1, True, True), error
    (folder / "tls/server.key").unlink()
    status, error = serve_refused("gateway", config)
    assert (status, "hint: tandem-server tls" in error) == (3, True)


def serve_refused(role, config):
    refused = tandem_server("serve", role, "--config", config)
    return refused.returncode, refused.stderr


def test_probes_are_managed_by_command(tmp_path):
    (tmp_path / "server.toml").write_text("")
    config = ("--config", tmp_path / "server.toml")
    _, first, _ = command("probe", "add", "probe-1", *config)
    assert first.startswith("tandem_")
    status, out, told = command("probe", "add", "probe-1", *config)
    assert (status, out, told.count("\n")) == (2, "", 1)
    assert command("probe", "rotate", "probe-1", *config)[1] not in ("", first)
    assert command("probe", "revoke", "probe-1", *config)[0] == 0
    assert command("probe", "revoke", "probe-2", *config)[0] == 2
    assert "probe-1" in (listed := command("probe", "list", *config)[1])
    assert "revoked" in listed
    status, _, told = command("probe", "add", "probe-3", *config, "--token-file", tmp_path / "no/such/token")
    assert (status, told.count("\n")) == (3, 1)
    assert "probe-3" not in command("probe", "list", *config)[1]


def test_certificates_are_not_replaced_unasked(tmp_path):
    args = ("tls", "--folder", tmp_path, "--name", "server.tandem.test")
    assert command(*args)[0] == 0
    before = (tmp_path / "server.pem").read_bytes()
    status, _, told = command(*args)
    assert (status, told.count("\n")) == (2, 1)
    assert (tmp_path / "server.pem").read_bytes() == before
    assert command(*args, "--force")[0] == 0
    assert (tmp_path / "server.pem").read_bytes() != before
    assert command("tls", "--folder", tmp_path, "--name", "bad name")[0] == 2
    assert command("tls", "--folder", tmp_path, "--name", "x", "--address", "1.2.3")[0] == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ca.key", "ca.pem", "server.key", "server.pem"]
