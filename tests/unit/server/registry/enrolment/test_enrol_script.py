"""tandem-enrol as a program against a real gateway, and what it makes of everything else that answers."""

import base64
import http.server
import json
import os
import shutil
import ssl
import stat
import subprocess
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from enrolling import HUB_KEY, SCRIPT, run_script, script_module, started
from hypothesis import given
from hypothesis import strategies as st

from support.hostile_json import any_json
from support.serve_on_loopback import command


def mode(file):
    return stat.S_IMODE(file.stat().st_mode)


def test_from_the_card_to_the_token(gateway, tmp_path):
    made = gateway.invite("probe-1")
    (tmp_path / "etc/ssh").mkdir(parents=True)  # without host keys, as an image has it
    folder = gateway.write_enrol(tmp_path, "probe-1", made["code"])
    done = run_script(tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "tandem-enrol: enrolled as probe-1\n", "")
    assert sorted(file.name for file in folder.iterdir()) == ["enrolled.json", "token", "wireguard.key"]
    token = (folder / "token").read_text().strip()
    assert gateway.knows(token) == "probe-1"
    assert [mode(folder / name) for name in ("token", "wireguard.key", "enrolled.json")] == [0o600, 0o600, 0o644]
    told = json.loads((folder / "enrolled.json").read_text())
    assert told["wireguard"] == {
        "address": f"{made['address']}/16", "server_public_key": HUB_KEY, "endpoint": "192.0.2.1:51820",
        "allowed_ips": ["10.87.0.0/16"], "keepalive_s": 25,
    }  # fmt: skip
    secrets = (made["code"], token, (folder / "wireguard.key").read_text().strip())
    assert not [secret for secret in secrets if secret in (folder / "enrolled.json").read_text()]
    private = base64.b64decode(secrets[2])
    assert (private[0] & 7, private[31] & 192) == (0, 64), "a key of Curve25519"
    public = X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()
    there = gateway.enrolled("probe-1")
    assert there.wireguard_public_key == told["wireguard_public_key"] == base64.b64encode(public).decode()
    of_disk = sorted(" ".join(file.read_text().split()[:2]) for file in (tmp_path / "etc/ssh").glob("*.pub"))
    assert sorted(there.ssh_host_keys) == of_disk
    assert len(of_disk) >= 2
    again = subprocess.run([SCRIPT, "--root", tmp_path], capture_output=True, text=True, check=False)  # as systemd does
    assert (again.returncode, again.stdout) == (0, "tandem-enrol: is enrolled\n")


def test_a_new_code_on_an_enrolled_probe_begins_another_enrolment_with_the_same_key(gateway, tmp_path):
    folder = gateway.write_enrol(tmp_path, "probe-3", gateway.invite("probe-3")["code"])
    assert run_script(tmp_path).returncode == 0
    first, key = (folder / "token").read_text(), (folder / "wireguard.key").read_text()
    gateway.write_enrol(tmp_path, "probe-3", gateway.invite("probe-3")["code"])
    assert run_script(tmp_path).returncode == 0
    assert (folder / "wireguard.key").read_text() == key
    assert gateway.knows(first.strip()) is None
    assert gateway.knows((folder / "token").read_text().strip()) == "probe-3"


def test_a_copied_card_makes_a_key_of_its_own(gateway, tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    gateway.write_enrol(one, "probe-4", gateway.invite("probe-4")["code"])
    assert run_script(one).returncode == 0
    shutil.copytree(one, other)
    gateway.write_enrol(other, "probe-5", gateway.invite("probe-5")["code"])
    first = run_script(other)
    assert (first.returncode, "was another probe's; a new one is made" in first.stderr) == (1, True)
    assert run_script(other).returncode == 0
    keys = {gateway.enrolled(name).wireguard_public_key for name in ("probe-4", "probe-5")}
    assert len(keys) == 2


def test_a_refused_code_says_what_to_do_and_changes_nothing_on_the_card(gateway, tmp_path):
    folder = gateway.write_enrol(tmp_path, "probe-6", "invite_" + "A" * 43)
    done = run_script(tmp_path)
    hint = "hint: tandem-server probe invite probe-6, and its code into enrol.json"
    assert (done.returncode, done.stderr) == (1, f"tandem-enrol: the gateway refuses this code (status 401); {hint}\n")
    assert sorted(file.name for file in folder.iterdir()) == ["enrol.json", "wireguard.key"]


def test_while_it_waits_a_new_code_is_taken_at_once(gateway, tmp_path):
    gateway.write_enrol(tmp_path, "probe-8", "invite_" + "A" * 43)
    waiting = started(tmp_path)
    assert "refuses this code" in waiting.stderr.readline()  # the next time would be in an hour
    code = gateway.invite("probe-8")["code"]
    gateway.write_enrol(tmp_path / "beside", "probe-8", code)
    (tmp_path / "beside/etc/tandem/enrol.json").rename(tmp_path / "etc/tandem/enrol.json")
    out, err = waiting.communicate(timeout=120)
    assert (waiting.returncode, out, err) == (0, "tandem-enrol: enrolled as probe-8\n", "")


def test_two_at_once_are_one_enrolment(gateway, tmp_path):
    gateway.write_enrol(tmp_path, "probe-9", gateway.invite("probe-9")["code"])
    both = [started(tmp_path, "--for", "120") for _ in range(2)]
    said = sorted(one.communicate(timeout=120)[0] for one in both)
    assert said == ["tandem-enrol: enrolled as probe-9\n", "tandem-enrol: is enrolled\n"]


def test_a_wrong_file_and_what_is_not_there_is_one_line_with_a_hint(gateway, tmp_path):
    assert run_script(tmp_path).returncode == 3  # not even the folder
    gateway.write_enrol(tmp_path, "probe-1", "invite_" + "A" * 43, probe="Probe")
    done = run_script(tmp_path)
    hint = "hint: write it anew, with a code of `tandem-server probe invite`"
    said = f"tandem-enrol: {tmp_path / 'etc/tandem/enrol.json'}: probe is no probe's name; {hint}\n"
    assert (done.returncode, done.stderr) == (2, said)
    folder = gateway.write_enrol(tmp_path, "probe-1", "invite_" + "A" * 43, ca_file=str(tmp_path / "ca.pem"))
    done = run_script(tmp_path)
    assert (done.returncode, done.stderr.count("\n"), "hint: name the server's ca.pem" in done.stderr) == (2, 1, True)
    (folder / "enrol.json").unlink()
    done = run_script(tmp_path)
    assert (done.returncode, "not there; hint:" in done.stderr) == (2, True)


class Answers(http.server.BaseHTTPRequestHandler):
    answer = (200, {}, b"")
    asked = 0

    def do_POST(self):
        type(self).asked += 1
        self.rfile.read(int(self.headers["Content-Length"]))
        status, headers, body = self.answer
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Nothing."""


@pytest.fixture
def stranger(tmp_path):
    """A server of TLS that is no gateway; ``folder``: its authority."""
    folder = tmp_path / "tls"
    made = command("tls", "--folder", folder, "--name", "localhost", "--address", "127.0.0.1")
    assert made == (0, "", "")
    server = http.server.HTTPServer(("127.0.0.1", 0), type("Answering", (Answers,), {}))
    server.folder = folder
    server.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.context.load_cert_chain(folder / "server.pem", folder / "server.key")
    server.socket = server.context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *_: None
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def at_stranger(gateway, stranger, root, **more):
    place = f"https://127.0.0.1:{stranger.server_address[1]}"
    change = {"gateway": place, "ca_file": str(stranger.folder / "ca.pem")} | more
    return gateway.write_enrol(root, "probe-1", "invite_" + "A" * 43, **change)


def test_an_answer_that_is_none_is_asked_for_again_and_nothing_is_written(gateway, stranger, tmp_path, capsys):
    module = script_module()
    answers = [
        (200, {}, b"<html>Welcome to our Wi-Fi</html>"),
        (200, {}, json.dumps({"probe": "probe-2", "token": "tandem_" + "A" * 43, "wireguard": None}).encode()),
        (200, {}, b"{" * 100_000),
        (302, {"Location": "https://elsewhere.example.org/"}, b""),
        (503, {"Retry-After": "soon"}, b""),
        (503, {"Retry-After": "0"}, b""),
        (404, {}, b"not here"),
    ]
    for number, answer in enumerate(answers):
        stranger.RequestHandlerClass.answer = answer
        folder = at_stranger(gateway, stranger, tmp_path / str(number))
        assert module.enrol_at_last(folder, tmp_path / str(number), 0) == 1, answer
        assert capsys.readouterr().err.count("\n") == 1, answer
        assert stranger.RequestHandlerClass.asked == number + 1, answer
        assert sorted(file.name for file in folder.iterdir()) == ["enrol.json", "wireguard.key"], answer


def test_a_server_of_another_authority_hears_no_code(gateway, stranger, tmp_path):
    at_stranger(gateway, stranger, tmp_path, ca_file=str(gateway.folder / "tls/ca.pem"))
    done = run_script(tmp_path)
    assert (done.returncode, "is not trusted" in done.stderr) == (1, True)
    assert stranger.RequestHandlerClass.asked == 0


def test_a_clock_in_the_past_is_said_and_waited_for(gateway, stranger, tmp_path):
    """The certificate of a server that was made after the time at which this probe's clock stands: without a battery it goes on where it
    stopped. Here the certificate is of tomorrow and the clock is right, which is the same to TLS."""
    certify_from_tomorrow(stranger.folder)
    stranger.context.load_cert_chain(stranger.folder / "server.pem", stranger.folder / "server.key")
    folder = at_stranger(gateway, stranger, tmp_path)
    done = run_script(tmp_path)
    assert done.returncode == 1
    assert "by this clock (" in done.stderr
    assert "the server's certificate begins later; waiting" in done.stderr
    module = script_module()
    file = folder / "enrol.json"
    enrol = module.read_enrol(file.read_text(), file)
    with pytest.raises(module.LaterError) as later:
        module.ask(enrol, HUB_KEY, [])
    assert later.value.args[1] == module.CLOCK_S


def certify_from_tomorrow(folder):
    key = serialization.load_pem_private_key((folder / "ca.key").read_bytes(), None)
    ca = x509.load_pem_x509_certificate((folder / "ca.pem").read_bytes())
    before = x509.load_pem_x509_certificate((folder / "server.pem").read_bytes())
    begins = datetime.now(UTC) + timedelta(days=1)
    builder = x509.CertificateBuilder(ca.subject, before.subject, before.public_key(), before.serial_number + 1)
    builder = builder.not_valid_before(begins).not_valid_after(begins + timedelta(days=9))
    for extension in before.extensions:
        builder = builder.add_extension(extension.value, extension.critical)
    made = builder.sign(key, hashes.SHA256())
    (folder / "server.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))


@pytest.fixture
def asked_of_systemd(tmp_path, monkeypatch):
    """A systemctl that notes what it is asked, knows tandem.service and no other; what was asked."""
    (tmp_path / "bin").mkdir()
    systemctl = tmp_path / "bin/systemctl"
    systemctl.write_text(
        f'#!/bin/sh\necho "$*" >>{tmp_path}/asked\ncase $* in *tandem.service) exit 0 ;; esac\n'
        'echo "Failed: Unit $3 not found." >&2\nexit 5\n'
    )
    systemctl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    return lambda: (tmp_path / "asked").read_text().splitlines()


def test_what_runs_is_started_anew_with_what_was_enrolled_and_what_systemd_refuses_is_told(
    gateway, tmp_path, asked_of_systemd
):
    gateway.write_enrol(tmp_path, "kit-restart", gateway.invite("kit-restart")["code"])
    done = run_script(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    both = ["--no-block try-restart tandem.service", "--no-block try-restart tandem-tunnel.service"]
    assert asked_of_systemd() == both
    assert run_script(tmp_path).returncode == 0  # nothing to do, and nothing is disturbed
    assert asked_of_systemd() == both
    (tmp_path / "bin/systemctl").write_text("#!/bin/sh\necho 'Access denied' >&2\nexit 4\n")
    gateway.write_enrol(tmp_path, "kit-restart", gateway.invite("kit-restart")["code"])
    done = run_script(tmp_path)  # it is enrolled all the same
    assert done.returncode == 0
    assert done.stderr.count("Access denied; hint: see there, or start the probe anew") == 2


MODULE = script_module()
CODE, TOKEN = "invite_" + "A" * 43, "tandem_" + "A" * 43  # no secret: the shape alone

values = any_json(6)


def objects(**usual):
    """With the right keys, of which each may be right or anything."""
    return st.fixed_dictionaries({}, optional={key: st.just(right) | values for key, right in usual.items()})


enrols = objects(probe="probe-1", code=CODE, gateway="https://server.example.org:8443", ca_file=None)
tunnels = objects(
    address="10.87.0.16/16", server_public_key=HUB_KEY, endpoint="a:1", allowed_ips=["10.87.0.0/16"], keepalive_s=25
)
answers = st.fixed_dictionaries(
    {}, optional={"probe": st.just("probe-1") | values, "token": st.just(TOKEN) | values, "wireguard": tunnels | values}
)


@given(st.text() | values.map(json.dumps) | enrols.map(json.dumps))
def test_any_file_is_an_enrolment_or_one_line(text):
    try:
        read = MODULE.read_enrol(text, Path("/etc/tandem/enrol.json"))
    except MODULE.StopError as stop:
        status, line = stop.args
        assert (status, line.startswith("/etc/tandem/enrol.json: "), "; hint: " in line) == (2, True, True)
        return
    assert (read.probe, read.code) == ("probe-1", CODE)
    assert 0 < read.port < 65536


def test_a_gateway_is_a_host_and_a_port_a_code_is_one_and_the_authority_a_path():
    def read(gateway, **more):
        asked = {"probe": "probe-1", "code": CODE, "gateway": gateway} | more
        return MODULE.read_enrol(json.dumps(asked), Path("f"))

    for gateway, place in (
        ("server.example.org:8443", ("server.example.org", 8443)),
        ("192.0.2.1/", ("192.0.2.1", 443)),
        ("[2001:db8::1]:8443", ("2001:db8::1", 8443)),
    ):
        made = read(f"https://{gateway}")
        assert (made.host, made.port, made.ca_file) == (*place, None)
    places = (
        "user@server.example.org",
        "server.example.org/v1",
        "server.example.org:0",
        "192.0.2.1:65536",
        "a b",
        "a\n",
    )
    for none in (*(f"https://{place}" for place in places), "http://192.0.2.1", ""):
        with pytest.raises(MODULE.StopError, match="gateway is not https"):
            read(none)
    for change, reason in (({"code": "x"}, "code is none"), ({"ca_file": 3}, "ca_file is neither a path nor null")):
        with pytest.raises(MODULE.StopError, match=reason):
            read("https://192.0.2.1", **change)


@given(
    st.integers(min_value=100, max_value=599),
    st.none() | st.text() | st.integers(min_value=0, max_value=10**7).map(str),
    st.binary() | values.map(lambda one: json.dumps(one).encode()) | answers.map(lambda one: json.dumps(one).encode()),
)
def test_any_answer_is_a_token_or_a_pause(status, retry_after, body):
    try:
        told = MODULE.outcome(status, retry_after, body, "probe-1")
    except MODULE.LaterError as later:
        why, after_s = later.args
        assert why.isprintable()
        assert after_s is None or 1 <= after_s <= MODULE.PERSON_S
        return
    if status == 409:
        assert told is None
        return
    assert (status, told["token"]) == (200, TOKEN)
    if told["wireguard"] is not None:
        lines = [told["wireguard"]["address"], told["wireguard"]["endpoint"], *told["wireguard"]["allowed_ips"]]
        assert all(line.isprintable() for line in lines)  # they end up in a file of settings, a line each
