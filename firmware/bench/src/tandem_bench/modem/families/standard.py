"""The commands of ITU-T V.250 and 3GPP TS 27.007 that all families have, and the settings behind them.

Registration, +CREG, +CGREG, +CEREG (TS 27.007 7.2, 10.1.20, 10.1.22), is asked for, and sent unasked when something changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from tandem_bench.modem.dialogue import Handler, Modem, Reply, failed
from tandem_bench.modem.grammar import Command
from tandem_bench.modem.radio import Radio

ACT = {"GSM": 3, "WCDMA": 2, "LTE": 7, "NR-NSA": 13, "NR-SA": 11}
"""Access technology, TS 27.007 7.3; EDGE for GSM."""

Print = Callable[[Radio], str]
"""Area, cell and technology as this family prints them, with the commas between."""

_DOMAINS = {
    "+CREG": ("GSM", "WCDMA", "LTE", "NR-NSA", "NR-SA"),
    "+CGREG": ("GSM", "WCDMA"),
    "+CEREG": ("LTE", "NR-NSA"),
    "+C5GREG": ("NR-SA",),
}
"""Which technologies a command speaks of. +CREG also follows LTE, by SMS over SGs (TS 27.007 7.2, note)."""


def fixed(*lines: str) -> Handler:
    """A command that always says the same."""

    def handler(_modem: Modem, _radio: Radio, _command: Command) -> Reply:
        return Reply(lines)

    return handler


def allowed(*values: str) -> Handler:
    """A basic command or S-parameter that takes only the given arguments ("" for none) and changes nothing."""

    def handler(modem: Modem, _radio: Radio, command: Command) -> Reply:
        return Reply() if (command.argument(0) or "") in values else failed(modem, 50)

    return handler


def echo(modem: Modem, _radio: Radio, command: Command) -> Reply:
    """E0, E1 (V.250 6.2.4)."""
    value = command.number(0, 0)
    return Reply(modem=replace(modem, echo=value == 1)) if value in (0, 1) else failed(modem, 50)


def reset(modem: Modem, _radio: Radio, _command: Command) -> Reply:
    """Z and &F (V.250 6.1): the settings as delivered; the radio stays as it is."""
    return Reply(modem=replace(modem.restarted(), cfun=modem.cfun))


def level(values: tuple[int, ...], default: int = 0) -> Handler:
    """A command whose one number is kept: ``=?``, ``?`` and ``=n``."""

    def handler(modem: Modem, _radio: Radio, command: Command) -> Reply:
        if command.kind == "test":
            return Reply((f"{command.name}: ({spans(values)})",))
        if command.kind == "read":
            return Reply((f"{command.name}: {modem.setting(command.name, default)}",))
        value = command.number(0, 0)
        return Reply(modem=modem.having(command.name, value)) if value in values else failed(modem, 50)

    return handler


def spans(values: tuple[int, ...]) -> str:
    """``0-5`` for whole runs of three or more, else a list: how test commands print what they take."""
    whole_run = len(values) > 2 and values == tuple(range(values[0], values[-1] + 1))
    return f"{values[0]}-{values[-1]}" if whole_run else ",".join(map(str, values))


def functionality(modem: Modem, _radio: Radio, command: Command) -> Reply:
    """+CFUN (TS 27.007 8.2): 0 and 4 switch the radio off; ``1,1`` restarts the modem, which drops off the bus."""
    if command.kind == "test":
        return Reply(("+CFUN: (0,1,4),(0,1)",))
    if command.kind == "read":
        return Reply((f"+CFUN: {modem.cfun}",))
    value, restart = command.number(0, 1), command.number(1, 0)
    if value not in (0, 1, 4) or restart not in (0, 1):
        return failed(modem, 50)
    if restart:
        return Reply(modem=modem.restarted(), restart=True)
    return Reply(modem=replace(modem, cfun=value), seconds=0.3)


def identity(text: str) -> Handler:
    """+CGMI, +CGMM, +CGMR: one line; the test form only says that the command is there."""

    def handler(_modem: Modem, _radio: Radio, command: Command) -> Reply:
        return Reply() if command.kind == "test" else Reply((text,))

    return handler


def imei(modem: Modem, _radio: Radio, command: Command) -> Reply:
    """+CGSN (TS 27.007 5.4)."""
    return Reply() if command.kind == "test" else Reply((modem.imei,))


def sim_fault(modem: Modem) -> int | None:
    """The +CME ERROR code of anything that needs the SIM (TS 27.007 9.2), None when the SIM is open."""
    return {"absent": 10, "pin": 11}.get(modem.sim)


def imsi(modem: Modem, _radio: Radio, command: Command) -> Reply:
    """+CIMI (TS 27.007 5.6)."""
    fault = sim_fault(modem)
    if command.kind == "test":
        return Reply()
    return Reply((modem.imsi,)) if fault is None else failed(modem, fault)


def iccid(prefix: str) -> Handler:
    """The card's own number, as ``prefix`` and digits; readable without the PIN."""

    def handler(modem: Modem, _radio: Radio, _command: Command) -> Reply:
        return failed(modem, 10) if modem.sim == "absent" else Reply((f"{prefix}{modem.iccid}",))

    return handler


def pin(modem: Modem, _radio: Radio, command: Command) -> Reply:
    """+CPIN (TS 27.007 8.3). No PIN is ever right here: a wrong SIM must not be opened by guessing."""
    if command.kind == "test":
        return Reply()
    if modem.sim == "absent":
        return failed(modem, 10)
    if command.kind == "set":
        return failed(modem, 16 if modem.sim == "pin" else 3)
    return Reply(("+CPIN: SIM PIN" if modem.sim == "pin" else "+CPIN: READY",))


def contexts(modem: Modem, _radio: Radio, command: Command) -> Reply:
    """+CGDCONT (TS 27.007 10.1.1): one context, and no other can be made."""
    if command.kind == "test":
        return Reply(('+CGDCONT: (1-16),"IP",,,(0-2),(0-4)', '+CGDCONT: (1-16),"IPV4V6",,,(0-2),(0-4)'))
    if command.kind == "read":
        return Reply(('+CGDCONT: 1,"IPV4V6","internet","",0,0',))
    return Reply() if command.number(0) == 1 else failed(modem, 50)


def active(_modem: Modem, radio: Radio, command: Command) -> Reply:
    """+CGACT (TS 27.007 10.1.10): the context is active while the modem is registered."""
    return Reply((f"+CGACT: 1,{int(radio.registered)}",)) if command.kind == "read" else Reply()


def attached(_modem: Modem, radio: Radio, command: Command) -> Reply:
    """+CGATT (TS 27.007 10.1.9)."""
    return Reply((f"+CGATT: {int(radio.registered)}",)) if command.kind == "read" else Reply()


def charset(modem: Modem, _radio: Radio, command: Command) -> Reply:
    """+CSCS (TS 27.007 5.5)."""
    if command.kind == "test":
        return Reply(('+CSCS: ("IRA","GSM","UCS2")',))
    if command.kind == "read":
        return Reply((f'+CSCS: "{modem.charset}"',))
    name = command.argument(0)
    return Reply(modem=replace(modem, charset=name)) if name in ("IRA", "GSM", "UCS2") else failed(modem, 50)


def operator(modem: Modem, radio: Radio, command: Command) -> Reply:
    """+COPS (TS 27.007 7.3): who the modem is registered with; the format is set by ``=3,f``."""
    if command.kind == "test":
        if not radio.heard:
            return failed(modem, 30)
        return Reply((f"+COPS: ({_scanned(modem, radio)}),,(0-4),(0-2)",), seconds=20.0)
    if command.kind == "read":
        if not radio.registered or radio.rat is None:
            return Reply(("+COPS: 0",))
        text = (modem.operator, modem.operator[:8], radio.plmn or "")[modem.setting("+COPS")]
        return Reply((f'+COPS: 0,{modem.setting("+COPS")},"{text}",{ACT[radio.rat]}',))
    mode, form = command.number(0), command.number(1, 0)
    if mode == 3 and form in (0, 1, 2):
        return Reply(modem=modem.having("+COPS", form))
    return Reply() if mode == 0 else failed(modem, 50)


def _scanned(modem: Modem, radio: Radio) -> str:
    status = 2 if radio.registered else 1
    act = ACT[radio.rat] if radio.rat else 7
    return f'{status},"{modem.operator}","{modem.operator[:8]}","{radio.plmn or ""}",{act}'


def core() -> dict[str, Handler]:
    """What every family understands, whoever made it. Identity and registration come from the family."""
    return {
        "E": echo, "Z": reset, "&F": reset, "V": allowed("1"), "Q": allowed("", "0"), "X": allowed("", "0", "1", "4"),
        "&C": allowed("0", "1"), "&D": allowed("0", "1", "2"), "S0": allowed("0"),
        "+CMEE": level((0, 1, 2)), "+CFUN": functionality, "+CGSN": imei, "+CIMI": imsi, "+CPIN": pin,
        "+COPS": operator, "+CGDCONT": contexts, "+CGACT": active, "+CGATT": attached, "+CSCS": charset,
        "+GCAP": fixed("+GCAP: +CGSM"),
    }  # fmt: skip


# --- registration -----------------------------------------------------------------------------------------------------


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
