"""SSH host keys from a machine's console: whatever stands between, only whole and true keys are taken."""

import base64

import pytest
from console_keys import BEGIN, END, host_keys, known_hosts, tells_of
from hypothesis import given
from hypothesis import strategies as st


def key(kind="ssh-ed25519", blob=b"k" * 32):
    raw = len(kind).to_bytes(4, "big") + kind.encode() + len(blob).to_bytes(4, "big") + blob
    return f"{kind} {base64.b64encode(raw).decode()}"


def block(*lines):
    return "\n".join([BEGIN, *lines, END])


CONSOLE = f"""[    0.000000] Linux version 6.12
cloud-init[511]: ci-info: no authorized SSH keys fingerprints found
<14>Nov 22 05:00:00 cloud-init: #############################################################
{block(key("ecdsa-sha2-nistp256") + " root@ip-10-88-0-10", key() + " root@ip-10-88-0-10")}
Debian GNU/Linux 13 ip-10-88-0-10 ttyS0
"""


def test_of_a_console():
    assert host_keys(CONSOLE) == [key("ecdsa-sha2-nistp256"), key()]
    assert host_keys(CONSOLE.replace("\n", "\r\n")) == host_keys(CONSOLE)
    newer = key(blob=b"n" * 32)
    assert host_keys(CONSOLE + block(newer)) == [newer], "the last boot counts"
    assert host_keys(f"{BEGIN}\n{key()}") == [], "not whole yet"
    assert host_keys(f"{CONSOLE}{BEGIN}\n{newer}") == host_keys(CONSOLE)


@pytest.mark.parametrize(
    "line",
    [
        "ssh-ed25519",
        "ssh-ed25519 not*base64",
        "ssh-dss " + key().split()[1],
        "ssh-rsa " + key().split()[1],  # another kind inside than outside
        'command="reboot"',
        "",
    ],
)
def test_what_is_no_key_is_left_out(line):
    assert host_keys(block(line)) == []
    assert host_keys(block(line, key())) == [key()]


@given(st.text(), st.lists(st.sampled_from([BEGIN, END, key(), "\n", "\r", "x"])))
def test_any_console_gives_keys_or_nothing(noise, parts):
    found = host_keys(noise + "\n".join(parts))
    assert all(one == key() for one in found)


def test_the_file_tells_whose_it_is():
    text = known_hosts("2001:DB8::1", "i-1", [key()])
    assert text == f"# i-1, from its console\n2001:db8::1 {key()}\n"
    assert tells_of(text, "2001:db8::1", "i-1")
    assert not tells_of(text, "2001:db8::1", "i-2")
    assert not tells_of(text, "192.0.2.1", "i-1")
    assert not tells_of("", "192.0.2.1", "i-1")


@pytest.mark.parametrize("address", ["*", "server.example", "192.0.2.1 cert-authority", ""])
def test_only_an_address_becomes_a_line(address):
    with pytest.raises(ValueError, match="address"):
        known_hosts(address, "i-1", [key()])
