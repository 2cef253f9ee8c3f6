"""``tandem-server tls``: a certificate authority of one's own and the server's certificate, renewed by the same authority."""

from __future__ import annotations

import argparse
import ipaddress
import re
from argparse import Namespace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tandem_server.cli.command import Actions, ConfigError, add_command
from tandem_server.durable import write_whole

_HOST = re.compile(
    r"(?=.{1,253}\Z)[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*\Z"
)
_FILES = ("ca.pem", "ca.key", "server.pem", "server.key")
_AUTHORITY_DAYS = 3650
"""Every probe has its ca.pem: it must outlive many certificates."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def add(commands: Actions[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = add_command(
        commands,
        "tls",
        _tls,
        "make a certificate for the server",
        "Make ca.pem, ca.key, server.pem and server.key in FOLDER. Probes get ca.pem. With --renew: a new certificate and key"
        " by the authority that is there; probes notice nothing, and a server that runs takes them over by itself. ca.key is needed for"
        " that only: keep it elsewhere.",
        config=False,
    )
    parser.add_argument("--folder", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--name", metavar="HOST", help="the server's host name; with --renew as it was")
    parser.add_argument(
        "--address",
        action="append",
        default=[],
        metavar="IP",
        help="also an address; may be repeated; with --renew as they were",
    )
    parser.add_argument("--days", type=int, default=825, help="valid for so many days (1 to 3650, default %(default)s)")
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--renew", action="store_true", help="a new certificate and key by the authority in FOLDER (ca.pem, ca.key)"
    )
    how.add_argument(
        "--force", action="store_true", help="replace what is there, the authority too: probes need the new ca.pem"
    )


def _tls(args: Namespace) -> int:
    if not 1 <= args.days <= _AUTHORITY_DAYS:
        raise ConfigError(f"--days {args.days}; hint: 1 to {_AUTHORITY_DAYS}")
    try:
        addresses: list[Address] = [ipaddress.ip_address(address) for address in args.address]
    except ValueError as error:
        raise ConfigError(f"--address: {error}; hint: an IPv4 or IPv6 address") from error
    if args.name is not None and not _HOST.match(args.name):
        raise ConfigError(f"--name {args.name!r} is no host name; hint: as server.example.org")
    if args.renew:
        name, addresses_there = _names_of(args.folder / "server.pem")
        made = renew(*authority_in(args.folder), args.name or name, addresses or addresses_there, args.days)
    else:
        if args.name is None:
            raise ConfigError(
                "--name is missing; hint: --name HOST, or --renew for the names of the certificate that is there"
            )
        there = [name for name in _FILES if (args.folder / name).exists()]
        if there and not args.force:
            hint = "--renew keeps the authority; --force replaces it, and probes need the new ca.pem"
            raise ConfigError(f"{args.folder / there[0]} is there already; hint: {hint}")
        args.folder.mkdir(parents=True, exist_ok=True)
        made = make(args.name, addresses, args.days)
    for name, (content, mode) in made.items():
        write_whole(args.folder / name, content, mode)
    return 0


def make(host: str, addresses: list[Address], days: int) -> dict[str, tuple[bytes, int]]:
    """Content and mode of the four files. Keys are on P-256; valid from an hour ago, for clocks that run behind."""
    start = datetime.now(UTC) - timedelta(hours=1)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"Tandem authority of {host[:40]}")])
    authority = (
        _builder(name, name, key.public_key(), start, start + timedelta(days=_AUTHORITY_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(sign_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return {
        "ca.key": (_pem(key), 0o600),
        **renew(authority, key, host, addresses, days),
        "ca.pem": (authority.public_bytes(serialization.Encoding.PEM), 0o644),
    }


def renew(
    authority: x509.Certificate,
    authority_key: ec.EllipticCurvePrivateKey,
    host: str,
    addresses: list[Address],
    days: int,
) -> dict[str, tuple[bytes, int]]:
    """A new key and certificate of the server, by this authority, whose own end is the latest."""
    start = datetime.now(UTC) - timedelta(hours=1)
    end = min(start + timedelta(days=days), authority.not_valid_after_utc)
    key = ec.generate_private_key(ec.SECP256R1())
    server_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host[:64])])
    names: list[x509.GeneralName] = [x509.DNSName(host), *(x509.IPAddress(address) for address in addresses)]
    server = (
        _builder(server_name, authority.subject, key.public_key(), start, end)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(sign_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    return {"server.key": (_pem(key), 0o600), "server.pem": (server.public_bytes(serialization.Encoding.PEM), 0o644)}


def authority_in(folder: Path) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    """The one in ``folder``; ConfigError."""
    hint = "hint: put the authority's ca.pem and ca.key there; without them, --force makes a new authority"
    try:
        certificate = x509.load_pem_x509_certificate((folder / "ca.pem").read_bytes())
        key = serialization.load_pem_private_key((folder / "ca.key").read_bytes(), None)
    except FileNotFoundError as error:
        raise ConfigError(f"{error.filename} is not there; {hint}") from error
    except (ValueError, TypeError) as error:
        raise ConfigError(f"{folder}: ca.pem or ca.key cannot be read; {hint}") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
        raise ConfigError(f"{folder}: ca.key is not the key of ca.pem; {hint}")
    if certificate.not_valid_after_utc <= datetime.now(UTC):
        raise ConfigError(
            f"{folder / 'ca.pem'} ended on {certificate.not_valid_after_utc.date()}; hint: --force makes a new authority"
        )
    return certificate, key


def _names_of(file: Path) -> tuple[str, list[Address]]:
    """Host name and addresses of the certificate that is there; ConfigError."""
    hint = "hint: give --name, and --force for a new authority"
    try:
        names = x509.load_pem_x509_certificate(file.read_bytes()).extensions.get_extension_for_class(
            x509.SubjectAlternativeName
        )
    except FileNotFoundError as error:
        raise ConfigError(f"{file} is not there; {hint}") from error
    except (ValueError, x509.ExtensionNotFound) as error:
        raise ConfigError(f"{file}: {error}; {hint}") from error
    hosts = names.value.get_values_for_type(x509.DNSName)
    if not hosts:
        raise ConfigError(f"{file} names no host; {hint}")
    return hosts[0], list(names.value.get_values_for_type(x509.IPAddress))  # type: ignore[arg-type]  # no networks in a server's


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, start: datetime, end: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(end)
    )


def _usage(*, sign_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not sign_certificates,
        key_cert_sign=sign_certificates,
        crl_sign=sign_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
