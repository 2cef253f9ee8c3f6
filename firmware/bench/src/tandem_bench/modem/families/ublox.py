"""u-blox TOBY-L200 as ModemManager meets it on USB in the composition with CDC-ECM, in router mode.

The commands beyond the standard's are those that ModemManager's u-blox plugin asks for (u-blox AT commands manual UBX-13002752:
+URAT, +UBANDSEL, +UUSBCONF, +UBMCONF, +UIPADDR). +UCGED, which tells the serving cell, is left out: its layout differs by
firmware and none is at hand, so level and cell come from +CESQ and +CEREG.
"""

from __future__ import annotations

from dataclasses import replace

from tandem_bench.modem.dialogue import Family, Handler, Modem, Reply, cme, failed
from tandem_bench.modem.families import generic, standard
from tandem_bench.modem.grammar import Command
from tandem_bench.modem.radio import Radio

MODEL, REVISION = "TOBY-L200", "09.71"
CONTEXTS = range(1, 9)
TYPES = ("IP", "IPV4V6")
EF_ICCID, EF_AD = 12258, 28589


def technology(modem: Modem, _radio: Radio, command: Command) -> Reply:
    """+URAT: 3 is LTE only (single mode)."""
    if command.kind == "test":
        return Reply(("+URAT: (0-6),(0,2,3)",))
    if command.kind == "read":
        return Reply(("+URAT: 3",))
    return Reply() if command.number(0) == 3 else failed(modem, 50)


def bands(modem: Modem, _radio: Radio, command: Command) -> Reply:
    """+UBANDSEL: bands by their MHz."""
    if command.kind == "test":
        return Reply(("+UBANDSEL: (0,700,850,900,1700,1800,1900,2100,2600)",))
    return Reply(("+UBANDSEL: 700,850,1700,1900,2600",)) if command.kind == "read" else failed(modem, 4)


def contexts(modem: Modem, _radio: Radio, command: Command) -> Reply:
    """+CGDCONT (TS 27.007 10.1.1): contexts are kept, also without power; a number alone takes its context away."""
    if command.kind == "test":
        return Reply(tuple(f'+CGDCONT: (1-8),"{kind}",,,(0-1),(0-1)' for kind in TYPES))
    if command.kind == "read":
        return Reply(
            tuple(f'+CGDCONT: {n},"{kind}","{apn}","",0,0' for n, (kind, apn) in sorted(modem.contexts.items()))
        )
    number, kind = command.number(0), command.argument(1)
    if number is None or number not in CONTEXTS or kind not in (None, *TYPES):
        return failed(modem, 50)
    kept = {n: context for n, context in modem.contexts.items() if n != number}
    if kind is not None:
        kept[number] = (kind, command.argument(2) or "")
    return Reply(modem=replace(modem, contexts=kept))


def active(modem: Modem, radio: Radio, command: Command) -> Reply:
    """+CGACT (TS 27.007 10.1.10): contexts as they were last set, and only while the modem is registered; the first is by default."""
    if command.kind == "test":
        return Reply(("+CGACT: (0,1)",))
    if command.kind == "read":
        on = {n: radio.registered and modem.setting(f"+CGACT {n}", int(n == 1)) == 1 for n in sorted(modem.contexts)}
        return Reply(tuple(f"+CGACT: {n},{int(up)}" for n, up in on.items()))
    state, number = command.number(0, 1), command.number(1, 1)
    if state not in (0, 1) or number not in modem.contexts:
        return failed(modem, 50)
    if state == 1 and not radio.registered:
        return failed(modem, 30)
    return Reply(modem=modem.having(f"+CGACT {number}", state), seconds=0.2)


def sim_file(modem: Modem, _radio: Radio, command: Command) -> Reply:
    """+CRSM=176 (TS 27.007 8.18): the card's number with digits swapped (TS 31.102 4.1.1), and how long the MNC is (4.2.18)."""
    fault = standard.sim_fault(modem)
    if fault is not None:
        return failed(modem, fault)
    if command.kind == "test":
        return Reply()
    if command.number(0) != 176 or command.number(1) not in (EF_ICCID, EF_AD):
        return Reply(('+CRSM: 106,130,""',))  # SW 6A82: no such file
    if command.number(1) == EF_AD:
        return Reply((f'+CRSM: 144,0,"000000{len(modem.home_plmn) - 3:02X}"',))
    digits = f"{modem.iccid:F<20}"
    return Reply((f'+CRSM: 144,0,"{"".join(digits[at + 1] + digits[at] for at in range(0, 20, 2))}"',))


COMMANDS: dict[str, Handler] = {
    **generic.COMMANDS,
    "I": standard.fixed(f"{MODEL}-03S-00"),
    "+CGMI": standard.identity("u-blox"),
    "+CGMM": standard.identity(MODEL),
    "+CGMR": standard.identity(REVISION),
    "+CGDCONT": contexts,
    "+CGACT": active,
    "+CRSM": sim_file,
    "+URAT": technology,
    "+UBANDSEL": bands,
    "+UUSBCONF": standard.fixed('+UUSBCONF: 2,"ECM",,"0x1143"'),
    "+UBMCONF": standard.fixed("+UBMCONF: 1"),
}

FAMILY = Family(
    name="ublox",
    commands=COMMANDS,
    unknown=lambda modem, _command: cme(modem, 4),
    syntax=lambda modem: cme(modem, 50),
    framed=generic.framed,
    unsolicited=generic.FAMILY.unsolicited,
    beat=generic.FAMILY.beat,
    boot=generic.FAMILY.boot,
    sim_changed=generic.FAMILY.sim_changed,
    beat_s=None,
    line_bytes=1024,
    queues=True,
)
