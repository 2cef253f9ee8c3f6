"""+CREG, +CGREG, +CEREG (3GPP TS 27.007 7.2, 10.1.20, 10.1.22): asked for, and sent unasked when something changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tandem_bench.modem.dialogue import Handler, Modem, Reply, failed
from tandem_bench.modem.families.standard import ACT, spans
from tandem_bench.modem.grammar import Command
from tandem_bench.modem.radio import Radio

Print = Callable[[Radio], str]
"""Area, cell and technology as this family prints them, with the commas between."""

_DOMAINS = {
    "+CREG": ("GSM", "WCDMA", "LTE", "NR-NSA", "NR-SA"),
    "+CGREG": ("GSM", "WCDMA"),
    "+CEREG": ("LTE", "NR-NSA"),
    "+C5GREG": ("NR-SA",),
}
"""Which technologies a command speaks of. +CREG also follows LTE, by SMS over SGs (TS 27.007 7.2, note)."""


def status(name: str, modem: Modem, radio: Radio) -> int:
    """0 not registered, 1 home, 2 searching, 3 denied, 5 roaming."""
    if modem.cfun != 1:
        return 0
    if modem.sim == "foreign" and radio.heard:
        return 3
    if not radio.registered:
        return 0 if modem.sim in ("pin", "absent") or (radio.heard and radio.rat not in _DOMAINS[name]) else 2
    if radio.rat not in _DOMAINS[name]:
        return 0
    return 1 if radio.plmn == modem.home_plmn else 5


def report(name: str, modem: Modem, radio: Radio, level: int, place: Print) -> str:
    """What follows ``+CxREG: [n,]`` at reporting level ``n``: status, and from level 2 on where, while registered.

    Levels 3 and 5 add why the network refused; 4 and 5 add the power-saving timers, here switched off. They exist for +CEREG.
    """
    stat = status(name, modem, radio)
    text = str(stat)
    if level >= 2 and stat in (1, 5):
        text += "," + place(radio)
    elif level in (3, 5) and stat == 3:
        return text + ",,,,0,8"  # EMM cause 8: neither packet nor circuit service allowed
    if level in (4, 5) and stat in (1, 5):
        text += ',,,"11100000","11100000"'
    return text


def registration(levels: Mapping[str, tuple[int, ...]], place: Print) -> dict[str, Handler]:
    """Handlers for the names in ``levels``, which says the reporting levels that each one takes."""

    def handler(modem: Modem, radio: Radio, command: Command) -> Reply:
        name, values = command.name, levels[command.name]
        level = modem.setting(name)
        if command.kind == "test":
            return Reply((f"{name}: ({spans(values)})",))
        if command.kind == "read":
            return Reply((f"{name}: {level},{report(name, modem, radio, level, place)}",))
        value = command.number(0, 0)
        if value not in values or command.kind != "set":
            return failed(modem, 50)
        return Reply(modem=modem.having(name, value))

    return dict.fromkeys(levels, handler)


def changes(
    levels: Mapping[str, tuple[int, ...]], place: Print, modem: Modem, before: Radio, now: Radio
) -> tuple[str, ...]:
    """The unsolicited lines between two conditions: at level 1 when the status changes, from 2 on also the cell."""
    lines = []
    for name in levels:
        level = modem.setting(name)
        if level and report(name, modem, before, level, place) != report(name, modem, now, level, place):
            lines.append(f"{name}: {report(name, modem, now, level, place)}")
    return tuple(lines)


def quoted(radio: Radio) -> str:
    """``"tac","ci",act`` with four and eight hexadecimal digits, as TS 27.007 has it. Not known stays empty."""
    return f"{hexed(radio.tac, 4)},{hexed(radio.eci, 8)},{_act(radio)}"


def unpadded(radio: Radio) -> str:
    """The same without leading zeros in the cell identity."""
    return f"{hexed(radio.tac, 1)},{hexed(radio.eci, 1)},{_act(radio)}"


def hexed(value: int | None, digits: int) -> str:
    """A quoted hexadecimal number of at least ``digits`` digits; nothing for None."""
    return "" if value is None else f'"{value:0{digits}X}"'


def _act(radio: Radio) -> int:
    # In NR-NSA the modem is registered with the LTE anchor, so the registration says LTE; only +COPS says EN-DC.
    return 7 if radio.rat in (None, "NR-NSA") else ACT[radio.rat]
