"""A plain LTE modem with nothing but the standard's commands; it tells no SINR, channel or physical cell."""

from __future__ import annotations

from tandem_bench.modem.dialogue import Family, Handler, Modem, Reply, cme, failed
from tandem_bench.modem.families import standard
from tandem_bench.modem.families.standard import changes, quoted, registration
from tandem_bench.modem.grammar import Command
from tandem_bench.modem.radio import Radio, csq, ecno, rscp, rsrp, rsrq, rxlev, ss_rsrp, ss_rsrq, ss_sinr

LEVELS = {"+CREG": (0, 1, 2), "+CGREG": (0, 1, 2), "+CEREG": (0, 1, 2, 3, 4, 5)}


def rssi_code(_modem: Modem, radio: Radio, command: Command) -> Reply:
    """+CSQ (TS 27.007 8.5): RSSI code and bit error rate, which no LTE modem knows."""
    return (
        Reply(("+CSQ: (0-31,99),(0-7,99)",)) if command.kind == "test" else Reply((f"+CSQ: {csq(radio.rssi_dbm)},99",))
    )


def level_codes(modem: Modem, radio: Radio, command: Command) -> Reply:
    """+CESQ (TS 27.007 8.69): six codes, nine when NR is served; those of other technologies are "not known"."""
    if command.kind == "test":
        return Reply(("+CESQ: (0-63,99),(0-7,99),(0-96,255),(0-49,255),(0-34,255),(0-97,255)",))
    if command.kind != "execute":
        return failed(modem, 4)
    gsm, wcdma, lte, nr = (radio.rat in rats for rats in (("GSM",), ("WCDMA",), ("LTE", "NR-NSA"), ("NR-SA",)))
    codes = [
        rxlev(radio.rssi_dbm if gsm else None),
        99,
        rscp(radio.rsrp_dbm if wcdma else None),
        ecno(radio.rsrq_db if wcdma else None),
        rsrq(radio.rsrq_db if lte else None),
        rsrp(radio.rsrp_dbm if lte else None),
    ]
    if nr:
        codes += [ss_rsrq(radio.rsrq_db), ss_rsrp(radio.rsrp_dbm), ss_sinr(radio.sinr_db)]
    return Reply((f"+CESQ: {','.join(map(str, codes))}",))


def identification(modem: Modem, _radio: Radio, _command: Command) -> Reply:
    """I (V.250 6.1.3): free text; this one prints each part on a line of its own."""
    return Reply(("Tandem Bench", "GM-4 LTE", "GM4-01.04", modem.imei))


def networks(_modem: Modem, _radio: Radio, command: Command) -> Reply:
    """+WS46 (TS 27.007 5.9): 28 is E-UTRAN only."""
    return Reply(("+WS46: (28)",)) if command.kind == "test" else Reply(("+WS46: 28",))


def framed(lines: tuple[str, ...]) -> tuple[str, ...]:
    """V.250 5.7.1: a line break before and after every line."""
    return tuple(f"\r\n{line}\r\n" for line in lines)


def no_command(modem: Modem, _command: Command) -> str:
    """This firmware counts an unknown command among the errors that +CMEE governs."""
    return cme(modem, 4)


COMMANDS: dict[str, Handler] = {
    **standard.core(),
    **registration(LEVELS, quoted),
    "I": identification,
    "+CGMI": standard.identity("Tandem Bench"),
    "+CGMM": standard.identity("GM-4 LTE"),
    "+CGMR": standard.identity("GM4-01.04"),
    "+CCID": standard.iccid("+CCID: "),
    "+CSQ": rssi_code,
    "+CESQ": level_codes,
    "+WS46": networks,
}

FAMILY = Family(
    name="generic",
    commands=COMMANDS,
    unknown=no_command,
    syntax=lambda modem: cme(modem, 50),
    framed=framed,
    unsolicited=lambda modem, before, now: changes(LEVELS, quoted, modem, before, now),
    beat=lambda _modem, _radio: (),
    boot=lambda _modem: (),
    sim_changed=lambda _modem: (),
    beat_s=None,
    line_bytes=512,
    queues=False,
)
