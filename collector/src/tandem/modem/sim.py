"""Which SIM is in the modem: its number (ICCID) is read, hashed with the probe's own secret, and forgotten.

Slots are bound to SIMs by that hash. The number itself is neither logged, nor kept, nor sent.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Callable
from pathlib import Path

from tandem.at.channel import Channel
from tandem.at.dialogue import Response
from tandem.at.errors import NoAnswer
from tandem.at.grammar import Command, prefix, values

COMMANDS = (
    Command("AT+CRSM=176,12258,0,0,10"),
    Command("AT+CCID", bare=True),
    Command("AT+ICCID", bare=True),
    Command("AT^ICCID?", bare=True),
    Command("AT+QCCID", bare=True),
    Command("AT#CCID", bare=True),
)
"""Asked one after the other until one tells. The standard's way first (27.007 clause 8.18: READ BINARY of EF-ICCID, which 3GPP
TS 31.102 clause 4.2 lets everybody read): it has one form, so that a SIM has one hash in every modem."""

DEADLINE_S = 2.0
SECRET_BYTES = 32
_HASH_BYTES = 12
HASH = re.compile(r"[0-9a-f]{24}\Z")


class SecretError(OSError):
    """The probe's secret cannot be read or made."""


class SimWatch:
    """Tells when the SIM in a slot is not the one that the configuration names. ``on_mismatch`` gets one line for people."""

    def __init__(self, wanted: str, secret: bytes, on_mismatch: Callable[[str], None]) -> None:
        self.secret, self.wanted = secret, wanted
        self._on_mismatch = on_mismatch
        self._told: str | None = None

    def found(self, sim: str | None) -> None:
        """What a set-up found: a hash, or None when the modem tells none, which is no proof of another SIM. Told once for each."""
        if sim is None or sim == self.wanted:
            self._told = self._told if sim is None else None
        elif sim != self._told:
            self._told = sim
            self._on_mismatch(f"the SIM here is {sim}, the configuration names {self.wanted}")


def card_hash(channel: Channel, secret: bytes) -> str | None:
    """The hash of the SIM's number; None when there is no SIM or the modem does not tell. PortLost when it goes away."""
    for command in COMMANDS:
        try:
            number = iccid(channel.ask(command, DEADLINE_S))
        except NoAnswer:
            return None  # a modem that hangs here must not hold the polls up
        if number is not None:
            return hashed(number, secret)
    return None


def hashed(number: str, secret: bytes) -> str:
    """Keyed BLAKE2s, 96 bits in hexadecimal. Without the key 10^19 numbers could be tried out."""
    return hashlib.blake2s(number.encode("ascii"), key=secret, digest_size=_HASH_BYTES).hexdigest()


def iccid(response: Response) -> str | None:
    """The number in one answer: 18 to 20 digits that begin with 89 (ITU-T E.118), without filler; None when there is none.

    In EF-ICCID (ETSI TS 102 221 clause 13.2) the two digits of each byte are swapped and F fills the last; some modems print
    the file as it is.
    """
    if not response.final.ok:
        return None
    for line in response.lines:
        found = values(line) if prefix(line) else (line.strip().strip('"'),)
        if response.command.startswith("AT+CRSM"):
            found = found[2:3] if found[:1] in (("144",), ("145",)) else ()
        for text in found:
            compact = text.replace(" ", "").upper()
            for number in (compact, _swapped(compact)):
                match = re.fullmatch(r"(89[0-9]{16,18})F{0,2}", number)
                if match:
                    return match.group(1)
    return None


def _swapped(text: str) -> str:
    return "".join(text[i + 1] + text[i] for i in range(0, len(text) - 1, 2))


def secret_of(file: Path) -> bytes:
    """The probe's secret: made when it is not there (readable by its owner only), the same ever after. SecretError names the mend.

    Two that make it at once end up with the same one.
    """
    try:
        if not file.exists():
            spare = file.with_name(f"{file.name}.{os.getpid()}.tmp")
            with os.fdopen(os.open(spare, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
                out.write(secrets.token_bytes(SECRET_BYTES))
                out.flush()
                os.fsync(out.fileno())
            try:
                os.link(spare, file)
            except FileExistsError:
                pass  # somebody was quicker: theirs counts
            finally:
                spare.unlink()
        found = file.read_bytes()
    except OSError as error:
        raise SecretError(f"{file}: {error.strerror}; mend: let the collector write its folder") from error
    if len(found) != SECRET_BYTES:
        raise SecretError(f"{file}: is no secret of {SECRET_BYTES} bytes; mend: remove it, then name the SIMs anew")
    return found
