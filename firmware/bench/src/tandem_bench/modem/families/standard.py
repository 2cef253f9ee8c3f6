"""The commands of ITU-T V.250 and 3GPP TS 27.007 that all families have, and the settings behind them."""

from __future__ import annotations

from dataclasses import replace

from tandem_bench.modem.dialogue import Handler, Modem, Reply, failed
from tandem_bench.modem.grammar import Command
from tandem_bench.modem.radio import Radio

ACT = {"GSM": 3, "WCDMA": 2, "LTE": 7, "NR-NSA": 13, "NR-SA": 11}
"""Access technology, TS 27.007 7.3; EDGE for GSM."""


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
