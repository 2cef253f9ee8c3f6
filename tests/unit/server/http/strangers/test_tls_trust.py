"""Who is who: the probe checks the server's certificate, and the server renews it while it serves."""

import contextlib
import ipaddress
import shutil
import signal
import socket
import ssl
import time
from pathlib import Path

import pytest
from attacked import PATIENCE_S, Attacked

from support.serve_on_loopback import command, gateway_alone
from tandem.export.gateway import CertificateTimeError, GatewayAddress, Link, LinkError
from tandem_server.cli import tls as authority

TLS = ("ca.key", "ca.pem", "server.key", "server.pem")


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    with gateway_alone(tmp_path_factory.mktemp("alone"), kind=Attacked) as gateway:
        yield gateway


def link(server, ca=None, host="127.0.0.1"):
    address = GatewayAddress.of(
        f"https://{host}:{server.gateway_port}", ca or server.folder / "tls/ca.pem", server.folder / "token"
    )
    return contextlib.closing(Link("a", lambda: None, address))


def asked(connection):
    return connection.ask("GET", "/v1/campaigns", b"", {}).status


def serial(server):
    """Of the certificate that a new connection is shown; nothing is checked."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    plain = socket.create_connection(("127.0.0.1", server.gateway_port), PATIENCE_S)
    with context.wrap_socket(plain) as connection:
        return connection.getpeercert(binary_form=True)


def await_other(server, before):
    deadline = time.monotonic() + PATIENCE_S
    while serial(server) == before:
        assert time.monotonic() < deadline


def hang_up(server):
    server.process.send_signal(signal.SIGHUP)


def test_keys_are_their_owners_alone_and_the_certificate_is_a_good_one_by_name_and_by_address(alone):
    modes = {name: (alone.folder / "tls" / name).stat().st_mode & 0o777 for name in TLS}
    assert modes == {"ca.key": 0o600, "server.key": 0o600, "ca.pem": 0o644, "server.pem": 0o644}
    assert (alone.folder / "token").stat().st_mode & 0o777 == 0o600
    context = ssl.create_default_context(cafile=alone.folder / "tls/ca.pem")
    context.verify_flags |= ssl.VERIFY_X509_STRICT  # what Python 3.13 asks of every certificate
    for name in ("server.tandem.test", "127.0.0.1"):
        with alone.plain() as plain, context.wrap_socket(plain, server_hostname=name) as secured:
            assert secured.version() in ("TLSv1.2", "TLSv1.3")


def test_a_probe_trusts_its_servers_authority_and_name_only(alone, tmp_path):
    with link(alone) as good:
        assert asked(good) == 200
    assert command("tls", "--folder", tmp_path, "--name", "server.tandem.test", "--address", "127.0.0.1")[0] == 0
    for refused in (link(alone, tmp_path / "ca.pem"), link(alone, host="localhost")):
        with refused as other, pytest.raises(LinkError, match="certificate: "):
            asked(other)


def test_a_renewed_certificate_is_taken_over_and_no_probe_is_dropped(alone):
    before, ca = serial(alone), (alone.folder / "tls/ca.pem").read_bytes()
    with link(alone) as kept:
        assert asked(kept) == 200
        moved = kept.moved.payload_bytes
        assert command("tls", "--renew", "--folder", alone.folder / "tls") == (0, "", "")
        hang_up(alone)
        await_other(alone, before)
        assert asked(kept) == 200
        assert kept.moved.payload_bytes - moved < 1500, "the kept connection went on, without another handshake"
    assert (alone.folder / "tls/ca.pem").read_bytes() == ca
    with link(alone) as new:
        assert asked(new) == 200


def test_it_is_taken_over_without_being_told_and_half_of_it_is_not(alone, tmp_path):
    before = serial(alone)
    for name in TLS:
        shutil.copy2(alone.folder / "tls" / name, tmp_path / name)
    assert command("tls", "--renew", "--folder", tmp_path) == (0, "", "")
    (tmp_path / "server.key").replace(alone.folder / "tls/server.key")
    hang_up(alone)
    log = alone.folder / "serve.log"
    deadline = time.monotonic() + PATIENCE_S
    while "the certificate of before stays in use" not in log.read_text():
        assert time.monotonic() < deadline
    assert serial(alone) == before
    (tmp_path / "server.pem").replace(alone.folder / "tls/server.pem")
    await_other(alone, before)  # by its time of change alone


def test_one_that_has_ended_is_refused(alone):
    folder, before = alone.folder / "tls", serial(alone)
    here = [ipaddress.ip_address("127.0.0.1")]
    ended = authority.renew(*authority.authority_in(folder), "server.tandem.test", here, 0)
    for name, (content, _) in ended.items():
        (folder / name).write_bytes(content)
    hang_up(alone)
    await_other(alone, before)
    with link(alone) as probe, pytest.raises(CertificateTimeError, match="expired"):
        asked(probe)
    assert "hint: tandem-server tls --renew" in (alone.folder / "serve.log").read_text()
    before = serial(alone)
    assert command("tls", "--renew", "--folder", folder, "--address", "127.0.0.1") == (0, "", "")
    hang_up(alone)
    await_other(alone, before)
    with link(alone) as probe:
        assert asked(probe) == 200


def test_what_cannot_be_renewed_is_told_in_one_line(tmp_path):
    args = ("tls", "--renew", "--folder", tmp_path)
    assert command("tls", "--folder", tmp_path)[0] == 2
    assert command(*args)[0] == 2
    assert command("tls", "--folder", tmp_path, "--name", "a.example") == (0, "", "")
    for name, content in (("ca.key", None), ("ca.key", b"x"), ("ca.pem", b"x"), ("server.pem", b"x")):
        file = tmp_path / name
        kept = file.read_bytes()
        if content is None:
            file.unlink()
        else:
            file.write_bytes(content)
        status, _, told = command(*args)
        assert (status, told.count("\n"), "; hint: " in told) == (2, 1, True)
        file.write_bytes(kept)
    other = tmp_path / "other"
    assert command("tls", "--folder", other, "--name", "a.example") == (0, "", "")
    shutil.copy(other / "ca.key", tmp_path / "ca.key")
    assert "not the key of" in command(*args)[2]


def test_a_rotated_token_overlaps_until_the_probe_has_the_new_one(alone):
    """The kit goes on with its old token, learns the new one from its file, and the old one ends."""
    config = ("--config", alone.folder / "server.toml")
    file: Path = alone.folder / "token"
    with link(alone) as kit:
        assert asked(kit) == 200
        old = file.read_text()
        new = command("probe", "rotate", "probe-1", *config, "--keep-old-for", "3600")[1]
        assert asked(kit) == 200
        assert "old token until" in command("probe", "list", *config)[1]
        file.write_text(new)
        assert asked(kit) == 200
        newest = command("probe", "rotate", "probe-1", *config)[1]
        assert asked(kit) == 401
        file.write_text(newest)
        assert asked(kit) == 200
        assert "old token" not in command("probe", "list", *config)[1]
    for void in (old, new):
        file.write_text(void)
        with link(alone) as thief:
            assert asked(thief) == 401
    file.write_text(newest)
    with pytest.raises(SystemExit):
        command("probe", "rotate", "probe-1", *config, "--keep-old-for", "-1")
