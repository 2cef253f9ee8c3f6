"""Probes, tokens and invitations: shown once, stored hashed, void after rotation and revocation; the peers follow."""

import base64
import ipaddress
import os
import sqlite3
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem_server.registry import (
    HUB_AND_PEOPLE,
    BadCode,
    NetworkFullError,
    Registry,
    RegistryError,
    probe_of,
    valid_name,
)
from tandem_server.registry.probes import FILE, known_hosts, peers, write_peers


def test_the_file_holds_no_token_and_no_code_and_is_its_owners_only(registry):
    secrets = [registry.probes.add("probe-1"), registry.enrolments.invite("probe-2", 3600, NETWORK).code]
    registry.close()
    written = b"".join(path.read_bytes() for path in registry.file.parent.iterdir())
    assert not [one for one in secrets if one.partition("_")[2].encode() in written]
    assert stat.S_IMODE(registry.file.stat().st_mode) == 0o600


def test_names_are_unique_and_safe(registry):
    registry.probes.add("probe-1")
    with pytest.raises(ValueError, match="already"):
        registry.probes.add("probe-1")
    for name in ("", "Probe", "a/b", "..", "-a", "a-", "a" * 64, "a\n"):
        with pytest.raises(ValueError, match="no probe name"):
            registry.probes.add(name)
    for action in (registry.probes.rotate, registry.probes.revoke):
        with pytest.raises(KeyError):
            action("nobody")


@given(st.text())
def test_a_valid_name_is_a_plain_word_and_no_text_is_a_token_or_a_code(shared, text):
    assert not valid_name(text) or (text == text.lower().strip("-") and text.isascii())
    for header in (None, text, f"Bearer {text}"):
        assert probe_of(shared, header) is None
    with pytest.raises(BadCode):
        redeem(shared, "probe-2", text, "k")


def test_the_scheme_is_read_without_regard_to_case(registry):
    token = registry.probes.add("probe-1")
    headers = (f"bearer {token}", f"Basic {token}", token)
    assert [probe_of(registry, header) for header in headers] == ["probe-1", None, None]


@pytest.fixture
def registry(empty):
    return empty


def test_threads_write_at_once_and_those_that_have_ended_leave_no_file_open(registry):
    def opened():
        return len(list(Path("/proc/self/fd").iterdir()))

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(registry.probes.add, [f"probe-{number}" for number in range(75)]))
    assert len(registry.probes.all()) == 75
    before = opened()
    for _ in range(50):  # one after the other: of several at once SQLite itself keeps some until all locks are gone
        with ThreadPoolExecutor(1) as thread:
            thread.submit(registry.probes.active, "probe-1").result()
    assert opened() <= before


def test_a_file_that_is_no_registry_is_refused_in_one_line(tmp_path):
    bad = tmp_path / "registry.sqlite"
    bad.write_text("this is no database, and long enough to be looked at as one" * 100)
    with pytest.raises(RegistryError, match="hint: "):
        Registry(bad)
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(RegistryError, match="another, later version"):
        Registry(other)
    with pytest.raises(RegistryError, match="hint: "):
        Registry(tmp_path / "registry.sqlite" / "below-a-file.sqlite")


def test_an_old_token_works_as_long_as_was_said_and_no_longer(registry, monkeypatch):
    first = registry.probes.add("probe-1")
    second = registry.probes.rotate("probe-1", keep_old_s=100)
    third = registry.probes.rotate("probe-1", keep_old_s=50)
    now = time.time_ns()
    for later_s, good in ((0, {first, second, third}), (60, {first, third}), (110, {third})):
        monkeypatch.setattr(time, "time_ns", lambda later_s=later_s: now + later_s * 10**9)
        assert {token for token in (first, second, third) if registry.probes.of_token(token) == "probe-1"} == good


def test_a_thief_keeps_nothing_of_an_overlap(registry):
    first = registry.probes.add("probe-1")
    second = registry.probes.rotate("probe-1", keep_old_s=100)
    registry.probes.revoke("probe-1")
    third = registry.probes.rotate("probe-1", keep_old_s=100)
    assert [registry.probes.of_token(token) for token in (first, second, third)] == [None, None, "probe-1"]


NETWORK = ipaddress.ip_network("10.87.0.0/16")
HOST_KEYS = ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGtleQ"]


def key():
    return base64.b64encode(os.urandom(32)).decode()


def redeem(registry, name, code, its_key, network=NETWORK):
    return registry.enrolments.redeem(name, code, its_key, HOST_KEYS, network)


def test_a_lost_answer_is_given_again_to_the_same_key_until_a_token_was_used(registry):
    code, mine = registry.enrolments.invite("probe-1", 3600, NETWORK).code, key()
    first, address = redeem(registry, "probe-1", code, mine)
    second, again = redeem(registry, "probe-1", code, mine)
    assert again == address
    with pytest.raises(BadCode, match="another key"):
        redeem(registry, "probe-1", code, key())
    assert [registry.probes.of_token(token) for token in (first, second)] == [None, "probe-1"]
    with pytest.raises(BadCode, match="had been used"):
        redeem(registry, "probe-1", code, mine)
    assert registry.probes.of_token(second) == "probe-1"


def test_a_code_ends_with_its_time_but_a_used_one_not_before_a_day(registry, monkeypatch):
    now = time.time_ns()
    codes = {name: registry.enrolments.invite(name, 3600, NETWORK).code for name in ("late", "lost")}
    mine = key()

    def at(hours):
        monkeypatch.setattr(time, "time_ns", lambda: now + int(hours * 3600e9))

    at(0.99)
    redeem(registry, "lost", codes["lost"], mine)
    at(1.01)
    with pytest.raises(BadCode, match="after its end"):
        redeem(registry, "late", codes["late"], key())
    redeem(registry, "lost", codes["lost"], mine)
    at(24.98)
    redeem(registry, "lost", codes["lost"], mine)
    at(25.1)
    with pytest.raises(BadCode, match="after its end"):
        redeem(registry, "lost", codes["lost"], mine)


def test_every_other_code_is_refused_and_changes_nothing(registry):
    token = registry.probes.add("probe-2")
    code = registry.enrolments.invite("probe-1", 3600, NETWORK).code
    newer = registry.enrolments.invite("probe-1", 3600, NETWORK).code
    for name, told in (("probe-1", code), ("probe-1", newer[:-1]), ("probe-1", ""), ("probe-2", newer)):
        with pytest.raises(BadCode):
            redeem(registry, name, told, key())
    registry.enrolments.invite("probe-3", 3600, NETWORK)
    registry.probes.revoke("probe-3")  # it never came: its code is void all the same
    assert [one.name for one in registry.probes.all()] == ["probe-2"]
    assert registry.probes.of_token(token) == "probe-2"
    assert redeem(registry, "probe-1", newer, key())


def test_a_new_card_voids_the_token_and_key_of_the_one_before_and_keeps_the_address(registry):
    first, address = redeem(registry, "probe-1", registry.enrolments.invite("probe-1", 60, NETWORK).code, key())
    kept = registry.probes.rotate("probe-1", keep_old_s=1000)
    code, mine = registry.enrolments.invite("probe-1", 60, NETWORK).code, key()
    assert [registry.probes.of_token(token) for token in (first, kept)] == ["probe-1"] * 2  # which ends no code
    for _ in range(2):
        second, again = redeem(registry, "probe-1", code, mine)
        assert again == address
    assert [registry.probes.of_token(token) for token in (first, kept, second)] == [None, None, "probe-1"]
    assert peers(registry.enrolments.all()) == f"# probe-1\n[Peer]\nPublicKey = {mine}\nAllowedIPs = {address}/32\n"


def test_a_revoked_probe_is_no_peer_and_keeps_its_address_for_a_new_invitation(registry, tmp_path):
    for name in ("probe-1", "probe-2"):
        redeem(registry, name, registry.enrolments.invite(name, 60, NETWORK).code, key())
    write_peers(tmp_path, registry.enrolments)
    assert (tmp_path / FILE).read_text().count("[Peer]") == 2
    registry.probes.revoke("probe-1")
    write_peers(tmp_path, registry.enrolments)
    assert (tmp_path / FILE).read_text() == peers(registry.enrolments.all())
    assert "probe-1" not in peers(registry.enrolments.all()) + known_hosts(registry.enrolments.all())
    assert registry.enrolments.invite("probe-3", 60, NETWORK).address == f"10.87.0.{HUB_AND_PEOPLE + 3}"
    assert registry.enrolments.invite("probe-1", 60, NETWORK).address == f"10.87.0.{HUB_AND_PEOPLE + 1}"


def test_a_revoked_probe_can_stay_a_peer_until_it_is_wiped(registry):
    token, _ = redeem(registry, "probe-1", registry.enrolments.invite("probe-1", 60, NETWORK).code, key())
    assert registry.probes.revoke("probe-1", keep_peer=True)
    assert registry.probes.of_token(token) is None
    assert "probe-1" in peers(registry.enrolments.all())
    assert not registry.probes.revoke("probe-1", keep_peer=True)
    assert registry.probes.revoke("probe-1")
    assert "probe-1" not in peers(registry.enrolments.all())
    assert not registry.probes.revoke("probe-1")


def test_a_network_that_is_full_says_so_and_one_that_was_changed_gives_new_addresses(registry):
    small = ipaddress.ip_network("192.168.9.0/27")
    given = [registry.enrolments.invite(f"probe-{n}", 60, small).address for n in range(15)]
    assert (given[0], given[-1], len(set(given))) == ("192.168.9.16", "192.168.9.30", 15)
    with pytest.raises(NetworkFullError, match="no address left"):
        registry.enrolments.invite("one-more", 60, small)
    assert registry.enrolments.invite("probe-0", 60, ipaddress.ip_network("fd00:87::/64")).address == "fd00:87::10"


def test_without_a_tunnel_there_are_host_keys_and_no_peers(registry):
    code = registry.enrolments.invite("probe-1", 60, None).code
    assert redeem(registry, "probe-1", code, key(), None)[1] is None
    assert peers(registry.enrolments.all()) == ""
    assert known_hosts(registry.enrolments.all()) == f"probe-1 {HOST_KEYS[0]}\n"


ENROL_MANY = """
import base64, ipaddress, os, pathlib, sys
from tandem_server.registry import Registry
from tandem_server.registry.probes import write_peers
file = pathlib.Path(sys.argv[1])
network = ipaddress.ip_network("10.87.0.0/16")
with Registry(file) as registry:
    for i in range(12):
        name = f"{sys.argv[2]}-{i}"
        code = registry.enrolments.invite(name, 60, network).code
        key = base64.b64encode(os.urandom(32)).decode()
        registry.enrolments.redeem(name, code, key, ["ssh-ed25519 AAAA"], network)
        write_peers(file.parent, registry.enrolments)
"""


def test_several_processes_enrol_at_once_and_the_hubs_file_has_all(tmp_path):
    file = tmp_path / "registry.sqlite"
    processes = [subprocess.Popen([sys.executable, "-c", ENROL_MANY, str(file), name]) for name in ("a", "b", "c")]
    assert [process.wait(180) for process in processes] == [0, 0, 0]
    with Registry(file) as registry:
        enrolled = registry.enrolments.all()
        assert len({one.address for one in enrolled}) == 36
        assert (tmp_path / FILE).read_text() == peers(enrolled)
        assert peers(enrolled).count("[Peer]") == 36
