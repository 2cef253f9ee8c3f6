"""``POST /v1/enrol`` over TLS at a whole server: from `probe invite` to the hub's peers, and what is refused."""

import base64
import json
import os
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.hostile_json import any_json
from support.serve_on_loopback import command, whole_server
from tandem_server.ingest.documents import InvalidEnrolment, is_key, read_enrolment
from tandem_server.registry.probes import FILE

HUB_KEY = base64.b64encode(bytes(range(32))).decode()


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    """A whole server with a tunnel; its log holds no code, no token and no traceback in the end."""

    def with_a_tunnel(folder):
        with (folder / "server.toml").open("a") as config:
            config.write(
                '[wireguard]\nnetwork = "10.87.0.0/16"\nendpoint = "192.0.2.1:51820"\npublic_key_file = "hub.pub"\n'
            )
        (folder / "hub.pub").write_text(HUB_KEY + "\n")

    with whole_server(tmp_path_factory.mktemp("server"), with_a_tunnel) as server:
        server.secrets = []
        yield server
    log = (server.folder / "serve.log").read_text()
    assert "Traceback" not in log
    assert server.secrets
    assert not [secret for secret in server.secrets if secret in log]


@pytest.fixture(scope="module")
def host_key(tmp_path_factory):
    file = tmp_path_factory.mktemp("ssh") / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "root@probe", "-f", file], check=True)
    return file.with_name("key.pub").read_text().strip()


def key():
    return base64.b64encode(os.urandom(32)).decode()


def invite(hub, name, *more):
    status, code, told = command("probe", "invite", name, "--config", hub.folder / "server.toml", *more)
    assert status == 0
    hub.secrets.append(code.strip() or more[-1].read_text().strip())
    return code.strip(), told


def enrol(hub, asked):
    status, headers, answer = hub.https(hub.gateway_port, "POST", "/v1/enrol", json.dumps(asked), token="")
    if "token" in answer:
        hub.secrets.append(answer["token"])
    return status, headers, answer


def test_from_the_invitation_to_the_tunnel(hub, host_key):
    code, told = invite(hub, "probe-7")
    address = told.rpartition("address in the tunnel: ")[2].strip()
    mine = key()
    asked = {"probe": "probe-7", "code": code, "wireguard_public_key": mine, "ssh_host_keys": [host_key]}
    status, headers, answer = enrol(hub, asked)
    assert (status, headers["cache-control"]) == (200, "no-store")
    assert answer["probe"] == "probe-7"
    assert answer["wireguard"] == {
        "address": f"{address}/16", "server_public_key": HUB_KEY, "endpoint": "192.0.2.1:51820",
        "allowed_ips": ["10.87.0.0/16"], "keepalive_s": 25,
    }  # fmt: skip
    config = ("--config", hub.folder / "server.toml")
    section = f"# probe-7\n[Peer]\nPublicKey = {mine}\nAllowedIPs = {address}/32\n"
    assert section in (hub.folder / FILE).read_text()  # by the gateway, at once
    assert section in command("probe", "peers", *config)[1]
    line = f"probe-7,{address} {' '.join(host_key.split()[:2])}\n"
    assert line in command("probe", "known-hosts", *config)[1]
    known = hub.folder / "known_hosts"  # OpenSSH itself finds it, by name and by address
    known.write_text(command("probe", "known-hosts", *config)[1])
    for host in ("probe-7", address):
        found = subprocess.run(["ssh-keygen", "-F", host, "-f", known], capture_output=True, text=True, check=True)
        assert line in found.stdout
    assert enrol(hub, asked)[2]["token"] != answer["token"]  # the answer was lost
    token = enrol(hub, asked)[2]["token"]
    assert hub.gateway("POST", "/v1/records", "", token=token)[0] == 200
    assert hub.gateway("POST", "/v1/records", "", token=answer["token"])[0] == 401
    assert command("probe", "revoke", "probe-7", *config)[0] == 0
    assert mine not in (hub.folder / FILE).read_text() + command("probe", "peers", *config)[1]
    assert line not in command("probe", "known-hosts", *config)[1]
    assert hub.gateway("POST", "/v1/records", "", token=token)[0] == 401
    assert enrol(hub, asked)[0] == 401


def test_all_refusals_of_a_code_are_one_answer(hub, host_key):
    code, _ = invite(hub, "probe-8")
    good = {"probe": "probe-8", "code": code, "wireguard_public_key": key(), "ssh_host_keys": [host_key]}
    assert enrol(hub, good)[0] == 200
    wrong = [{"code": code} for code in ("invite_" + "A" * 43, "", "\ud800")]
    wrong += [{"probe": "probe-1"}, {"probe": "nobody"}, {"wireguard_public_key": key()}]
    assert [enrol(hub, good | change)[::2] for change in wrong] == [(401, {"error": "no good code"})] * 6
    log = (hub.folder / "serve.log").read_text()
    assert "the code of probe-8 came again with another key" in log
    assert hub.gateway("POST", "/v1/records", "")[0] == 200  # probe-1 is as it was


def test_a_hub_without_its_key_uses_no_code_up(hub, host_key):
    code, _ = invite(hub, "probe-9", "--hours", "0.5")
    asked = {"probe": "probe-9", "code": code, "wireguard_public_key": key(), "ssh_host_keys": [host_key]}
    file = hub.folder / "hub.pub"
    for spoil in (lambda: file.write_text(""), lambda: file.write_text("no key\n"), file.unlink):
        spoil()
        status, headers, _ = enrol(hub, asked | {"wireguard_public_key": key()})
        assert (status, headers["retry-after"]) == (503, "30")
    file.write_text(HUB_KEY)
    assert enrol(hub, asked)[0] == 200


def test_the_invitation_as_json_and_as_a_file_and_a_time_that_is_none(hub, tmp_path):
    invited = ("probe", "invite", "probe-1", "--config", hub.folder / "server.toml")
    status, out, err = command(*invited, "--json")
    made = json.loads(out)
    hub.secrets.append(made["code"])
    assert (status, made["probe"], sorted(made)) == (0, "probe-1", ["address", "code", "expires", "probe"])
    assert err == "probe-1 is registered: when this code is used, its token and its key of now are void\n"
    assert invite(hub, "probe-10", "--code-file", tmp_path / "code")[0] == ""
    assert (tmp_path / "code").read_text().startswith("invite_")
    assert (tmp_path / "code").stat().st_mode & 0o777 == 0o600
    for hours in ("0", "-1", "nan", "721", "x"):
        with pytest.raises(SystemExit, match="2"):
            command(*invited, "--hours", hours)


def test_who_was_invited_and_has_not_come_is_listed(hub):
    config = ("--config", hub.folder / "server.toml")
    invite(hub, "probe-30", "--hours", "0.0000001")
    invite(hub, "probe-31")
    lines = {line.split()[0]: line for line in command("probe", "list", *config)[1].splitlines()}
    assert "invited, its code ended 20" in lines["probe-30"]
    assert lines["probe-30"].endswith("; hint: tandem-server probe invite probe-30")
    assert "invited, has a code until 20" in lines["probe-31"]
    rows = {row["name"]: row for row in json.loads(command("probe", "list", "--json", *config)[1])}
    assert (rows["probe-31"]["state"], rows["probe-31"]["enrolled"]) == ("invited", None)
    assert rows["probe-31"]["address"].startswith("10.87.0.")
    assert rows["probe-1"]["name"] == "probe-1"


def test_what_is_no_enrolment_is_refused(hub):
    good = {"probe": "a", "code": "b", "wireguard_public_key": HUB_KEY}
    for body in (
        b"",
        b"[]",
        b"{}",
        b"\xff",
        b'{"probe": "a", "code": "b", "wireguard_public_key": "c", "ssh_host_keys": ["d"]}',
        b"[" * 20_000,
        json.dumps(good | {"ssh_host_keys": ["ssh-rsa x\n* y"]}).encode(),
        json.dumps(good | {"ssh_host_keys": []}).encode(),
    ):
        status, _, answer = hub.https(hub.gateway_port, "POST", "/v1/enrol", body, token="")
        assert (status, list(answer)) == (400, ["error"]), body[:60]
    assert hub.https(hub.gateway_port, "POST", "/v1/enrol", b" " * 40_000, token="")[0] == 413


json_values, keys = any_json(), st.binary(min_size=32, max_size=32).map(lambda raw: base64.b64encode(raw).decode())
host_keys = st.lists(st.just(f"ssh-ed25519 {base64.b64encode(b'...kind').decode()}") | json_values, max_size=9)
texts = dict.fromkeys(("probe", "code"), st.text() | json_values)
named = st.fixed_dictionaries(
    {}, optional={**texts, "wireguard_public_key": keys | st.text(), "ssh_host_keys": host_keys}
)


@given(st.text() | json_values.map(json.dumps) | named.map(json.dumps))
def test_whatever_comes_is_read_or_refused_and_ends_no_line(text):
    try:
        asked = read_enrolment(text)
    except InvalidEnrolment:
        return
    assert is_key(asked.wireguard_public_key)
    assert all(len(one.split(" ")) == 2 and one.isascii() and one.isprintable() for one in asked.ssh_host_keys)


@given(st.binary(min_size=4, max_size=60), st.text(alphabet=st.characters(max_codepoint=0x17F), max_size=30))
def test_a_host_key_that_is_taken_is_one_line_of_its_own_type(raw, comment):
    inner = b"\0\0\0\x0bssh-ed25519" + raw + bytes(16)
    line = f"ssh-ed25519 {base64.b64encode(inner).decode()} {comment}"
    text = json.dumps({"probe": "p", "code": "c", "wireguard_public_key": HUB_KEY, "ssh_host_keys": [line]})
    try:
        (kept,) = read_enrolment(text).ssh_host_keys
    except InvalidEnrolment:
        assert not (comment.isascii() and comment.isprintable())
        return
    assert kept == " ".join(line.split(" ")[:2])
    with pytest.raises(InvalidEnrolment, match="another type"):
        read_enrolment(text.replace("ssh-ed25519 ", "ssh-rsa "))
