"""Quectel EC25, and for 5G timelines the 5G lines of its elder sister RM500Q.

Field orders and scales after the EC2x&EG2x&EG9x&EM05 AT commands manual V2.0 and RG50xQ&RM5xxQ V1.0, as public dialogues show
them: AT+QENG gives SINR as a code v with 2v − 20 dB, AT+QCSQ as v with v/5 − 20 dB.
"""

from __future__ import annotations

from tandem_bench.modem.dialogue import Family, Handler, Modem, Reply, failed
from tandem_bench.modem.families import generic, standard
from tandem_bench.modem.families.standard import changes, registration, unpadded
from tandem_bench.modem.grammar import Command
from tandem_bench.modem.radio import Radio, csq, whole

REVISION = "EC25EFAR06A06M4G"
LEVELS = {"+CREG": (0, 1, 2), "+CGREG": (0, 1, 2), "+CEREG": (0, 1, 2)}
LTE_BANDWIDTH = (1.4, 3.0, 5.0, 10.0, 15.0, 20.0)
NR_BANDWIDTH = (5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 100.0, 200.0, 400.0)
LOWEST_RSRP_DBM = -128
"""q-RxLevMin of the bench's cells: Srxlev is the level above it (3GPP TS 36.304 5.2.3.2)."""
NOT_MEASURED = -32768
WCDMA_BANDS = {1: "2100", 2: "1900", 4: "AWS", 5: "850", 8: "900"}
GSM_BANDS = {2: "PCS 1900", 3: "DCS 1800", 5: "850", 8: "EGSM 900"}


def engineering(modem: Modem, radio: Radio, command: Command) -> Reply:
    """+QENG: what the modem knows of its serving cell."""
    if command.kind == "test":
        return Reply(('+QENG: ("servingcell","neighbourcell")',))
    if command.kind != "set" or command.argument(0) not in ("servingcell", "neighbourcell"):
        return failed(modem, 50)
    return Reply(serving_cell(modem, radio) if command.argument(0) == "servingcell" else ())


def serving_cell(modem: Modem, radio: Radio) -> tuple[str, ...]:
    """The lines of ``AT+QENG="servingcell"``: state and cell, three lines in NR-NSA, the state alone while searching."""
    head = '+QENG: "servingcell"'
    if not radio.heard:
        return (f'{head},"SEARCH"',)
    state = "LIMSRV" if not radio.registered else "CONNECT" if modem.connected else "NOCONN"
    if radio.rat == "NR-NSA":
        return (f'{head},"{state}"', f"+QENG: {_lte(radio)}", f"+QENG: {_nsa(radio)}")
    cell = {"LTE": _lte, "NR-SA": _sa, "WCDMA": _wcdma, "GSM": _gsm}[radio.rat or "LTE"](radio)
    return (f'{head},"{state}",{cell}',)


def _lte(radio: Radio) -> str:
    width = _index(LTE_BANDWIDTH, radio.bandwidth_mhz)
    above = None if radio.rsrp_dbm is None else max(0, radio.rsrp_dbm - LOWEST_RSRP_DBM)
    return (
        f'"LTE","{radio.duplex}",{radio.mcc or "-"},{radio.mnc or "-"},{_hex(radio.eci)},{_dec(radio.pci)},{_dec(radio.earfcn)},'
        f"{_dec(radio.band)},{width},{width},{_hex(radio.tac)},{whole(radio.rsrp_dbm, '-')},{whole(radio.rsrq_db, '-')},"
        f"{whole(radio.rssi_dbm, '-')},{_sinr_code(radio.sinr_db)},{whole(above, '-')}"
    )


def _nsa(radio: Radio) -> str:
    plmn = f"{radio.mcc or '-'},{radio.mnc or '-'}"
    if radio.nr_rsrp_dbm is None:
        return f'"NR5G-NSA",{plmn},65535,{NOT_MEASURED},{NOT_MEASURED},{NOT_MEASURED}'
    return (
        f'"NR5G-NSA",{plmn},{_dec(radio.nr_pci)},{whole(radio.nr_rsrp_dbm, str(NOT_MEASURED))},'
        f"{whole(radio.nr_sinr_db, str(NOT_MEASURED))},{whole(radio.nr_rsrq_db, str(NOT_MEASURED))},"
        f"{_dec(radio.nr_arfcn)},{_dec(radio.nr_band)}"
    )


def _sa(radio: Radio) -> str:
    above = None if radio.rsrp_dbm is None else max(0, radio.rsrp_dbm - LOWEST_RSRP_DBM)
    return (
        f'"NR5G-SA","{radio.duplex}",{radio.mcc or "-"},{radio.mnc or "-"},{_hex(radio.eci)},{_dec(radio.pci)},{_hex(radio.tac)},'
        f"{_dec(radio.earfcn)},{_dec(radio.band)},{_index(NR_BANDWIDTH, radio.bandwidth_mhz)},{whole(radio.rsrp_dbm, '-')},"
        f"{whole(radio.rsrq_db, '-')},{whole(radio.sinr_db, str(NOT_MEASURED))},1,{whole(above, '-')}"
    )


def _wcdma(radio: Radio) -> str:
    return (
        f'"WCDMA",{radio.mcc or "-"},{radio.mnc or "-"},{_hex(radio.tac)},{_hex(radio.eci)},{_dec(radio.earfcn)},'
        f"{_dec(radio.pci)},-,{whole(radio.rsrp_dbm, '-')},{whole(radio.rsrq_db, '-')},-,-,-,-,-"
    )


def _gsm(radio: Radio) -> str:
    return (
        f'"GSM",{radio.mcc or "-"},{radio.mnc or "-"},{_hex(radio.tac)},{_hex(radio.eci)},{_dec(radio.pci)},{_dec(radio.earfcn)},'
        f'-,{whole(radio.rssi_dbm, "-")},255,255,0,-,-,1,-,-,-,-,-,-,-,-,-,"-"'
    )


def _hex(value: int | None) -> str:
    return "-" if value is None else f"{value:X}"


def _dec(value: int | None) -> str:
    return "-" if value is None else str(value)


def _index(widths: tuple[float, ...], megahertz: float) -> int:
    return min(range(len(widths)), key=lambda i: abs(widths[i] - megahertz))


def _sinr_code(value_db: float | None) -> str:
    return "-" if value_db is None else str(max(0, min(25, round((value_db + 20) / 2))))


def qcsq(_modem: Modem, radio: Radio, command: Command) -> Reply:
    """+QCSQ: levels by technology; a level that is not known is left empty."""
    if command.kind == "test":
        return Reply(('+QCSQ: ("NOSERVICE","GSM","WCDMA","LTE")',))
    rssi, level, rsrq_text = whole(radio.rssi_dbm, ""), whole(radio.rsrp_dbm, ""), whole(radio.rsrq_db, "")
    sinr = "" if radio.sinr_db is None else str(max(0, min(250, round((radio.sinr_db + 20) * 5))))
    if not radio.heard:
        return Reply(('+QCSQ: "NOSERVICE"',))
    if radio.rat == "GSM":
        return Reply((f'+QCSQ: "GSM",{rssi}',))
    if radio.rat == "WCDMA":
        return Reply((f'+QCSQ: "WCDMA",{rssi},{level},{rsrq_text}',))
    if radio.rat == "NR-SA":
        return Reply((f'+QCSQ: "NR5G",{level},{whole(radio.sinr_db, "")},{rsrq_text}',))
    return Reply((f'+QCSQ: "LTE",{rssi},{level},{sinr},{rsrq_text}',))


def network(_modem: Modem, radio: Radio, command: Command) -> Reply:
    """+QNWINFO: technology, PLMN, band and channel, while registered."""
    if command.kind == "test":
        return Reply()
    if not radio.registered or not radio.heard:
        return Reply(("+QNWINFO: No Service",))
    plmn, band, channel = radio.plmn or "", radio.band or 0, _dec(radio.earfcn)
    if radio.rat == "GSM":
        return Reply((f'+QNWINFO: "EDGE","{plmn}","GSM {GSM_BANDS.get(band, band)}",{channel}',))
    if radio.rat == "WCDMA":
        return Reply((f'+QNWINFO: "HSPA+","{plmn}","WCDMA {WCDMA_BANDS.get(band, band)}",{channel}',))
    if radio.rat == "NR-SA":
        return Reply((f'+QNWINFO: "{radio.duplex} NR5G","{plmn}","NR5G BAND {band}",{channel}',))
    lines: tuple[str, ...] = (f'+QNWINFO: "{radio.duplex} LTE","{plmn}","LTE BAND {band}",{channel}',)
    if radio.rat == "NR-NSA" and radio.nr_rsrp_dbm is not None:
        lines += (f'+QNWINFO: "NR5G-NSA","{plmn}","NR5G BAND {radio.nr_band or 0}",{_dec(radio.nr_arfcn)}',)
    return Reply(lines)


def indications(modem: Modem, _radio: Radio, command: Command) -> Reply:
    """+QINDCFG="csq",n: whether +QIND: "csq" is sent unasked; off as delivered."""
    if command.argument(0) != "csq":
        return failed(modem, 50)
    value = command.number(1)
    if value is None:
        return Reply((f'+QINDCFG: "csq",{modem.setting("+QINDCFG")}',))
    return Reply(modem=modem.having("+QINDCFG", value)) if value in (0, 1) else failed(modem, 50)


def beat(modem: Modem, radio: Radio) -> tuple[str, ...]:
    """The level, unasked, once +QINDCFG has switched it on."""
    return (f'+QIND: "csq",{csq(radio.rssi_dbm)},99',) if modem.setting("+QINDCFG") else ()


def framed(lines: tuple[str, ...]) -> tuple[str, ...]:
    """The lines of one command in one block: a line break before the first and after each."""
    return ("\r\n" + "".join(f"{line}\r\n" for line in lines),) if lines else ()


def boot(modem: Modem) -> tuple[str, ...]:
    """What it says after power-up."""
    return ("RDY", "+CFUN: 1", *sim_changed(modem), "+QIND: SMS DONE", "+QIND: PB DONE")


def sim_changed(modem: Modem) -> tuple[str, ...]:
    """What it says when a SIM comes or goes."""
    said = {"ready": "READY", "foreign": "READY", "pin": "SIM PIN", "absent": "NOT INSERTED"}[modem.sim]
    return (f"+CPIN: {said}", "+QUSIM: 1") if modem.sim != "absent" else (f"+CPIN: {said}",)


COMMANDS: dict[str, Handler] = {
    **generic.COMMANDS,
    **registration(LEVELS, unpadded),
    "I": standard.fixed("Quectel", "EC25", f"Revision: {REVISION}"),
    "+CGMI": standard.identity("Quectel"),
    "+CGMM": standard.identity("EC25"),
    "+CGMR": standard.identity(REVISION),
    "+QCCID": standard.iccid("+QCCID: "),
    "+QENG": engineering,
    "+QCSQ": qcsq,
    "+QNWINFO": network,
    "+QINDCFG": indications,
}
del COMMANDS["+CCID"], COMMANDS["+WS46"]

FAMILY = Family(
    name="quectel",
    commands=COMMANDS,
    unknown=lambda _modem, _command: "ERROR",
    syntax=lambda _modem: "ERROR",
    framed=framed,
    unsolicited=lambda modem, before, now: changes(LEVELS, unpadded, modem, before, now),
    beat=beat,
    boot=boot,
    sim_changed=sim_changed,
    beat_s=3.0,
    line_bytes=1024,
    queues=True,
)
