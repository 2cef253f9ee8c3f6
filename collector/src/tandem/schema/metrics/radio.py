"""What the modems tell: the radio, polled, and the registration, unasked."""

from __future__ import annotations

from tandem.schema.metrics.table import Field, Measurement

RADIO_STATES = (
    "connected", "idle", "searching", "limited", "no_service", "unknown", "no_answer", "port_lost",
)  # fmt: skip
"""``state`` of a radio record: RRC connected / registered and idle / searching / limited service / none / not told by this
modem; ``no_answer``: the modem missed the deadline; ``port_lost``: its port has gone."""

RADIO = Measurement(
    "radio",
    "one poll of one modem, about once a second; a poll that failed is a record too, without quantities",
    ("path", "operator", "driver", "rat"),
    (
        Field("state", "str", "", "one of RADIO_STATES"),
        Field("rsrp_dbm", "float", "dBm", "3GPP TS 36.214 5.1.1; on NR-SA SS-RSRP", -157, -30),
        Field("rsrq_db", "float", "dB", "3GPP TS 36.214 5.1.3", -50, 25),
        Field("sinr_db", "float", "dB", "the modem's own estimate", -40, 60),
        Field("rssi_dbm", "float", "dBm", "3GPP TS 27.007 8.5, or the modem's own", -130, -10),
        Field("rsrp_code", "int", "", "the code as read, where the modem answers in codes", -32768, 32767),
        Field("rsrq_code", "int", "", "as above", -32768, 32767),
        Field("sinr_code", "int", "", "as above", -32768, 32767),
        Field("rssi_code", "int", "", "as above", -32768, 32767),
        Field("plmn", "str", "", "MCC and MNC, 5 or 6 digits"),
        Field("tac", "int", "", "tracking area code", 0, 0xFFFFFF),
        Field("eci", "int", "", "E-UTRAN (28 bit) or, on NR-SA, NR (36 bit) cell identity", 0, 2**36 - 1),
        Field("enb_id", "int", "", "ECI >> 8; not on NR-SA", 0, 2**28 - 1),
        Field("sector_id", "int", "", "ECI & 255; not on NR-SA", 0, 255),
        Field("pci", "int", "", "physical cell identity", 0, 1007),
        Field("earfcn", "int", "", "downlink channel number (LTE) or NR-ARFCN", 0, 3279165),
        Field("band", "int", "", "operating band", 1, 1024),
        Field("bandwidth_mhz", "float", "MHz", "downlink channel bandwidth", 0.1, 400),
        Field("lac", "int", "", "location area code of 2G and 3G", 0, 0xFFFF),
        Field("ci", "int", "", "cell identity of 2G (16 bit) and 3G (28 bit)", 0, 2**28 - 1),
        Field("rscp_dbm", "float", "dBm", "3GPP TS 25.215 5.1.1, of 3G", -140, -10),
        Field("ecno_db", "float", "dB", "3GPP TS 25.215 5.1.5, Ec/N0 of 3G", -60, 10),
        Field("rscp_code", "int", "", "the code as read, where the modem answers in codes", -32768, 32767),
        Field("ecno_code", "int", "", "as above", -32768, 32767),
        Field("nr_rsrp_dbm", "float", "dBm", "SS-RSRP of NR-NSA's secondary cell, 3GPP TS 38.215 5.1.1", -157, -30),
        Field("nr_rsrq_db", "float", "dB", "SS-RSRQ of it, 5.1.3", -50, 25),
        Field("nr_sinr_db", "float", "dB", "SS-SINR of it, 5.1.5", -40, 60),
        Field("nr_rsrp_code", "int", "", "the code as read, where the modem answers in codes", -32768, 32767),
        Field("nr_rsrq_code", "int", "", "as above", -32768, 32767),
        Field("nr_sinr_code", "int", "", "as above", -32768, 32767),
        Field("nr_pci", "int", "", "its physical cell identity", 0, 1007),
        Field("nr_arfcn", "int", "", "its NR-ARFCN", 0, 3279165),
        Field("nr_band", "int", "", "its operating band", 1, 1024),
        Field("poll_duration_ms", "float", "ms", "first byte sent to final result", 0),
        Field("poll_late_ms", "float", "ms", "how long after its due time the poll began", 0),
        Field(
            "stale",
            "bool",
            "",
            "true when an identical answer repeats for longer than the modem ever did before",
        ),
        Field("failure", "str", "", "the error that the poll got instead of an answer, as the family names it"),
    ),
)

REGISTRATION = Measurement(
    "registration",
    "what a modem said unasked of its registration (+CEREG and its like), at the time when it was read, between polls too",
    ("path", "operator", "rat", "domain"),
    (
        Field("registered", "bool", "", "with a network, at home or roaming"),
        Field("state", "str", "", "when not registered, one of RADIO_STATES"),
        Field("tac", "int", "", "tracking area code", 0, 0xFFFFFF),
        Field("eci", "int", "", "as in a radio record", 0, 2**36 - 1),
        Field("lac", "int", "", "location area code of 2G and 3G", 0, 0xFFFF),
        Field("ci", "int", "", "cell identity of 2G and 3G", 0, 2**28 - 1),
    ),
)
"""``domain``: ``cs`` (+CREG), ``ps`` (+CGREG), ``eps`` (+CEREG) or ``5gs`` (+C5GREG)."""
