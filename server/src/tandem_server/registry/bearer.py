"""``Authorization: Bearer TOKEN`` → the probe it belongs to."""

from __future__ import annotations

from tandem_server.registry.database import Registry


def probe_of(registry: Registry, authorization: str | None) -> str | None:
    """The probe's name, or None when the header is absent, of another scheme, or its token is unknown or revoked."""
    scheme, _, token = (authorization or "").partition(" ")
    if scheme.lower() != "bearer":
        return None
    return registry.probes.of_token(token.strip())
