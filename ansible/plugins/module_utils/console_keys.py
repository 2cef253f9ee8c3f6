"""The SSH host keys that cloud-init prints on a machine's console, and the known_hosts file made of them."""

from __future__ import annotations

import base64
import binascii
import ipaddress

BEGIN = "-----BEGIN SSH HOST KEY KEYS-----"
END = "-----END SSH HOST KEY KEYS-----"
KINDS = ("ssh-ed25519", "ecdsa-sha2-nistp256", "ssh-rsa")


def host_keys(console: str) -> list[str]:
    """``KIND BASE64`` of each key in the last whole block; empty where there is none. Comments and strange lines are left out.

    A console carries whatever the kernel prints in between, and each boot's block anew: the last one counts.
    """
    lines = [line.strip() for line in console.replace("\r", "\n").split("\n")]
    ends = [at for at, line in enumerate(lines) if line.endswith(END)]
    for end in reversed(ends):
        begins = [at for at, line in enumerate(lines[:end]) if line.endswith(BEGIN)]
        if begins:
            found = [key for key in map(_key, lines[begins[-1] + 1 : end]) if key]
            if found:
                return found
    return []


def _key(line: str) -> str | None:
    """The key in a line, whose blob must itself begin with the kind's name (RFC 4253, 6.6)."""
    words = line.split()
    for at, word in enumerate(words[:-1]):
        if word in KINDS:
            try:
                blob = base64.b64decode(words[at + 1], validate=True)
            except (binascii.Error, ValueError):
                return None
            kind = word.encode()
            if blob.startswith(len(kind).to_bytes(4, "big") + kind) and len(blob) > 4 + len(kind):
                return f"{word} {words[at + 1]}"
            return None
    return None


def known_hosts(address: str, instance: str, keys: list[str]) -> str:
    """The file's text. ValueError: ``address`` is no address."""
    plain = str(ipaddress.ip_address(address))
    return "".join([f"# {instance}, from its console\n", *(f"{plain} {key}\n" for key in keys)])


def tells_of(text: str, address: str, instance: str) -> bool:
    """Whether a known_hosts file was made for this instance at this address."""
    lines = text.splitlines()
    return lines[:1] == [f"# {instance}, from its console"] and any(
        line.startswith(f"{address} ") for line in lines[1:]
    )
