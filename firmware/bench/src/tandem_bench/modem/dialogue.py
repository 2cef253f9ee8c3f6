"""What a modem answers, as pure functions of its state, the radio conditions and the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from tandem_bench.modem.grammar import Command, GrammarError, commands
from tandem_bench.modem.radio import NO_SERVICE, Radio, barred

Sim = Literal["ready", "pin", "absent", "foreign"]

CME_TEXT = {
    3: "operation not allowed", 4: "operation not supported", 10: "SIM not inserted", 11: "SIM PIN required",
    13: "SIM failure", 14: "SIM busy", 16: "incorrect password", 30: "no network service", 50: "incorrect parameters",
    100: "unknown",
}  # fmt: skip
"""3GPP TS 27.007 9.2: the codes that these modems use."""


@dataclass(frozen=True, slots=True)
class Modem:
    """The state of one modem: who it is, its SIM, and what the other side has set.

    ``failing``: code of the +CME ERROR with which every command fails, None when well. ``connected``: a bearer carries
    traffic (RRC connected). ``contexts``: type and access point by number, for families that can keep several. What follows
    ``powers_up_echoing`` is lost when the modem starts anew; ``settings`` holds the numbers that were set, by the name of their
    command.
    """

    imei: str
    imsi: str
    iccid: str
    operator: str
    home_plmn: str
    sim: Sim = "ready"
    failing: int | None = None
    connected: bool = False
    contexts: Mapping[int, tuple[str, str]] = field(default_factory=lambda: {1: ("IP", "internet")})
    powers_up_echoing: bool = True
    echo: bool = True
    cfun: int = 1
    charset: str = "IRA"
    settings: Mapping[str, int] = field(default_factory=dict)

    def setting(self, name: str, default: int = 0) -> int:
        """The number set with command ``name``."""
        return self.settings.get(name, default)

    def having(self, name: str, value: int) -> Modem:
        """The same modem with that number set."""
        return replace(self, settings={**self.settings, name: value})

    def restarted(self) -> Modem:
        """The same modem after power came back: identity, SIM and bearer kept, settings as delivered."""
        return Modem(
            self.imei, self.imsi, self.iccid, self.operator, self.home_plmn, self.sim, self.failing, self.connected,
            self.contexts, self.powers_up_echoing, self.powers_up_echoing,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to one command: information lines, and the final result code (``OK`` ends the line, anything else stops it).

    ``modem``: its state afterwards, None when unchanged. ``restart``: it drops off the bus and comes back.
    ``seconds``: how long such a command takes beyond the usual.
    """

    lines: tuple[str, ...] = ()
    final: str = "OK"
    modem: Modem | None = None
    restart: bool = False
    seconds: float = 0.0


Handler = Callable[[Modem, Radio, Command], Reply]


@dataclass(frozen=True, slots=True)
class Family:
    """One family's dialogue.

    ``commands`` maps names to handlers. ``unknown`` gives the final result for a command it does not have, ``syntax`` for a
    line that breaks the grammar. ``framed`` puts the lines of one command's answer between line breaks. ``unsolicited`` gives
    the lines sent unasked when the radio went from one condition to another; ``beat_s`` is how often a family that reports its
    level does so (None: never) and ``beat`` what it then says. ``boot`` and ``sim_changed`` are said after power-up and when the
    SIM changes. ``line_bytes``: longest command line. ``queues``: whether a command that comes while another runs waits
    (else it is lost, as V.250 5.6.1 allows).
    """

    name: str
    commands: Mapping[str, Handler]
    unknown: Callable[[Modem, Command], str]
    syntax: Callable[[Modem], str]
    framed: Callable[[tuple[str, ...]], tuple[str, ...]]
    unsolicited: Callable[[Modem, Radio, Radio], tuple[str, ...]]
    beat: Callable[[Modem, Radio], tuple[str, ...]]
    boot: Callable[[Modem], tuple[str, ...]]
    sim_changed: Callable[[Modem], tuple[str, ...]]
    beat_s: float | None
    line_bytes: int
    queues: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one command line. ``blocks``: texts sent one after the other, each complete, with their line breaks."""

    blocks: tuple[str, ...]
    modem: Modem
    restart: bool
    seconds: float


def cme(modem: Modem, code: int) -> str:
    """The final result of a failed command: ERROR, the number or the text, as +CMEE says (TS 27.007 9.1)."""
    if modem.setting("+CMEE") == 0:
        return "ERROR"
    return f"+CME ERROR: {code if modem.setting('+CMEE') == 1 else CME_TEXT.get(code, 'unknown')}"


def failed(modem: Modem, code: int) -> Reply:
    """A reply that is only an error."""
    return Reply(final=cme(modem, code))


def seen(modem: Modem, radio: Radio) -> Radio:
    """The conditions as this modem has them: none with its radio off, limited service without a SIM that the network takes."""
    if modem.cfun != 1:
        return NO_SERVICE
    return radio if modem.sim == "ready" else barred(radio)


def answer(family: Family, modem: Modem, radio: Radio, line: str | None) -> Answer | None:
    """Run one command line (None: it was too long). None when the line is not for a modem and gets no answer."""
    if line is None:
        return Answer(_final(family.syntax(modem)), modem, False, 0.0)
    broken = False
    try:
        parsed = commands(line)
    except GrammarError as fault:
        parsed, broken = fault.before, True
    if parsed is None:
        return None
    blocks: list[str] = []
    seconds, final = 0.0, family.syntax(modem) if broken else "OK"
    for command in parsed:
        reply = _one(family, modem, radio, command)
        modem = reply.modem or modem
        seconds += reply.seconds
        blocks.extend(family.framed(reply.lines))
        if reply.final != "OK":
            final = reply.final
            break
        if reply.restart:
            return Answer((*blocks, *_final("OK")), modem, True, seconds)
    return Answer((*blocks, *_final(final)), modem, False, seconds)


def _one(family: Family, modem: Modem, radio: Radio, command: Command) -> Reply:
    if modem.failing is not None:
        return failed(modem, modem.failing)
    handler = family.commands.get(command.name)
    if handler is None:
        return Reply(final=family.unknown(modem, command))
    return handler(modem, seen(modem, radio), command)


def _final(text: str) -> tuple[str, ...]:
    return (f"\r\n{text}\r\n",)
