"""Probes and tokens: shown once, stored hashed, void after rotation and revocation; several processes at once."""

import sqlite3
import stat
import subprocess
import sys
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem_server.registry import Registry, RegistryError, valid_name
from tandem_server.registry.bearer import probe_of


@pytest.fixture
def registry(tmp_path):
    with Registry(tmp_path / "registry.sqlite") as opened:
        yield opened


def test_a_token_names_its_probe_until_it_is_rotated_or_revoked(registry):
    first = registry.probes.add("probe-1")
    other = registry.probes.add("probe-2")
    assert registry.probes.of_token(first) == "probe-1"
    second = registry.probes.rotate("probe-1")
    assert registry.probes.of_token(first) is None
    assert registry.probes.of_token(second) == "probe-1"
    registry.probes.revoke("probe-1")
    assert registry.probes.of_token(second) is None
    assert not registry.probes.active("probe-1")
    assert registry.probes.of_token(other) == "probe-2"
    third = registry.probes.rotate("probe-1")
    assert registry.probes.of_token(third) == "probe-1"


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
def test_no_authorization_header_but_the_tokens_opens(header):
    with Registry(REGISTRY_FILE) as registry:
        assert probe_of(registry, header) is None


def test_the_scheme_is_read_without_regard_to_case(registry):
    token = registry.probes.add("probe-1")
    assert probe_of(registry, f"bearer {token}") == "probe-1"
    assert probe_of(registry, f"Basic {token}") is None
    assert probe_of(registry, token) is None


@pytest.fixture(scope="module", autouse=True)
def _shared_file(tmp_path_factory):
    global REGISTRY_FILE
    REGISTRY_FILE = tmp_path_factory.mktemp("registry") / "registry.sqlite"
    with Registry(REGISTRY_FILE) as registry:
        registry.probes.add("probe-1")


ADD_MANY = """
import sys, pathlib
from tandem_server.registry import Registry
with Registry(pathlib.Path(sys.argv[1])) as registry:
    for i in range(25):
        registry.probes.add(f"{sys.argv[2]}-{i}")
"""


def test_processes_and_threads_write_at_once(tmp_path):
    file = tmp_path / "registry.sqlite"
    processes = [subprocess.Popen([sys.executable, "-c", ADD_MANY, str(file), name]) for name in ("a", "b")]
    with Registry(file) as registry:
        threads = [
            threading.Thread(target=lambda n=n: [registry.probes.add(f"t{n}-{i}") for i in range(25)]) for n in (1, 2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [process.wait(180) for process in processes] == [0, 0]
        assert len(registry.probes.all()) == 100


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
