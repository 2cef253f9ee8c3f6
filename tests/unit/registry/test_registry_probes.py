"""Probes and tokens: shown once, stored hashed, void after rotation and revocation; several processes at once."""

import sqlite3
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem_server.registry import Registry, RegistryError, valid_name
from tandem_server.registry.bearer import probe_of


def test_the_file_holds_no_token_and_is_its_owners_only(registry):
    token = registry.probes.add("probe-1")
    registry.close()
    written = b"".join(path.read_bytes() for path in registry.file.parent.iterdir())
    assert token.encode() not in written
    assert token.removeprefix("tandem_").encode() not in written
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
def test_a_valid_name_is_a_plain_word(name):
    if valid_name(name):
        assert name == name.lower().strip("-")
        assert name.isascii()


@given(st.one_of(st.none(), st.text(), st.text().map("Bearer {}".format)))
def test_no_authorization_header_but_the_tokens_opens(shared, header):
    assert probe_of(shared, header) is None


def test_the_scheme_is_read_without_regard_to_case(registry):
    token = registry.probes.add("probe-1")
    assert probe_of(registry, f"bearer {token}") == "probe-1"
    assert probe_of(registry, f"Basic {token}") is None
    assert probe_of(registry, token) is None


@pytest.fixture
def registry(empty):
    return empty


def test_threads_write_at_once(registry):
    with ThreadPoolExecutor(3) as threads:
        list(threads.map(registry.probes.add, [f"probe-{number}" for number in range(75)]))
    assert len(registry.probes.all()) == 75


def test_threads_that_have_ended_leave_no_file_open(registry):
    def opened():
        return len(list(Path("/proc/self/fd").iterdir()))

    registry.probes.add("probe-1")
    before = opened()
    for _ in range(50):
        with ThreadPoolExecutor(1) as thread:
            thread.submit(registry.probes.active, "probe-1").result()
    assert opened() == before


def test_a_file_that_is_no_registry_is_refused_in_one_line(tmp_path):
    bad = tmp_path / "registry.sqlite"
    bad.write_text("this is no database, and long enough to be looked at as one" * 100)
    with pytest.raises(RegistryError, match="mend: "):
        Registry(bad)
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(RegistryError, match="another, later version"):
        Registry(other)
    with pytest.raises(RegistryError, match="mend: "):
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
