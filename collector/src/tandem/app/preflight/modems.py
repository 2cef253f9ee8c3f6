"""Lines of the modems, from the collector's status. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tandem.app.config import Config
from tandem.app.config_schema import PathConfig
from tandem.app.preflight.lines import Line, Name, fails, passes, skipped
from tandem.modem.sim import READY, WANTS_PIN
from tandem.schema.grades import scale, tone_of

Status = Mapping[str, Any]

SILENT_S, _PERIODS = 10.0, 5
"""So old the last poll may be, or so many periods."""

COLLECTOR: tuple[Name, ...] = (("collector", None),)

_GONE = ("no_answer", "port_lost")
_SERVED = ("connected", "idle")
_NAMES = {"rsrp_dbm": "RSRP", "rsrq_db": "RSRQ", "sinr_db": "SINR", "rssi_dbm": "RSSI"}
_UNITS = {"rsrp_dbm": "dBm", "rsrq_db": "dB", "sinr_db": "dB", "rssi_dbm": "dBm"}


def unheard(status: Status) -> list[tuple[Name, ...]]:
    """Why nothing is told where no collector answers at all, ours included."""
    return [] if status else [COLLECTOR]


def modem_lines(config: Config, status: Status) -> list[Line]:
    """Four for each path with a modem."""
    return [
        line
        for path in config.paths
        if path.modem is not None
        for line in _of(path, status, config.period_s, config.probe)
    ]


def _of(path: PathConfig, status: Status, period_s: float, kit: str) -> list[Line]:
    told = (status.get("modems") or {}).get(path.name) or {}
    name = path.name
    causes: list[tuple[Name, ...]] = [*unheard(status), (("modem", name),)]
    sim = _sim(path, told.get("sim"), causes, kit)
    return [
        _modem(path, told, period_s, unheard(status)),
        sim,
        _registered(path, told, [*causes, (("sim", name),)]),
        _levels(path, told, [*causes, (("registered", name),), (("sim", name),)]),
    ]


def where(path: PathConfig) -> str:
    """The modem's place, as the configuration has it."""
    modem = path.modem
    return "no modem" if modem is None else f"USB {modem.usb}" if modem.usb is not None else str(modem.port)


def _modem(path: PathConfig, told: Status, period_s: float, causes: list[tuple[Name, ...]]) -> Line:
    age_s, state = told.get("age_s"), told.get("state")
    if age_s is None or state is None:
        mend = "tandem modem list: is it plugged in where the configuration says, and who has its port?"
        return fails("modem", f"it was never heard at {where(path)}", mend, path.name, causes)
    if state in _GONE or told.get("failure") is not None or age_s > max(SILENT_S, _PERIODS * period_s):
        how = {"no_answer": "it does not answer", "port_lost": "it is not plugged in, or its port has gone"}.get(
            state, "it refuses" if told.get("failure") else "its last answer is old"
        )
        mend = "pull it out and put it in again; tandem modem list; another cable or port of the hub"
        return fails("modem", f"{how}, at {where(path)}", mend, path.name, causes)
    model = told.get("model") or "a modem that does not say which"
    return passes("modem", f"{model} (driver {told.get('driver')}) at {where(path)}", path.name)


def _sim(path: PathConfig, look: Status | None, causes: list[tuple[Name, ...]], kit: str) -> Line:
    if look is None:
        return fails(
            "sim",
            "the SIM was not looked at",
            "see the modem's line; or restart a collector older than this",
            path.name,
            causes,
        )
    if look.get("failure") is not None:
        mend = "take the SIM out and put it in again; tandem modem list"
        return fails("sim", f"it could not be looked at: {look['failure']}", mend, path.name, causes)
    state, named = look.get("state"), look.get("named")
    if state is None:
        return skipped("sim", "this modem tells nothing of its SIM", path.name)
    if state != READY:
        mend = "the right SIM in this slot, and one that works"
        if state == WANTS_PIN:
            mend = (
                f"./kit fleet secret {kit} secret_pin_{path.name} -i DIR, then the probe playbook; "
                "a refused PIN is not tried twice"
            )
        return fails("sim", str(state), mend, path.name, causes)
    if named is False:
        mend = "put the slot's own SIM in, or give the path the hash of this one (tandem modem list --sim)"
        return fails("sim", "another SIM than the configuration names", mend, path.name, causes)
    return passes(
        "sim", "ready" + (", the one that is named" if named else "; no SIM is named for the slot"), path.name
    )


def _registered(path: PathConfig, told: Status, causes: list[tuple[Name, ...]]) -> Line:
    state, rat = told.get("state"), told.get("rat")
    # Some modems do not tell the state of RRC: a cell or a radio technology says that they are served.
    if state in _SERVED or (state == "unknown" and rat is not None):
        return passes(
            "registered", f"{rat or 'technology not told'}, {path.operator or 'no operator named'}", path.name
        )
    words = {
        "searching": "it searches for a network",
        "limited": "the network refuses it: emergency calls only",
        "no_service": "it has no service",
    }
    mend = "antenna and place; is the SIM active, and of this operator? then APN and roaming in [path.modem.connection]"
    return fails("registered", words.get(str(state), "it does not say that it is registered"), mend, path.name, causes)


def _levels(path: PathConfig, told: Status, causes: list[tuple[Name, ...]]) -> Line:
    heard = {key: told[key] for key in _NAMES if isinstance(told.get(key), int | float)}
    if not heard:
        if told.get("state") in _SERVED or (told.get("state") == "unknown" and told.get("rat") is not None):
            return skipped("levels", "this modem tells no levels", path.name)
        return fails("levels", "no levels are told", "see the modem's other lines", path.name, causes)
    words = ", ".join(f"{_NAMES[key]} {value:g} {_UNITS[key]}" for key, value in heard.items())
    judged = "rsrp_dbm" if "rsrp_dbm" in heard else "rssi_dbm" if "rssi_dbm" in heard else None
    if judged is not None and tone_of("radio", judged, heard[judged]) == "poor":
        limit = scale("radio", judged)
        least = "" if limit is None else f" (poor is below {limit.fair:g} {_UNITS[judged]})"
        mend = "check the antenna's plug; then near a window or outdoors: --accept if it is the place"
        return fails("levels", words + least, mend, path.name, causes)
    return passes("levels", words, path.name)
