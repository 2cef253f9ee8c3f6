"""``tandem-server tls``: a certificate authority of one's own and the server's certificate; the authority's key is not kept."""

from __future__ import annotations

import argparse
import contextlib
import ipaddress
import os
import re
from argparse import Namespace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tandem_server.cli.stop import ConfigError, EnvironmentLacks, with_plain_ends

_HOST = re.compile(
    r"(?=.{1,253}\Z)[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*\Z"
)
_FILES = ("ca.pem", "server.pem", "server.key")


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser(
        "tls",
        help="make a certificate for the server",
        description="Make ca.pem, server.pem and server.key in FOLDER. Probes get ca.pem. The authority's key is discarded"
        " after it signed: a new certificate comes with a new ca.pem.",
    )
    parser.add_argument("--folder", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--name", required=True, metavar="HOST", help="the server's host name")
    parser.add_argument("--address", action="append", default=[], metavar="IP", help="also an address; may be repeated")
    parser.add_argument("--days", type=int, default=825, help="valid for so many days (1 to 3650, default %(default)s)")
    parser.add_argument("--force", action="store_true", help="replace what is there")
    parser.set_defaults(func=_tls)


@with_plain_ends
def _tls(args: Namespace) -> int:
    if not _HOST.match(args.name):
        raise ConfigError(f"--name {args.name!r} is no host name; mend: as server.example.org")
    if not 1 <= args.days <= 3650:
        raise ConfigError(f"--days {args.days}; mend: 1 to 3650")
    try:
        addresses = [ipaddress.ip_address(address) for address in args.address]
    except ValueError as error:
        raise ConfigError(f"--address: {error}; mend: an IPv4 or IPv6 address") from error
    there = [name for name in _FILES if (args.folder / name).exists()]
    if there and not args.force:
        raise ConfigError(
            f"{args.folder / there[0]} is there already; mend: --force replaces it, probes need the new ca.pem"
        )
    try:
        args.folder.mkdir(parents=True, exist_ok=True)
        for name, (content, mode) in make(args.name, addresses, args.days).items():
            _write(args.folder / name, content, mode)
    except OSError as error:
        raise EnvironmentLacks(
            f"{error.filename}: {error.strerror}; mend: name a folder that can be written"
        ) from error
    return 0


def make(
    host: str, addresses: list[ipaddress.IPv4Address | ipaddress.IPv6Address], days: int
) -> dict[str, tuple[bytes, int]]:
    """Content and mode of the three files. Keys are on P-256; valid from an hour ago, for clocks that run behind."""
    start = datetime.now(UTC) - timedelta(hours=1)
    end = start + timedelta(days=days)
    authority_key, server_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"Tandem authority of {host[:40]}")])
    authority = (
        _builder(authority_name, authority_name, authority_key.public_key(), start, end)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(sign_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    server_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host[:64])])
    names: list[x509.GeneralName] = [x509.DNSName(host), *(x509.IPAddress(address) for address in addresses)]
    server = (
        _builder(server_name, authority_name, server_key.public_key(), start, end)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(sign_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(server_key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    private = server_key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return {
        "server.key": (private, 0o600),
        "server.pem": (server.public_bytes(serialization.Encoding.PEM), 0o644),
        "ca.pem": (authority.public_bytes(serialization.Encoding.PEM), 0o644),
    }


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


def _write(path: Path, content: bytes, mode: int) -> None:
    fresh = path.with_name(path.name + ".tmp")
    with contextlib.suppress(FileNotFoundError):
        fresh.unlink()
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    fresh.rename(path)
