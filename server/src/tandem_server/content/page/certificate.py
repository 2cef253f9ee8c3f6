"""The certificate under which a stored page's https origins are replayed: one a page, trusted by nobody but the experiment's browser,
which is told its public key's hash over the control channel."""

from __future__ import annotations

import base64
import hashlib
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_DAYS = 3650


def make() -> bytes:
    """Key and self-signed certificate, PEM. On P-256, as most sites' are."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Tandem stored page")])
    start = datetime.now(UTC) - timedelta(hours=1)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + timedelta(days=_DAYS))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("page.tandem.invalid")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return private + made.public_bytes(serialization.Encoding.PEM)


def public(pem: bytes) -> dict[str, str]:
    """What a client needs to trust it: ``certificate`` (PEM) and ``spki_sha256`` (base64, as Chromium takes it). ValueError."""
    certificate = x509.load_pem_x509_certificate(pem)
    spki = certificate.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return {
        "certificate": certificate.public_bytes(serialization.Encoding.PEM).decode("ascii"),
        "spki_sha256": base64.b64encode(hashlib.sha256(spki).digest()).decode("ascii"),
    }
