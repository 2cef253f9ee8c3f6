"""Every line of the check, from what was found out. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tandem.app.config import Config
from tandem.app.config_schema import PathConfig
from tandem.app.health.machine import Room
from tandem.app.health.reports import LOW_INODES_SHARE, WORN_PERCENT
from tandem.app.preflight.lines import Line, Name, fails, passes, skipped
from tandem.app.traces.policy import intended
from tandem.modem.sim import READY, WANTS_PIN
from tandem.schema.grades import SCALES, disk_tone, scale, tone_of

Status = Mapping[str, Any]
"""A collector's."""


@dataclass(frozen=True, slots=True)
class Server:
    """What the gateway and the endpoint answered. ``gateway``, ``control``: None when all is well, else why not. ``untimely``: a
    certificate that does not hold at the time that this clock shows. ``token``: None: not asked; ``good``, or why it is not.
    ``probe``: whose the token is; ``expected``: the collector's version that the server expects; None: it does not say.
    ``budget``: None when a session was opened, else why the endpoint grants none. ``clock_off_s``: this clock less the gateway's.
    ``no_metrics_save``: its kernel's sysctl, None when it did not tell."""

    gateway: str | None
    control: str | None = None
    untimely: bool = False
    version: str | None = None
    token: str | None = None
    probe: str | None = None
    expected: str | None = None
    budget: str | None = None
    clock_off_s: float | None = None
    no_metrics_save: str | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured over the paths. ``held``: why nothing could be, None when it could. ``unanswered``: no collector answers, ours
    included. ``downloads``: by path the row of the status's ``finished``; ``verdicts``: by path ``primary`` and ``join`` of the
    verdict's result; ``verdict_failure``: why there are none."""

    held: str | None = None
    downloads: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    verdicts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    verdict_failure: str | None = None
    unanswered: bool = False


@dataclass(slots=True)
class Facts:
    """What was found out. ``status``: the collector's, empty where none answers, ours included; ``collector``: why the probe's own does
    not, None when it does. ``disk``: of the probe's folder, or why it cannot be used. ``vlc``: why it does not start, empty when it
    does, None: none is installed. ``no_metrics_save``: this kernel's sysctl, None where it has no such or hides it. ``sims``: of the
    SIMs' plans, by path. ``tunnel``: whether the hub answered, and what is known of it; None where there is none. ``running``: the
    collector's version."""

    config: Config
    status: Status
    disk: Room | str
    collector: str | None = None
    server: Server = field(default_factory=lambda: Server(None))
    measured: Measured = field(default_factory=Measured)
    vlc: str | None = None
    no_metrics_save: str | None = None
    sims: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tunnel: tuple[bool, str] | None = None
    running: str | None = None


def lines(facts: Facts) -> list[Line]:
    """All."""
    return [
        _collector(facts),
        *settling_lines(facts),
        *_measured(facts),
        _player(facts.vlc),
        *_server(facts),
        _metrics(facts),
        *(_plan(p, facts.sims.get(p.name)) for p in facts.config.paths if p.day_limit_bytes is not None),
        *_tunnel(facts.tunnel),
    ]


def settling_lines(facts: Facts) -> list[Line]:
    """Those that may become well by themselves in a while: what the status tells of modems, paths and the machine."""
    first, states = _unheard(facts.status), facts.status.get("paths") or {}
    return [
        *(line for path in facts.config.paths if path.modem is not None for line in _of_modem(path, facts)),
        *(_path(path, states.get(path.name) or {}, first) for path in facts.config.paths),
        _clock(facts.config, facts.status, facts.server.clock_off_s),
        _gps(facts.config, facts.status),
        _power(facts.status),
        _disk(facts),
        _spool(facts.status),
        _uploads(facts.config, facts.status),
    ]


# ---------------------------------------------------------------------------------------------------------------------
# Modems.

_SILENT_S, _PERIODS = 10.0, 5
"""So old the last poll may be, or so many periods."""

_COLLECTOR: tuple[Name, ...] = (("collector", None),)

_GONE = ("no_answer", "port_lost")
_SERVED = ("connected", "idle")
_NAMES = {"rsrp_dbm": "RSRP", "rsrq_db": "RSRQ", "sinr_db": "SINR", "rssi_dbm": "RSSI"}
_UNITS = {"rsrp_dbm": "dBm", "rsrq_db": "dB", "sinr_db": "dB", "rssi_dbm": "dBm"}


def _unheard(status: Status) -> list[tuple[Name, ...]]:
    """Why nothing is told where no collector answers at all, ours included."""
    return [] if status else [_COLLECTOR]


def _of_modem(path: PathConfig, facts: Facts) -> list[Line]:
    told = (facts.status.get("modems") or {}).get(path.name) or {}
    name, unheard = path.name, _unheard(facts.status)
    causes: list[tuple[Name, ...]] = [*unheard, (("modem", name),)]
    return [
        _modem(path, told, facts.config.period_s, unheard),
        _sim(path, told.get("sim"), causes, facts.config.probe),
        _registered(path, told, [*causes, (("sim", name),)]),
        _levels(path, told, [*causes, (("registered", name),), (("sim", name),)]),
    ]


def _where(path: PathConfig) -> str:
    """The modem's place, as the configuration has it."""
    modem = path.modem
    return "no modem" if modem is None else f"USB {modem.usb}" if modem.usb is not None else str(modem.port)


def _modem(path: PathConfig, told: Status, period_s: float, causes: list[tuple[Name, ...]]) -> Line:
    age_s, state = told.get("age_s"), told.get("state")
    if age_s is None or state is None:
        mend = "tandem modem list: is it plugged in where the configuration says, and who has its port?"
        return fails("modem", f"it was never heard at {_where(path)}", mend, path.name, causes)
    if state in _GONE or told.get("failure") is not None or age_s > max(_SILENT_S, _PERIODS * period_s):
        how = {"no_answer": "it does not answer", "port_lost": "it is not plugged in, or its port has gone"}.get(
            state, "it refuses" if told.get("failure") else "its last answer is old"
        )
        mend = "pull it out and put it in again; tandem modem list; another cable or port of the hub"
        return fails("modem", f"{how}, at {_where(path)}", mend, path.name, causes)
    model = told.get("model") or "a modem that does not say which"
    return passes("modem", f"{model} (driver {told.get('driver')}) at {_where(path)}", path.name)


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


# ---------------------------------------------------------------------------------------------------------------------
# Paths, the server, and what came of it.

_SERVER: tuple[Name, ...] = (("server", None),)
_TOKEN: tuple[Name, ...] = (("token", None),)
_CLOCK: tuple[Name, ...] = (("clock", None),)
_BUDGET: tuple[Name, ...] = (("budget", None),)


def _path(path: PathConfig, told: Status, first: list[tuple[Name, ...]]) -> Line:
    state, interface = told.get("state"), told.get("interface")
    where = interface or path.interface or f"USB {path.usb}"
    if state == "up":
        return passes("path", f"{where} is up", path.name)
    causes = [*first, *[((name, path.name),) for name in ("modem", "sim", "registered")]]
    words = {
        "down": "is down",
        "no_address": "has no address",
        "ipv6_only_unusable": "has an IPv6 address alone, which cannot be used",
        "colliding": "has the address of another path",
        "no_route": "has no way out",
        None: "is not told of",
    }
    mend = f"{_access_point(path)}; mmcli -m any" if path.modem is not None else "ip address; nmcli device"
    return fails("path", f"{where} {words.get(state, state)}", mend, path.name, causes)


def _access_point(path: PathConfig) -> str:
    """What to look at first where a modem's path carries nothing."""
    if path.modem is None or path.modem.connection is None:
        return "the stick's own page, its APN" if path.modem is not None else "the network"
    name, apn = path.name, path.modem.connection.apn
    return f"is {apn} the APN of this SIM? apn of path {name} in tandem_paths, or tandem_path_settings: {{{name}: {{apn: NAME}}}}"


def _measured(facts: Facts) -> list[Line]:
    """What came over each path, and what becomes of Multipath TCP there."""
    measured, server = facts.measured, facts.server
    # The endpoint's control channel opens what is measured; a gateway that is down hinders none of it.
    hinders = (
        (_COLLECTOR, measured.unanswered),
        (_TOKEN, server.token not in (None, "good")),
        (_BUDGET, server.budget is not None),
        (_SERVER, server.control is not None),
        (_CLOCK, server.untimely),
    )
    shared = [cause for cause, so in hinders if so]
    return [
        line for path in facts.config.paths for line in (_data(path, measured, shared), _mptcp(path, measured, shared))
    ]


def _data(path: PathConfig, measured: Measured, shared: list[tuple[Name, ...]]) -> Line:
    row = measured.downloads.get(path.name)
    own = [((name, path.name),) for name in ("path", "registered", "sim", "modem")]
    causes = [*own, *shared]
    if measured.held is not None:
        mend = "wait for it, or: tandem experiment stop, tandem campaign stop"
        return fails("data", f"not tried: {measured.held}", mend, path.name, causes)
    if row is None:
        return fails("data", "not tried: the path is not up", "see the path's line", path.name, causes)
    if not row.get("ok"):
        mend = f"{_access_point(path)}; the SIM's plan at the operator; tandem experiment run traceroute"
        return fails("data", f"a download failed: {row.get('failure')}", mend, path.name, causes)
    rate = row.get("goodput_bit_per_s")
    told = "" if not isinstance(rate, int | float) else f", {rate / 1e6:.1f} Mbit/s"
    return passes("data", f"{(row.get('bytes') or 0) / 1000:.0f} kB came{told}", path.name)


def _mptcp(path: PathConfig, measured: Measured, shared: list[tuple[Name, ...]]) -> Line:
    causes = [*[((name, path.name),) for name in ("data", "path")], *shared]
    told = measured.verdicts.get(path.name)
    if told is None:
        why = measured.verdict_failure or measured.held or "the path carries no data"
        mend = "tandem experiment run verdict says more"
        return fails("mptcp", f"no verdict: {why}", mend, path.name, causes)
    primary, join = (told.get(role) or {} for role in ("primary", "join"))
    verdicts = f"{primary.get('verdict')} as the first path, {join.get('verdict')} as one that joins"
    # Where no other path is native there is nothing to join: that is the other path's line.
    if primary.get("verdict") == "native" and join.get("verdict") in ("native", "untested"):
        return passes("mptcp", verdicts, path.name)
    wrong = join if primary.get("verdict") == "native" else primary
    detail = wrong.get("detail") or ""
    mend = "another APN or SIM of this operator; if the network is so, it is a finding: --accept mptcp:" + path.name
    return fails("mptcp", f"{verdicts}: {detail}", mend, path.name, causes)


def _server(facts: Facts) -> list[Line]:
    """Server, token, version and what the endpoint grants."""
    config, server, running = facts.config, facts.server, facts.running
    up = tuple(("path", path.name) for path in config.paths)
    causes: list[tuple[Name, ...]] = [up, *([_CLOCK] if server.untimely else [])]
    lines = []
    if server.gateway is not None or server.control is not None:
        wrong = [f"gateway: {server.gateway}"] * (server.gateway is not None)
        wrong += [f"endpoint: {server.control}"] * (server.control is not None)
        mend = "at the server: systemctl status tandem-server.target, its firewall; here: [server] in the configuration"
        lines.append(fails("server", "; ".join(wrong), mend, None, causes))
    else:
        lines.append(passes("server", f"gateway and endpoint answer (version {server.version or 'not told'})"))
    after = [_SERVER, up]
    lines.append(_token(config, server, after))
    lines.append(_version(server, running, [*after, _TOKEN, *([_COLLECTOR] if running is None else [])]))
    if server.budget is not None:
        mend = "raise the probe's share in the server's configuration ([probes.NAME], [limits]), or wait for tomorrow (UTC)"
        lines.append(fails("budget", f"the server grants no session: {server.budget}", mend, None, [*after, _TOKEN]))
    elif server.control is None and server.token == "good":  # noqa: S105  a state, no secret
        lines.append(passes("budget", "the server grants sessions"))
    return lines


def _token(config: Config, server: Server, causes: list[tuple[Name, ...]]) -> Line:
    mend = "tandem-server probe rotate NAME at the server, its output into token_file here, then restart the collector"
    if server.token is None:
        return fails("token", "the server could not be asked", "see the server's line", None, causes)
    if server.token != "good":  # noqa: S105  a state, no secret
        return fails("token", server.token, mend, None, causes)
    if server.probe is not None and server.probe != config.probe:
        other = f"it is {server.probe}'s, this is {config.probe}: two kits' cards or files were swapped"
        return fails("token", other, mend, None, causes)
    return passes("token", "the server knows it" + ("" if server.probe is None else f" as {server.probe}'s"))


def _version(server: Server, running: str | None, causes: list[tuple[Name, ...]]) -> Line:
    if server.expected is None:
        if server.token == "good":  # noqa: S105  a state, no secret
            return skipped("version", f"{running or 'not told'}; this server does not say which it expects")
        return fails("version", "the server could not be asked which it expects", "see its line", None, causes)
    # What stands behind "+" tells builds of one version apart; who expects a version expects any of them.
    if running is not None and server.expected in (running, running.partition("+")[0]):
        return passes("version", f"{running}, as the server expects")
    mend = "run the probe playbook again (it may have been rolled back: journalctl -u tandem); or [collector] version there"
    return fails("version", f"{running or 'not told'}, the server expects {server.expected}", mend, None, causes)


def _metrics(facts: Facts) -> Line:
    """Whether a connection begins without what an earlier one to the same address left (ssthresh above all), at both ends."""
    own, server = facts.no_metrics_save, facts.server
    kept = [end for end, told in (("this kernel", own), ("the server's kernel", server.no_metrics_save)) if told == "0"]
    if kept:
        what = f"{' and '.join(kept)}: transfers inherit what earlier ones left (net.ipv4.tcp_no_metrics_save is 0)"
        return fails("metrics", what, "the playbook's role mptcp, there; or sysctl -w net.ipv4.tcp_no_metrics_save=1")
    untold = [end for end, told in (("here", own), ("at the server", server.no_metrics_save)) if told is None]
    if untold:
        return skipped("metrics", f"whether transfers inherit from earlier ones is not told {' and '.join(untold)}")
    return passes("metrics", "no transfer inherits from earlier ones, at both ends")


def _plan(path: PathConfig, sim: Mapping[str, Any] | None) -> Line:
    limit = path.day_limit_bytes or 0
    day = f"at most {limit / 1e6:.0f} MB a day{'' if path.day_bytes is not None else ' (day_bytes is not told)'}"
    if limit == 0:
        day = "day_bytes is 0: only the radio is measured"
    if path.plan is None:
        return passes("budget", f"{day}; no plan is told ([path.plan])", path.name)
    if sim is None:
        return fails(
            "budget", "it is not known while the time is not", "see the clock's line", path.name, [_CLOCK, _COLLECTOR]
        )
    left, expected = sim.get("left_bytes") or 0, sim.get("expected_bytes") or 0
    words = f"{left / 1e9:.2f} of {path.plan.bytes / 1e9:.2f} GB left until {sim.get('reset')}"
    mend = "a SIM with a plan left; fewer or smaller runs; plan and reset day in [path.plan]"
    if left <= 0:
        return fails("budget", f"the SIM's plan is used up: {words}", mend, path.name)
    if sim.get("sure") and expected > path.plan.bytes * path.plan.warn_share:
        return fails(
            "budget", f"the SIM's plan will not last: {words}, {expected / 1e9:.2f} GB forecast", mend, path.name
        )
    return passes("budget", f"{day}; {words}", path.name)


def _tunnel(tunnel: tuple[bool, str] | None) -> list[Line]:
    """The way by which people reach the kit, where it has one."""
    if tunnel is None:
        return []
    answered, detail = tunnel
    mend = "clock first; then wg show, and at the server: tandem-server probe peers, UDP port 51820"
    return [passes("tunnel", detail) if answered else fails("tunnel", detail, mend, None, [_CLOCK])]


# ---------------------------------------------------------------------------------------------------------------------
# The machine itself.

_BEHIND_S = SCALES["health.spool_oldest_s"].good
_CLOCK_OFF_S = 60.0
"""Of the gateway's: a probe sends nothing above it (docs/reference/probe-api.md)."""


def _collector(facts: Facts) -> Line:
    if facts.collector is not None:
        return fails("collector", facts.collector, "systemctl restart tandem; journalctl -u tandem says why it ended")
    return passes("collector", f"it runs, for {float(facts.status.get('uptime_s') or 0):.0f} s")


def _player(vlc: str | None) -> Line:
    """Who plays video; none is no fault."""
    if vlc is None:
        return skipped(
            "player",
            "no VLC that could be started here: campaigns that ask for it (mohan-dash) play with our own player",
        )
    if vlc:
        mend = "apt-get install --reinstall vlc-bin vlc-plugin-base; or remove vlc-bin: then our own player plays"
        return fails("player", f"VLC does not start: {vlc}", mend)
    return passes("player", "VLC starts")


def _clock(config: Config, status: Status, off_s: float | None) -> Line:
    told = status.get("clock") or {}
    paths = tuple(("path", path.name) for path in config.paths)
    if off_s is not None and abs(off_s) > _CLOCK_OFF_S:
        mend = "chronyc makestep; chronyc sources; a time server must be reachable outside of the tunnel"
        return fails("clock", f"it is {off_s:+.0f} s off the server's", mend, None, _unheard(status))
    if not told.get("vouched"):
        why = str(told.get("trouble") or "nobody vouches for the time").partition("; hint: ")[0]
        return fails(
            "clock",
            why,
            "chronyc tracking; chronyc sources: is a time server reached?",
            None,
            [*_unheard(status), paths],
        )
    source, error = told.get("source"), told.get("error_ms")
    if source == "system":
        return passes("clock", 'trusted as it stands: [clock] source = "system"')
    return passes("clock", f"{source} vouches for it" + ("" if error is None else f", within {error:g} ms"))


def _gps(config: Config, status: Status) -> Line:
    if config.position is None:
        return skipped("gps", "position is off in the configuration")
    state = (status.get("position") or {}).get("state")
    if state in ("fix", "private"):
        used = (status.get("position") or {}).get("satellites_used")
        return passes("gps", "position is known" + ("" if used is None else f", {used} satellites"))
    words = {
        "no_gpsd": (
            "gpsd does not answer",
            "systemctl status gpsd.socket; is the receiver plugged in (DEVICES of gpsd)?",
        ),
        "silent": ("the receiver is silent", "its plug and cable; DEVICES in /etc/default/gpsd; cgps"),
        "searching": (
            "the receiver finds no position",
            "its antenna under open sky for some minutes; indoors: --accept gps",
        ),
    }
    finding, mend = words.get(str(state), ("nothing is told of position", "tandem status"))
    return fails("gps", finding, mend, None, _unheard(status))


def _power(status: Status) -> Line:
    health = status.get("health") or {}
    now = {key: health.get(key) for key in ("undervoltage", "throttled")}
    before = {key: health.get(f"{key}_since_boot") for key in now}
    if all(value is None for value in (*now.values(), *before.values())):
        if not health:
            return fails("power", "nothing is told of it", "see the collector's line", None, _unheard(status))
        return skipped("power", "this machine tells nothing of its supply")
    mend = "a stronger supply, a shorter cable, a powered hub for the modems; then restart the probe"
    if now["undervoltage"] or before["undervoltage"]:
        return fails(
            "power", f"the supply's voltage {'is' if now['undervoltage'] else 'was (since boot)'} too low", mend
        )
    if now["throttled"]:
        return fails("power", "the processor is slowed down", "cool it; or see to the supply")
    return passes("power", "the supply's voltage was never too low since boot")


def _disk(facts: Facts) -> Line:
    room = facts.disk
    if isinstance(room, str):
        mend = "mount the spool's partition; its owner is the user tandem"
        return fails("disk", f"{facts.config.folder}: {room}", mend)
    words = f"{room.free_bytes / 1e9:.2f} of {room.size_bytes / 1e9:.2f} GB free"
    inodes = (room.free_inodes or 0) + (room.used_inodes or 0)
    scarce = room.free_inodes is not None and inodes > 0 and room.free_inodes < LOW_INODES_SHARE * inodes
    if disk_tone(room.free_bytes, room.used_bytes) == "poor" or scarce:
        mend = "make room (tandem traces list shows what waits), or lower [capture] and [spool] budgets"
        return fails("disk", words + (f", {room.free_inodes} inodes" if scarce else ""), mend)
    worn = _worn(facts.status)
    if worn is not None:
        return fails("disk", worn, "a new card: flash it, and decommission this one")
    return passes("disk", words)


def _worn(status: Status) -> str | None:
    for device, told in (status.get("cards") or {}).items():
        used = [v for k in ("life_used_a_percent", "life_used_b_percent") if isinstance(v := told.get(k), int)]
        if used and max(used) >= WORN_PERCENT:
            return f"{device} has used up {max(used)} % of its life"
    return None


def _spool(status: Status) -> Line:
    counts, health = status.get("spool"), status.get("health") or {}
    causes: list[tuple[Name, ...]] = [
        *_unheard(status),
        *[((name, None),) for name in ("server", "token", "clock", "disk")],
    ]
    if counts is None:
        return fails("spool", "nothing is told of it", "see the collector's line", None, causes)
    words = f"{counts.get('made', 0)} records made, {counts.get('pending', 0)} wait"
    lost = [f"{counts[k]} {k}" for k in ("rejected", "dropped") if counts.get(k)]
    words += f" ({', '.join(lost)} since it was made)" if lost else ""
    oldest_s, trouble = health.get("spool_oldest_s"), status.get("trouble")
    if trouble:
        return fails("spool", str(trouble).partition("; hint: ")[0], "see server, token, clock and disk", None, causes)
    if isinstance(oldest_s, int | float) and oldest_s > _BEHIND_S:
        mend = "leave it on a good network until they are sent; tandem status says why they wait"
        return fails("spool", f"{words}, the oldest for {oldest_s / 60:.0f} min", mend, None, causes)
    if counts.get("made") and not counts.get("sent"):
        return fails("spool", f"{words}: none was sent yet", "tandem status says why they wait", None, causes)
    return passes("spool", words)


def _uploads(config: Config, status: Status) -> Line:
    """Never fails: where they stay is the owner's choice, which is told."""
    waiting = (status.get("traces") or {}).get("waiting_bytes") or 0
    go, words = intended(config.traces, config.paths)
    said = f"{waiting / 1e6:.0f} MB wait; {words}"
    return passes("uploads", said) if go else skipped("uploads", said)
