"""``POST /v1/enrol`` over TLS: from `probe invite` to the hub's peers, and what is refused."""

import base64
import json
import os
import subprocess
import time
from datetime import datetime

import pytest
from enrolling import HUB_KEY
from hypothesis import given
from hypothesis import strategies as st

from support.hostile_json import any_json
from tandem_server.ingest.documents import InvalidEnrolment, is_key, read_enrolment
from tandem_server.registry.probes import FILE


def key():
    return base64.b64encode(os.urandom(32)).decode()


def asked_with(gateway, name, code):
    return {"probe": name, "code": code, "wireguard_public_key": key(), "ssh_host_keys": [gateway.host_key]}


def test_from_the_invitation_to_the_tunnel(gateway):
    begun_s = int(time.time())
    made = gateway.invite("probe-7", "--hours", "2")
    assert (made["probe"], sorted(made)) == ("probe-7", ["address", "code", "expires", "probe"])
    assert begun_s <= datetime.fromisoformat(made["expires"]).timestamp() - 2 * 3600 <= time.time()
    address, asked = made["address"], asked_with(gateway, "probe-7", made["code"])
    mine = asked["wireguard_public_key"]
    status, headers, answer = gateway.enrol(asked)
    assert (status, headers["cache-control"]) == (200, "no-store")
    assert answer["probe"] == "probe-7"
    assert answer["wireguard"] == {
        "address": f"{address}/16", "server_public_key": HUB_KEY, "endpoint": "192.0.2.1:51820",
        "allowed_ips": ["10.87.0.0/16"], "keepalive_s": 25,
    }  # fmt: skip
    section = f"# probe-7\n[Peer]\nPublicKey = {mine}\nAllowedIPs = {address}/32\n"
    assert section in (gateway.folder / FILE).read_text()  # by the gateway, at once
    assert section in gateway.run("peers")[1]
    line = f"probe-7,{address} {' '.join(gateway.host_key.split()[:2])}\n"
    known = gateway.folder / "known_hosts"  # OpenSSH itself finds it, by name and by address
    known.write_text(gateway.run("known-hosts")[1])
    for host in ("probe-7", address):
        found = subprocess.run(["ssh-keygen", "-F", host, "-f", known], capture_output=True, text=True, check=True)
        assert line in found.stdout
    token = gateway.enrol(asked)[2]["token"]  # the answer was lost
    assert [gateway.gateway("GET", "/v1/campaigns", token=one)[0] for one in (token, answer["token"])] == [200, 401]
    assert gateway.run("revoke", "probe-7")[0] == 0
    assert mine not in (gateway.folder / FILE).read_text() + gateway.run("peers")[1]
    assert line not in gateway.run("known-hosts")[1]
    assert gateway.gateway("GET", "/v1/campaigns", token=token)[0] == 401
    assert gateway.enrol(asked)[0] == 401


def test_all_refusals_of_a_code_are_one_answer(gateway):
    good = asked_with(gateway, "probe-8", gateway.invite("probe-8")["code"])
    assert gateway.enrol(good)[0] == 200
    wrong = [{"code": code} for code in ("invite_" + "A" * 43, "", "\ud800")]
    wrong += [{"probe": "probe-1"}, {"probe": "nobody"}, {"wireguard_public_key": key()}]
    assert [gateway.enrol(good | change)[::2] for change in wrong] == [(401, {"error": "no good code"})] * 6
    assert "the code of probe-8 came again with another key" in (gateway.folder / "serve.log").read_text()
    assert gateway.gateway("GET", "/v1/campaigns")[0] == 200  # probe-1 is as it was


def test_a_hub_without_its_key_uses_no_code_up(gateway):
    asked = asked_with(gateway, "probe-9", gateway.invite("probe-9", "--hours", "0.5")["code"])
    file = gateway.folder / "hub.pub"
    for spoil in (lambda: file.write_text(""), lambda: file.write_text("no key\n"), file.unlink):
        spoil()
        status, headers, _ = gateway.enrol(asked | {"wireguard_public_key": key()})
        assert (status, headers["retry-after"]) == (503, "30")
    file.write_text(HUB_KEY)
    assert gateway.enrol(asked)[0] == 200


def test_the_invitation_for_people_and_as_a_file_and_a_time_that_is_none(gateway, tmp_path):
    status, code, err = gateway.run("invite", "probe-1")
    assert (status, code.startswith("invite_"), code.count("\n")) == (0, True, 1)
    assert "probe-1 is registered: when this code is used, its token and its key of now are void\n" in err
    assert "address in the tunnel: 10.87.0." in err
    assert gateway.run("invite", "probe-10", "--code-file", tmp_path / "code")[:2] == (0, "")
    assert (tmp_path / "code").read_text().startswith("invite_")
    assert (tmp_path / "code").stat().st_mode & 0o777 == 0o600
    for hours in ("0", "-1", "nan", "721", "x"):
        with pytest.raises(SystemExit, match="2"):
            gateway.run("invite", "probe-1", "--hours", hours)


def test_who_was_invited_and_has_not_come_is_listed(gateway):
    gateway.invite("probe-30", "--hours", "0.0000001")
    gateway.invite("probe-31")
    lines = {line.split()[0]: line for line in gateway.run("list")[1].splitlines()}
    assert "invited, its code ended 20" in lines["probe-30"]
    assert lines["probe-30"].endswith("; hint: tandem-server probe invite probe-30")
    assert "invited, has a code until 20" in lines["probe-31"]
    rows = {row["name"]: row for row in json.loads(gateway.run("list", "--json")[1])}
    assert (rows["probe-31"]["state"], rows["probe-31"]["enrolled"]) == ("invited", None)
    assert rows["probe-31"]["address"].startswith("10.87.0.")
    assert rows["probe-1"]["name"] == "probe-1"


def test_what_is_no_enrolment_is_refused(gateway):
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
        status, _, answer = gateway.gateway("POST", "/v1/enrol", body, token="")
        assert (status, list(answer)) == (400, ["error"]), body[:60]
    assert gateway.gateway("POST", "/v1/enrol", b" " * 40_000, token="")[0] == 413


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
