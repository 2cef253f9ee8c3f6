"""The SIM in a modem: which one it is, whether it is usable, and whose.

Its number (ICCID) is read, hashed with the probe's own secret, and forgotten: slots are bound to SIMs by that hash, and the number is
neither logged, nor kept, nor sent. Of the subscriber's number (IMSI) only the network's part is kept."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tandem.at.channel import Channel
from tandem.at.dialogue import NoAnswer, Response
from tandem.at.grammar import Command, explained, prefix, values

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
        self._reported: str | None = None

    def found(self, sim: str | None) -> None:
        """What a set-up found: a hash, or None when the modem tells none, which is no proof of another SIM. Told once for each."""
        if sim is None or sim == self.wanted:
            self._reported = self._reported if sim is None else None
        elif sim != self._reported:
            self._reported = sim
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
        raise SecretError(f"{file}: {error.strerror}; hint: let the collector write its folder") from error
    if len(found) != SECRET_BYTES:
        raise SecretError(f"{file}: is no secret of {SECRET_BYTES} bytes; hint: remove it, then name the SIMs anew")
    return found


# ---------------------------------------------------------------------------------------------------------------------
# Whose SIM is in a modem: its home network and that network's name. Of the subscriber's number (IMSI) only the
# network's part is kept.


_MNC_LENGTH = "AT+CRSM=176,28589,0,0,4"
"""READ BINARY of EF-AD (3GPP TS 31.102 clause 4.2.18): byte 4 is the number of digits of the MNC."""
_PROVIDER = "AT+CRSM=176,28486,0,0,17"
"""READ BINARY of EF-SPN (clause 4.2.12): a byte for when to show it, then the service provider's name, filled with FF."""


@dataclass(frozen=True, slots=True)
class HomeNetwork:
    """``plmn``: MCC and MNC of the SIM, five or six digits; ``name``: the service provider's as the SIM has it, else the operator's that
    the modem is registered with, where that is at home. None: not reported."""

    plmn: str | None = None
    name: str | None = None


UNTOLD = HomeNetwork()


def home_network(channel: Channel) -> HomeNetwork:
    """At an AT port whose SIM is ready. Nothing that the modem does not tell is an error. PortLost when it goes away."""
    try:
        imsi = _imsi(channel.ask("AT+CIMI", DEADLINE_S))  # 27.007 clause 5.6
        if imsi is None:
            return UNTOLD
        registered = _operator(channel, 2)
        digits = mnc_digits(_file(channel.ask(_MNC_LENGTH, DEADLINE_S)))
        at_home = registered if registered and imsi.startswith(registered) else imsi[:5]
        plmn = at_home if digits is None else imsi[: 3 + digits]
        name = provider_name(_file(channel.ask(_PROVIDER, DEADLINE_S)))
        return HomeNetwork(plmn, name or (_operator(channel, 0) if registered == plmn else None))
    except NoAnswer:
        return UNTOLD


def mnc_digits(file: bytes) -> int | None:
    """EF-AD → 2 or 3; None where the card does not tell."""
    return file[3] & 0x0F if len(file) >= 4 and file[3] & 0x0F in (2, 3) else None


def provider_name(file: bytes) -> str | None:
    """EF-SPN → the name, of the GSM alphabet (3GPP TS 23.038; its letters that are ASCII's) or of UCS2 (TS 102 221 annex A)."""
    text = file[1:]
    if text[:1] == b"\x80":
        even = text[1 : 1 + (len(text) - 1) // 2 * 2]
        name = even.decode("utf-16-be", "ignore").partition("\uffff")[0]
    else:
        name = "".join(chr(byte) for byte in text.partition(b"\xff")[0] if 0x20 <= byte < 0x7F)
    return "".join(c for c in name if c.isprintable()).strip() or None


def _imsi(response: Response) -> str | None:
    for line in response.lines if response.final.ok else ():
        text = values(line)[0] if prefix(line) and values(line) else line.strip().strip('"')
        if re.fullmatch(r"[0-9]{6,15}", text):
            return text
    return None


def _file(response: Response) -> bytes:
    """The content that ``+CRSM: 144,0,"HEX"`` tells (27.007 clause 8.18); empty when it tells none."""
    for line in response.lines if response.final.ok else ():
        fields = values(line) if prefix(line) else ()
        if len(fields) >= 3 and fields[0] in ("144", "145") and re.fullmatch(r"(?:[0-9A-Fa-f]{2})+", fields[2]):
            return bytes.fromhex(fields[2])
    return b""


def _operator(channel: Channel, form: int) -> str | None:
    """``+COPS?`` (27.007 clause 7.3); ``form`` 0: its name, 2: its MCC and MNC."""
    channel.ask(f"AT+COPS=3,{form}", DEADLINE_S)
    answer = channel.ask("AT+COPS?", DEADLINE_S)
    for line in answer.lines if answer.final.ok else ():
        fields = values(line) if prefix(line) else ()
        if len(fields) >= 3 and fields[1] == str(form) and fields[2].strip():
            return fields[2].strip()
    return None


# ---------------------------------------------------------------------------------------------------------------------
# The SIM card in a modem, looked at when somebody asks: whether it is usable, and whether it is the one that was
# named.


READY = "ready"
WANTS_PIN = "the SIM wants its PIN"
_WORDS = {"READY": READY, "SIM PIN": WANTS_PIN, "SIM PUK": "the SIM wants its PUK"}


@dataclass(frozen=True, slots=True)
class Card:
    """``state``: ``ready``, or why it is of no use. ``named``: whether it is the SIM that the configuration names; None: it names
    none, or the modem does not tell."""

    state: str
    named: bool | None = None


def card_at(channel: Channel, wanted: str | None, secret: bytes | None) -> Card:
    """At an AT port. ``wanted``: the hash of the SIM that must be there, made with ``secret``. NoAnswer, PortLost."""
    state = pin_state(channel.ask("AT+CPIN?", DEADLINE_S))
    if state != READY or wanted is None or secret is None:
        return Card(state)
    found = card_hash(channel, secret)
    return Card(state, None if found is None else found == wanted)


def pin_state(answer: Response) -> str:
    """``+CPIN: READY`` (27.007 clause 8.3) and its like in words."""
    if not answer.final.ok:
        return explained(answer.final.code)
    state = next((values(line)[0].upper() for line in answer.lines if values(line)), "")
    return _WORDS.get(state, state.lower() or READY)
