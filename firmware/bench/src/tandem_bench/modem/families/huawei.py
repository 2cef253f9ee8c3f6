"""Huawei E3372 in stick mode, with the ^ commands that ME909 has too.

Codes after Huawei's ME909 AT manual as public dialogues show them; unlike 3GPP's, the SINR comes in fifths of a decibel, and the
stick reports its level unasked until AT^CURC=0.
"""

from __future__ import annotations

from tandem_bench.modem.dialogue import Family, Handler, Modem, Reply, cme, failed
from tandem_bench.modem.families import generic, standard
from tandem_bench.modem.families.standard import changes, quoted, registration
from tandem_bench.modem.grammar import Command
from tandem_bench.modem.radio import Radio, coded, csq, rsrp, rsrq, whole

REVISION = "21.180.01.00.00"
LEVELS = {"+CREG": (0, 1, 2), "+CGREG": (0, 1, 2), "+CEREG": (0, 1, 2)}
SYSTEM_MODES = {
    "GSM": '1,"GSM",3,"EDGE"', "WCDMA": '3,"WCDMA",45,"HSPA+"', "LTE": '6,"LTE",101,"LTE"', "NR-NSA": '6,"LTE",101,"LTE"',
    "NR-SA": '0,"NO SERVICE",0,"NO SERVICE"',
}  # fmt: skip


def level_code(value_dbm: float | None) -> int:
    """RSSI and RSCP in ^HCSQ: 0 below −120 dBm, 96 from −25 dBm; 255 unknown."""
    return coded(value_dbm, -121, 1, 96, 255)


def sinr_code(value_db: float | None) -> int:
    """SINR in ^HCSQ: 0 below −20 dB, 251 from 30 dB, in fifths; 255 unknown."""
    return coded(value_db, -20.2, 0.2, 251, 255)


def ecio_code(value_db: float | None) -> int:
    """Ec/Io in ^HCSQ: 0 below −32 dB, 65 from 0 dB, in halves; 255 unknown."""
    return coded(value_db, -32.5, 0.5, 65, 255)


def served(radio: Radio) -> bool:
    """This stick has no NR; a cell of NR alone is nothing to it."""
    return radio.heard and radio.rat != "NR-SA"


def hcsq_line(radio: Radio) -> str:
    """^HCSQ, the same asked or unasked: no space after the colon."""
    if not served(radio):
        return '^HCSQ:"NOSERVICE"'
    if radio.rat == "GSM":
        return f'^HCSQ:"GSM",{level_code(radio.rssi_dbm)}'
    if radio.rat == "WCDMA":
        return f'^HCSQ:"WCDMA",{level_code(radio.rssi_dbm)},{level_code(radio.rsrp_dbm)},{ecio_code(radio.rsrq_db)}'
    return f'^HCSQ:"LTE",{level_code(radio.rssi_dbm)},{rsrp(radio.rsrp_dbm)},{sinr_code(radio.sinr_db)},{rsrq(radio.rsrq_db)}'


def hcsq(modem: Modem, radio: Radio, command: Command) -> Reply:
    """^HCSQ."""
    if command.kind == "test":
        return Reply(('^HCSQ:"NOSERVICE","GSM","WCDMA","LTE"',))
    return Reply((hcsq_line(radio),)) if command.kind == "read" else failed(modem, 50)


def serving_cell(modem: Modem, radio: Radio, command: Command) -> Reply:
    """^MONSC: the cell in decibels; identities in hexadecimal, channel in decimal."""
    if command.kind == "test":
        return Reply()
    if command.kind != "execute":
        return failed(modem, 50)
    if not served(radio) or radio.rat is None:
        return Reply(("^MONSC: NONE",))
    plmn, channel, cell, area = f"{radio.mcc},{radio.mnc}", _dec(radio.earfcn), _hex(radio.eci), _hex(radio.tac)
    level, rsrq_text, rssi = whole(radio.rsrp_dbm, ""), whole(radio.rsrq_db, ""), whole(radio.rssi_dbm, "")
    if radio.rat == "GSM":
        return Reply((f"^MONSC: GSM,{plmn},{_dec(radio.band)},{channel},{_dec(radio.pci)},{cell},{area},{rssi},,",))
    if radio.rat == "WCDMA":
        return Reply((f"^MONSC: WCDMA,{plmn},{channel},{_dec(radio.pci)},{cell},{area},{level},{rssi},{rsrq_text},,",))
    return Reply((f"^MONSC: LTE,{plmn},{channel},{cell},{_hex(radio.pci)},{area},{level},{rsrq_text},{rssi}",))


def system(modem: Modem, radio: Radio, command: Command) -> Reply:
    """^SYSINFOEX: service, domain, roaming, SIM, lock, technology and its variant."""
    if command.kind == "test":
        return Reply()
    card = {"ready": 1, "foreign": 1, "pin": 0, "absent": 255}[modem.sim]
    if not served(radio) or radio.rat is None:
        return Reply((f'^SYSINFOEX:0,0,0,{card},,0,"NO SERVICE",0,"NO SERVICE"',))
    service, domain = (2, 3) if radio.registered else (1, 0)
    roaming = int(radio.registered and radio.plmn != modem.home_plmn)
    return Reply((f"^SYSINFOEX:{service},{domain},{roaming},{card},,{SYSTEM_MODES[radio.rat]}",))


def identification(modem: Modem, _radio: Radio, _command: Command) -> Reply:
    """I: labelled lines, the capabilities last."""
    return Reply(
        ("Manufacturer: huawei", "Model: E3372", f"Revision: {REVISION}", f"IMEI: {modem.imei}", "+GCAP: +CGSM,+DS,+ES")
    )


def reporting(modem: Modem) -> bool:
    """Whether ^ lines are sent unasked: until AT^CURC=0."""
    return modem.setting("^CURC", 1) == 1


def unsolicited(modem: Modem, before: Radio, now: Radio) -> tuple[str, ...]:
    """Registration as asked for; with ^CURC=1 also the technology when it changes."""
    lines = changes(LEVELS, quoted, modem, before, now)
    if reporting(modem) and (before.rat != now.rat or served(before) != served(now)):
        lines = (f"^MODE: {_mode(now)}", *lines)
    return lines


def _mode(radio: Radio) -> str:
    mode = SYSTEM_MODES[radio.rat].split(",")[0] if served(radio) and radio.rat else "0"
    return f"{mode},{mode}"


def beat(modem: Modem, radio: Radio) -> tuple[str, ...]:
    """The level, unasked: the old report and the new one."""
    return (f"^RSSI:{csq(radio.rssi_dbm)}", hcsq_line(radio)) if reporting(modem) else ()


def sim_changed(modem: Modem) -> tuple[str, ...]:
    """^SIMST: 1 valid, 0 not, 255 none."""
    return (f"^SIMST:{ {'ready': 1, 'foreign': 1, 'pin': 0, 'absent': 255}[modem.sim] }",) if reporting(modem) else ()


def _hex(value: int | None) -> str:
    return "" if value is None else f"{value:X}"


def _dec(value: int | None) -> str:
    return "" if value is None else str(value)


def no_command(_modem: Modem, command: Command) -> str:
    """Its own texts for what it does not know, whatever +CMEE says."""
    return "TOO MANY PARAMETERS" if command.kind == "set" and len(command.arguments) > 16 else "COMMAND NOT SUPPORT"


COMMANDS: dict[str, Handler] = {
    **standard.core(),
    **registration(LEVELS, quoted),
    "I": identification,
    "+CGMI": standard.identity("huawei"),
    "+CGMM": standard.identity("E3372"),
    "+CGMR": standard.identity(REVISION),
    "+GCAP": standard.fixed("+GCAP: +CGSM,+DS,+ES"),
    "+CSQ": generic.rssi_code,
    "^HCSQ": hcsq,
    "^MONSC": serving_cell,
    "^SYSINFOEX": system,
    "^CURC": standard.level((0, 1), default=1),
    "^ICCID": standard.iccid("^ICCID: "),
    "^HWVER": standard.fixed('^HWVER:"CL2E3372HM"'),
    "^CARDMODE": standard.fixed("^CARDMODE:2"),
}

FAMILY = Family(
    name="huawei",
    commands=COMMANDS,
    unknown=no_command,
    syntax=lambda modem: cme(modem, 50),
    framed=lambda lines: ("\r\n" + "\r\n".join(lines) + "\r\n",) if lines else (),
    unsolicited=unsolicited,
    beat=beat,
    boot=lambda modem: ("^BOOT:27710117,0,0,0,75", *sim_changed(modem)),
    sim_changed=sim_changed,
    beat_s=5.0,
    line_bytes=512,
    queues=True,
)
