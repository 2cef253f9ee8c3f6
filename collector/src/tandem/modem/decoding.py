"""A raw answer of any modem → a reading, without a modem: which family's answer it is, what it tells, or why it tells nothing. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from tandem.at.cme import explained
from tandem.at.dialogue import Dialogue, Response
from tandem.at.grammar import Command, Final, prefix, values
from tandem.at.lines import LineSplitter
from tandem.modem.base import Driver, Identity, Reading
from tandem.modem.http_exchange import Answer
from tandem.modem.http_transport import response as web_response
from tandem.modem.poll import in_range
from tandem.modem.ports import known_devices
from tandem.modem.registry import FALLBACK, drivers
from tandem.schema.record import Value

MAX_BYTES = 1024 * 1024
ALWAYS = (
    "rsrp_dbm", "rsrq_db", "sinr_db", "rssi_dbm", "earfcn", "pci", "tac", "plmn", "eci", "enb_id", "sector_id", "rat", "state",
    "driver",
)  # fmt: skip
"""Keys of ``Decoded.as_json`` that are always there, None when absent; others only when they are told."""


NOBODY = Identity()


class UndecodableError(ValueError):
    """Nothing can be read in this answer; the text says why, in one line."""


@dataclass(frozen=True)
class Decoded:
    """What an answer tells and whose form it has."""

    driver: str
    reading: Reading

    def as_json(self) -> dict[str, Value | None]:
        """One flat object; units are in the names."""
        found: dict[str, Value | None] = {**self.reading.as_fields(), "rat": self.reading.rat, "driver": self.driver}
        further = {name: value for name, value in found.items() if name not in ALWAYS and value is not None}
        return {**{name: found[name] for name in ALWAYS}, **further}


def decode(command: str, raw: bytes, driver: str | None = None, model: str = "") -> Decoded:
    """What ``raw`` tells, the answer to ``command``: with or without echo and final result, lines ended in any way.

    ``command``: with or without AT in front, several in one line, or ``GET /path``. ``driver``: the family; without it the one
    whose questions these are, see ``candidates``. UndecodableError says why nothing can be read. The registry's UnknownDriver is
    the caller's to check.
    """
    asked = normalised(command)
    if len(raw) > MAX_BYTES:
        raise UndecodableError(f"the answer is longer than {MAX_BYTES} bytes")
    if not raw.strip():
        raise UndecodableError("the answer is empty")
    web = asked.startswith("GET ")
    identity = Identity(model=model)
    families = [drivers()[driver]] if driver is not None else candidates(asked, identity)
    if not families:
        raise UndecodableError(f"no known family asks {asked}; name one with --driver ({', '.join(drivers())})")
    responses = [_body(asked, raw)] if web else _dialogues(asked, raw)
    best, reading = families[0], _read(families[0], responses, identity)
    if reading.empty or not (_standard(asked) or _knows(best, identity)):
        further = [(one, _read(one, responses, identity)) for one in families[1:]]
        best, reading = max([(best, reading), *further], key=lambda found: _told(found[1]))  # the first of the best
    if reading.empty and not all_unknown(responses):
        raise UndecodableError(_why(asked, responses))
    return Decoded(best.name, reading)


def normalised(command: str) -> str:
    """The command line as it is sent: ``+CSQ`` → ``AT+CSQ``, ``/api/x`` → ``GET /api/x``."""
    text = command.strip()
    if text.startswith("/"):
        return f"GET {text}"
    if text[:4].upper() == "GET ":
        return f"GET {text[4:].strip()}"
    return text if text[:2].upper() == "AT" else f"AT{text}"


def candidates(asked: str, identity: Identity = NOBODY) -> list[Driver]:
    """The families that ask this at a poll, whatever their model: those that ask the most of the line's commands. First those that
    know the model, then the standard's family, then those that ask just this line, then the one of which more devices are known."""
    devices = Counter(device.family for device in known_devices())

    def order(one: Driver) -> tuple[bool, bool, bool, int, str]:
        exact = asked in _questions(one.name)
        return (not _knows(one, identity), one.name != FALLBACK, not exact, -devices[one.name], one.name)

    return sorted(_askers(asked), key=order)


def _knows(driver: Driver, identity: Identity) -> bool:
    """Whether it is the model's family; the standard's takes every model and knows none."""
    return bool(identity.model) and driver.name != FALLBACK and driver.matches(identity)


def _askers(asked: str) -> list[Driver]:
    if asked.startswith("GET "):
        path = _path(asked)
        return [d for d in drivers().values() if d.transport == "http" and path in map(_path, _questions(d.name))]
    wanted = set(Command(asked).prefixes)
    share = {name: len(wanted & _prefixes(name)) for name, d in drivers().items() if d.transport == "at"}
    most = max(share.values(), default=0)
    return [drivers()[name] for name in share if most and share[name] == most]


def all_unknown(responses: Iterable[Response]) -> bool:
    """Whether the answer is a proper one that says that nothing is known: 27.007's 99 and 255, makers' ``-`` and the like."""
    lines = [line for response in responses for line in response.lines]
    return bool(lines) and all(
        prefix(line) is not None and bool(values(line)) and _UNKNOWN.fullmatch(",".join(values(line))) for line in lines
    )


_UNKNOWN = re.compile(
    r"0|(?:[01],)?(?:99|255|-|--|N/A|-32768|-3276)(?:,(?:99|255|-|--|N/A|-32768|-3276|))*", re.IGNORECASE
)
"""A lone 0 is ``+COPS: 0``: no network chosen; a 0 or 1 in front is a setting (``+XCESQ``)."""


def _standard(asked: str) -> bool:
    return set(Command(asked).prefixes) <= _prefixes(FALLBACK)


@cache
def _questions(family: str) -> frozenset[str]:
    """What a family asks at a poll, of any of its models."""
    driver = drivers()[family]
    models = {model for device in known_devices() if device.family == family for model in device.models}
    identities = [Identity(), *(Identity(model=model) for model in sorted(models))]
    return frozenset(command for identity in identities for command in driver.poll_commands(identity))


@cache
def _prefixes(family: str) -> frozenset[str]:
    return frozenset(name for command in _questions(family) for name in Command(command).prefixes)


def _path(asked: str) -> str:
    return asked.removeprefix("GET ").partition("?")[0]


def _body(asked: str, raw: bytes) -> Response:
    return web_response(asked, Answer(200, {}, raw.decode("utf-8", "replace").removeprefix("\ufeff")))


def _dialogues(asked: str, raw: bytes) -> list[Response]:
    """The answers in ``raw``, of which there may be several, the last without its final result.

    Where nothing else answers, a registration code in its unsolicited form does: the same quantities, without ``<n>``.
    """
    splitter, command, found = LineSplitter(), Command(asked), []
    unasked: list[str] = []
    dialogue = Dialogue(command, on_unsolicited=unasked.append)
    for line in splitter.feed(raw + b"\r"):
        response = dialogue.feed(line)
        if response is not None:
            found.append(response)
            dialogue = Dialogue(command, on_unsolicited=unasked.append)
    rest = dialogue.feed("OK")
    if rest is not None and rest.lines:
        found.append(rest)
    known = tuple(line for line in unasked if prefix(line) in command.prefixes)
    if known and not any(response.lines for response in found):
        found.append(Response(asked, known, Final("ok", "ok")))
    return found


def _read(driver: Driver, responses: Sequence[Response], identity: Identity) -> Reading:
    return in_range(driver.decode(responses, identity))[0]


def _told(reading: Reading) -> int:
    return sum(value is not None for value in reading.as_fields().values()) + (reading.state != "unknown")


def _why(asked: str, responses: Sequence[Response]) -> str:
    failed = next((r.final.code for r in responses if not r.final.ok), None)
    if failed is not None:
        return f"{asked}: the modem answered {explained(failed)}"
    lines = [line for response in responses for line in response.lines]
    if not lines and asked.startswith("GET "):
        return f"{asked}: the body has nothing in it"
    if not lines:
        names = ", ".join(Command(asked).prefixes) or "the command"
        return f"{asked}: no line of the answer belongs to {names}"
    return f"{asked}: nothing can be read in {lines[0][:80]!r}" + (
        "" if len(lines) == 1 else f" and {len(lines) - 1} more"
    )
