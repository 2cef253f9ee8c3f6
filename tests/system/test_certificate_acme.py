"""Role ``certificate`` with a public authority, in a booted container: Debian's certbot against pebble, the small authority of Let's
Encrypt's makers. Its address and that the machine trusts its page are all that differs from Let's Encrypt; role ``firewall`` opens port 80,
role ``proxy`` serves what comes and what is renewed.
"""

from __future__ import annotations

import json
import os
import shlex
import socket
import ssl
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from targets import play as plays
from targets import story as stories
from targets.available import NEEDED
from targets.available import made as sources
from targets.ground import CONTROL, OFFICE, SERVER, SERVER_NAME, SERVER_PUBLIC, Ground
from targets.story import Story
from targets.vm_target import REPOSITORY

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(3600), NEEDED]
QUARTER_S = 90 * 86400
"""How long a certificate of Let's Encrypt holds."""


@contextmanager
def authority(ground: Ground) -> Iterator[str]:
    """On the control machine, which plays the internet; gives the certificate of its own page."""
    folder = ground.folder / "authority"
    (package,) = (ground.sources / "archive/pool").glob("pebble_*.deb")
    subprocess.run(["dpkg", "-x", package, folder], check=True)
    page = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    page += ["-subj", "/CN=authority", "-addext", f"subjectAltName=IP:{OFFICE},IP:127.0.0.1"]
    subprocess.run([*page, "-keyout", folder / "key.pem", "-out", folder / "page.pem"], check=True, capture_output=True)
    settings = {
        "listenAddress": f"{OFFICE}:14000",
        "managementListenAddress": "127.0.0.1:15000",
        "certificate": str(folder / "page.pem"),
        "privateKey": str(folder / "key.pem"),
        "httpPort": 80,
        "tlsPort": 443,
        "certificateValidityPeriod": QUARTER_S,
    }
    (folder / "pebble.json").write_text(json.dumps({"pebble": settings}))
    words = [folder / "usr/bin/pebble", "-strict", "-config", folder / "pebble.json", "-dnsserver", f"{CONTROL}:53"]
    # By itself it draws one request in twenty and refuses it; certbot asks once more, and one in four hundred would fail.
    drawn = {**os.environ, "PEBBLE_WFE_NONCEREJECT": "0"}
    with (folder / "log").open("wb") as log, subprocess.Popen(words, stdout=log, stderr=log, env=drawn) as process:
        try:
            yield (folder / "page.pem").read_text()
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """A bare machine that trusts the authority's page."""
    with ExitStack() as stack:
        told = stack.enter_context(stories.containers(tmp_path_factory.mktemp("acme"), sources(), kit_starts=False))
        page = stack.enter_context(authority(told.ground))
        there = "/usr/local/share/ca-certificates/authority.crt"
        told.told(SERVER, f"printf %s {shlex.quote(page)} | sudo tee {there}; sudo update-ca-certificates")
        yield told


def play(server: Story, **variables: object) -> plays.Played:
    """The roles of ``server.yml`` that have to do with it, in its order."""
    book = server.ground.folder / "certificate.yml"
    roles = ["tandem", "packages", "firewall", "certificate", "proxy"]
    book.write_text(json.dumps([{"hosts": "servers", "become": True, "roles": roles}]))
    given = plays.inventory(server.ground, {"tandem_checkout": str(REPOSITORY), **variables}, {})
    return plays.play(server.ground, str(book), given, log="certificate")


def acme(server: Story, **variables: object) -> plays.Played:
    address = f"https://{OFFICE}:14000/dir"
    return play(server, tandem_ca_file="", certificate_acme_directory=address, **variables)


def served(server: Story) -> str | None:
    """The serial number of the certificate that browsers get; None where it is not the authority's."""
    page = ssl.create_default_context(cafile=server.ground.folder / "authority/page.pem")
    with urllib.request.urlopen("https://127.0.0.1:15000/roots/0", context=page) as answer:
        context = ssl.create_default_context(cadata=answer.read().decode())
    try:
        with (
            socket.create_connection((SERVER_PUBLIC, 443), 30) as connection,
            context.wrap_socket(connection, server_hostname=SERVER_NAME) as wrapped,
        ):
            certificate = wrapped.getpeercert()
    except ssl.SSLCertVerificationError:
        return None
    assert certificate is not None
    return str(certificate["serialNumber"])


def test_from_the_fleets_own_certificate_to_one_of_a_public_authority_that_renews_by_itself(server: Story) -> None:
    own = play(server)
    assert own.exit == 0, own.output[-4000:]
    assert served(server) is None
    first = acme(server)
    assert first.exit == 0, first.output[-4000:]
    server.awaited("nginx has it", SERVER, "true", lambda _: served(server) is not None)
    before = served(server)
    again = acme(server)
    assert (again.exit, again.changes()) == (0, [])
    assert served(server) == before

    assert server.told(SERVER, "systemctl is-enabled certbot.timer; systemctl is-active certbot.timer") == (
        "enabled\nactive\n"
    )
    # As when two thirds of it are over; then what the timer starts.
    due = (
        "sudo sed -i 's/^# *renew_before_expiry.*/renew_before_expiry = 120 days/' /etc/letsencrypt/renewal/tandem.conf"
    )
    server.told(SERVER, f"{due}; sudo systemctl start certbot.service")
    server.awaited("nginx has the new one", SERVER, "true", lambda _: served(server) not in (before, None))
    assert server.told(SERVER, "stat -c '%U %a' /etc/tandem/tls/server.key") == "tandem-server 600\n"


def test_a_name_that_leads_nowhere_is_one_line(server: Story) -> None:
    played = acme(server, certificate_names=["other.tandem.test"])
    assert played.exit == 2
    line = next(line for line in played.output.splitlines() if "certbot got no certificate" in line)
    assert f"for {SERVER_NAME}: " in line
    assert "; hint: does the name lead to this machine" in line
