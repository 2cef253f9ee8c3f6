"""A fleet made whole in one step, and kits added to it."""

from __future__ import annotations

import datetime
import re
import secrets
import shutil
import tempfile
import zoneinfo
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tandem_fleet.files import KEY, FleetError, encrypted, group, load, make_key, parse, replace

KIT = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
"""A kit's name is its host name, and its name at the server."""
SSH_KEY = re.compile(r"(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp\d+|sk-[a-z0-9@.-]+) [A-Za-z0-9+/]{40,}={0,3}( .*)?")
_SERVER = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*|[0-9a-fA-F:]+")
_AUTHORITY_DAYS = 3650
_COUNTRIES = Path("/usr/share/zoneinfo/iso3166.tab")
NO_ZONE = "an IANA name, such as Europe/Berlin (timedatectl list-timezones)"
_PLAIN = re.compile(r"[^\s\"'%$\\{}#]+")
"""A folder's path that can stand in an option of ssh."""

_HOSTS = """---
# Server and kits. One kit more: ./kit fleet add-kit NAME -i DIR
all:
  children:
    servers:
      hosts:
        server:
{address}          ansible_user: {login}
          ansible_ssh_common_args: -o "UserKnownHostsFile={{{{ inventory_dir }}}}/known_hosts ~/.ssh/known_hosts"
    probes:
      vars:
        # Through the server's tunnel, once `./kit provision enrolled` wrote the kit's address there into known_hosts.
        # A kit on the desk: -l KIT -e ansible_host=KIT.local
        ansible_user: "{{{{ tandem_user }}}}"
        ansible_host: "{{{{ fleet_tunnel or inventory_hostname ~ '.local' }}}}"
        ansible_ssh_common_args: >-
          -o HostKeyAlias={{{{ inventory_hostname }}}} -o UserKnownHostsFile={{{{ inventory_dir }}}}/known_hosts
          {{{{ fleet_jump if ansible_host == fleet_tunnel else '' }}}}
        fleet_tunnel: >-
          {{{{ (lookup('ansible.builtin.file', inventory_dir ~ '/known_hosts')
             | regex_search('(?m)^' ~ inventory_hostname ~ ',(\\S+) ', '\\1') or ['']) | first }}}}
        fleet_server: "{{{{ hostvars[groups['servers'][0]] }}}}"
        fleet_jump: >-
          -o "ProxyCommand=ssh -o 'UserKnownHostsFile={{{{ inventory_dir }}}}/known_hosts ~/.ssh/known_hosts'
          -W '[%h]:%p' {{{{ fleet_server.ansible_user }}}}@{{{{ fleet_server.ansible_host | default('server') }}}}"
      hosts:
"""
_ALL = """---
# What holds for the whole fleet; a kit's own file overrides it. Every variable: ansible/roles/*/meta/argument_specs.yml
# After a change: ./kit fleet check DIR
{name}tandem_user: tandem-admin
# The kits' local time: windows of campaigns, uploads at night.
base_time_zone: {timezone}
# Who may log in.
tandem_operator_keys:
{keys}# Where the kits are used; without it their Wi-Fi stays off.
tandem_wifi:
  country: {country}
"""
_AWS = """# The server's machine. Its price a month is told before anything is made.
aws_name: {name}
aws_region: eu-central-1
"""
KIT_FILE = """---
# What is told of this kit alone. A SIM's PIN: ./kit fleet secret {kit} secret_pin_a -i DIR
tandem_paths: found
# The status LED of the case, by its GPIOs:
# tandem_status_led: {{red: 17, green: 27, blue: 22}}
"""


@dataclass(frozen=True)
class Wanted:
    """The answers. ``server``: aws or an address; ``name``: what probes and people call it, empty for its address on AWS; ``timezone``: of
    the kits, empty for this machine's."""

    server: str
    name: str
    kits: list[str]
    country: str
    keys: list[str]
    login: str = "admin"
    certificate: str = "own"
    wifi: str = ""
    wifi_password: str = ""
    timezone: str = ""


def make(folder: Path, wanted: Wanted) -> None:
    """Make the fleet in ``folder``, which is absent or empty. FleetError: an answer or the folder does not fit; nothing was made."""
    place = folder.absolute()
    _refuse(place, wanted)
    made = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
    try:
        _fill(made, place.name, wanted)
        made.replace(place)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise


def _refuse(place: Path, wanted: Wanted) -> None:
    if not _PLAIN.fullmatch(str(place)):
        raise FleetError(place, "ssh cannot take this path as an option", "a path without blanks, quotes, %, $ and #")
    if not place.parent.is_dir():
        raise FleetError(place.parent, "no such folder", f"mkdir -p {place.parent}")
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise FleetError(place, "is there already, and is not empty", f"another name, or ./kit fleet check {place}")
    if not _SERVER.fullmatch(wanted.server):
        raise FleetError(
            "--server", f"{wanted.server!r} is no address", "aws, a DNS name or an address, without https://"
        )
    if not _SERVER.fullmatch(wanted.name or "aws"):
        raise FleetError("--name", f"{wanted.name!r} is no name", "a DNS name or an address, without https://")
    if not wanted.kits:
        raise FleetError("--kit", "no kit is named", "--kit kit-01")
    for kit in wanted.kits:
        refuse_kit(kit, wanted.kits)
    known = [line[:2] for line in _COUNTRIES.read_text().splitlines()] if _COUNTRIES.exists() else [wanted.country]
    if not re.fullmatch("[A-Z]{2}", wanted.country) or wanted.country not in known:
        raise FleetError("--country", f"{wanted.country!r} is no country", "its ISO 3166 code, such as DE, GB or US")
    zones = zoneinfo.available_timezones()
    if wanted.timezone and zones and wanted.timezone not in zones:
        raise FleetError("--timezone", f"{wanted.timezone!r} is no time zone", NO_ZONE)
    if not wanted.keys:
        raise FleetError(
            "--ssh-key", "no public SSH key in ~/.ssh", "make one with ssh-keygen -t ed25519, or --ssh-key FILE.pub"
        )
    if wanted.certificate == "acme" and not re.search("[a-zA-Z]", wanted.name):
        raise FleetError("--certificate", "acme needs a DNS name", "--name tandem.example.org, or --certificate own")


def here() -> str:
    """The name of this machine's time zone; Etc/UTC where it has none."""
    try:
        name = str(Path("/etc/localtime").readlink()).partition("zoneinfo/")[2]
    except OSError:
        name = ""
    return name if name in zoneinfo.available_timezones() else "Etc/UTC"


def refuse_kit(kit: str, kits: list[str]) -> None:
    """FleetError where ``kit`` is no host name, or ``kits`` has it twice."""
    if not KIT.fullmatch(kit):
        raise FleetError("--kit", f"{kit!r} is no host name", "lower-case letters, digits and -, such as kit-01")
    if kits.count(kit) > 1 or kit == "server":
        raise FleetError("--kit", f"the name {kit} is taken", "a name of its own for each kit")


def _fill(made: Path, name: str, wanted: Wanted) -> None:
    aws, own, key = wanted.server == "aws", wanted.certificate == "own", make_key()
    called = wanted.name or ("" if aws else wanted.server)
    hosts = _HOSTS.format(address="" if aws else f"          ansible_host: {wanted.server}\n", login=wanted.login)
    everyone = _ALL.format(
        timezone=wanted.timezone or here(),
        name=f'tandem_server_name: "{called}"\n'
        if called
        else "# tandem_server_name is the server's address on AWS: aws.yml\n",
        keys="".join(f"  - {line}\n" for line in wanted.keys),
        country=wanted.country,
    )
    if wanted.wifi:
        everyone += f"  ssid: {_quoted(wanted.wifi)}\n" + encrypted(key, "password", wanted.wifi_password, 2)
    if aws:
        aws_name = name if re.fullmatch("[a-z0-9][a-z0-9-]{0,39}", name) else "tandem"
        everyone += _AWS.format(name=aws_name)
    if own:
        passphrase = secrets.token_hex(24)
        certificate, sealed = authority(name, passphrase)
        everyone += '# The fleet\'s own CA; ca.key is encrypted with the passphrase.\ntandem_ca_file: "{{ inventory_dir }}/ca.pem"\n'
        everyone += encrypted(key, "certificate_authority_passphrase", passphrase)
        replace(made / "ca.pem", certificate)
        replace(made / "ca.key", sealed, 0o600)
    for folder in ("group_vars", "host_vars"):
        (made / folder).mkdir()
    replace(made / "hosts.yml", hosts + "".join(f"        {kit}:\n" for kit in wanted.kits))
    replace(made / "group_vars/all.yml", everyone)
    for kit in wanted.kits:
        replace(made / f"host_vars/{kit}.yml", KIT_FILE.format(kit=kit))
    replace(made / KEY, key, 0o600)
    replace(made / ".gitignore", f"/{KEY}\n/*.invite\n/*.img\n/backups/\n")
    replace(made / "known_hosts", "")


def authority(name: str, passphrase: str) -> tuple[str, str]:
    """The fleet's own CA: (certificate, key), PEM; the key is encrypted with ``passphrase``. ``name``: the fleet's, in the subject."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"Tandem CA of {name}"[:64])])
    now = datetime.datetime.now(datetime.UTC)
    signs_only = x509.KeyUsage(False, False, False, False, False, True, True, False, False)  # certificates and lists
    certificate = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))  # clocks differ
        .not_valid_after(now + datetime.timedelta(days=_AUTHORITY_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(signs_only, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    encryption = serialization.BestAvailableEncryption(passphrase.encode())
    sealed = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
    return certificate.public_bytes(serialization.Encoding.PEM).decode(), sealed.decode()


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def add_kit(folder: Path, kit: str) -> None:
    """One kit more: a line at the end of hosts.yml, after the others, and its file. FleetError: it is there, or cannot be."""
    file, own = folder / "hosts.yml", folder / f"host_vars/{kit}.yml"
    kits = list(group(load(file), "probes"))
    refuse_kit(kit, [*kits, kit])
    before = file.read_text()
    after = before.rstrip("\n") + f"\n        {kit}:\n"
    try:
        fits = list(group(parse(file, after), "probes")) == [*kits, kit]
    except FleetError:
        fits = False
    if not fits:
        raise FleetError(file, "does not end with the kits any more", f"write {kit}: under probes, hosts by hand")
    own.parent.mkdir(exist_ok=True)
    if not own.exists():
        replace(own, KIT_FILE.format(kit=kit))
    replace(file, after)
