"""What the modems tell of the radio."""

from __future__ import annotations

from tandem_dashboards.expressions import Expression, chosen, last, mean
from tandem_dashboards.influxql import Select, windowed
from tandem_dashboards.kinds import state_timeline, time_series
from tandem_dashboards.panel import Panel, series

WHERE = (chosen("probe"), chosen("operator"), chosen("path"))
NAMED = "$tag_probe $tag_path ($tag_operator)"
BY = ("probe", "path", "operator")
CADENCE = "2s"
"""Modems are polled about once a second."""


def _lane(of: Expression) -> Select:
    return windowed(of, of="radio", where=WHERE, by=BY)


def rsrp(width: int = 12) -> Panel:
    """RSRP of each modem."""
    return time_series(
        "RSRP of each modem",
        "How strong the serving cell's reference signals arrive, as each modem answered when polled (about once a second); the mean of "
        "each stretch. Coloured bands: poor, fair, good. A gap: the modem did not answer, or the probe was silent.",
        series(_lane(mean("rsrp_dbm")), NAMED),
        grades="areas",
        cadence=CADENCE,
        size=(width, 8),
    )


def rsrq() -> Panel:
    """RSRQ of each modem."""
    return time_series(
        "RSRQ of each modem",
        "The serving cell's reference signals against all that the modem receives: falls with the load of the cell and with "
        "neighbours, however strong the cell. The mean of each stretch. Coloured bands: poor, fair, good. A gap: the modem did not "
        "answer, or does not tell.",
        series(_lane(mean("rsrq_db")), NAMED),
        grades="areas",
        cadence=CADENCE,
    )


def sinr() -> Panel:
    """SINR of each modem."""
    return time_series(
        "SINR of each modem",
        "The serving cell against interference and noise, by the modem's own estimate (families reckon it differently); the mean of "
        "each stretch. Coloured bands: poor, fair, good. A gap: the modem did not answer, or does not tell.",
        series(_lane(mean("sinr_db")), NAMED),
        grades="areas",
        cadence=CADENCE,
    )


def cells() -> Panel:
    """Which cell each modem was on."""
    return state_timeline(
        "Serving cell of each modem",
        "Site (eNodeB) and physical cell identity that each poll found; of each stretch the last. Where the colour changes, the modem "
        "has changed its cell. Nothing drawn: no polls arrived from that time, or the modem had no service.",
        series(_lane(last("enb_id")), f"{NAMED} eNodeB"),
        series(_lane(last("pci")), f"{NAMED} PCI"),
        cadence=CADENCE,
        size=(24, 7),
    )


def states() -> Panel:
    """What state each modem's radio was in."""
    return state_timeline(
        "State of each modem's radio",
        "Connected, idle, searching, without service, or no answer, as each poll found it; of each stretch the last. Nothing drawn: no "
        "polls arrived from that time.",
        series(_lane(last("state")), NAMED),
        cadence=CADENCE,
        size=(24, 6),
    )
