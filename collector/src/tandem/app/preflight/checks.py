"""Every line of the check, from what was found out. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from tandem.app.config import Config
from tandem.app.config_schema import PathConfig
from tandem.app.health.machine import Room
from tandem.app.health.reports import LOW_INODES_SHARE, WORN_PERCENT, life_used_percent
from tandem.app.preflight.lines import Line, Name, State, fails, passes, skipped
from tandem.app.traces import intended
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


class Found(NamedTuple):
    """What a check found. ``hint``: what to do where it fails; ``causes``: names of other checks, beside those that the table has."""

    state: State
    finding: str
    hint: str = ""
    causes: tuple[str, ...] = ()


def _good(finding: str) -> Found:
    return Found("pass", finding)


def _bad(finding: str, hint: str, *causes: str) -> Found:
    return Found("fail", finding, hint, causes)


def _skip(why: str) -> Found:
    return Found("skipped", why)


@dataclass(frozen=True, slots=True)
class Check:
    """``judge`` is given the facts; of a ``path`` that too, once for each; of a ``modem`` also what the collector tells of it. None: there
    is no such line here. ``causes``: names of checks any of which, when it fails, is why this one does (of the same path); see also
    ``_group``. ``settles``: it may become well by itself in a while, being what the status tells."""

    name: str
    judge: Callable[..., Found | None]
    causes: tuple[str, ...] = ()
    of: Literal["kit", "path", "modem"] = "kit"
    settles: bool = False


def lines(facts: Facts) -> list[Line]:
    return [line for check in CHECKS for line in _lines(check, facts)]


def settling_lines(facts: Facts) -> list[Line]:
    """Those that may become well by themselves in a while: what the status tells of modems, paths and the machine."""
    return [line for check in CHECKS if check.settles for line in _lines(check, facts)]


def _lines(check: Check, facts: Facts) -> Iterator[Line]:
    if check.of == "kit":
        yield from _line(check, None, check.judge(facts), facts)
    for path in facts.config.paths:
        if check.of == "path":
            yield from _line(check, path.name, check.judge(facts, path), facts)
        elif check.of == "modem" and path.modem is not None:
            reported = (facts.status.get("modems") or {}).get(path.name) or {}
            yield from _line(check, path.name, check.judge(facts, path, reported), facts)


def _line(check: Check, path: str | None, found: Found | None, facts: Facts) -> Iterator[Line]:
    if found is None:
        return
    if found.state == "fail":
        groups = [_group(name, path, facts) for name in (*check.causes, *found.causes)]
        yield fails(check.name, found.finding, found.hint, path, [group for group in groups if group])
    else:
        yield (passes if found.state == "pass" else skipped)(check.name, found.finding, path)


_ONLY_IF: dict[str, tuple[str, Callable[[Facts], bool]]] = {
    "unheard": ("collector", lambda facts: not facts.status),
    "unnamed": ("collector", lambda facts: facts.running is None),
    "unanswered": ("collector", lambda facts: facts.measured.unanswered),
    "refused": ("token", lambda facts: facts.server.token not in (None, "good")),
    "spent": ("budget", lambda facts: facts.server.budget is not None),
    "unreached": ("server", lambda facts: facts.server.control is not None),
    "untimely": ("clock", lambda facts: facts.server.untimely),
}
"""Causes that are so only if: the check that is one then. ``unheard``: no collector answers at all, ours included."""

_SESSION = ("unanswered", "refused", "spent", "unreached", "untimely")
"""The endpoint's control channel opens what is measured; a gateway that is down hinders none of it."""


def _group(name: str, path: str | None, facts: Facts) -> tuple[Name, ...]:
    """The lines that a cause names, together; ``paths``: all of them. Empty when it is none now."""
    if name == "paths":
        return tuple(("path", one.name) for one in facts.config.paths)
    line, so = _ONLY_IF.get(name, (name, lambda _facts: True))
    return ((line, path if line in _OF_PATH else None),) if so(facts) else ()


# ---------------------------------------------------------------------------------------------------------------------
# Modems.

_SILENT_S, _PERIODS = 10.0, 5
"""So old the last poll may be, or so many periods."""

_GONE = ("no_answer", "port_lost")
_SERVED = ("connected", "idle")
_NAMES = {"rsrp_dbm": "RSRP", "rsrq_db": "RSRQ", "sinr_db": "SINR", "rssi_dbm": "RSSI"}
_UNITS = {"rsrp_dbm": "dBm", "rsrq_db": "dB", "sinr_db": "dB", "rssi_dbm": "dBm"}


def _where(path: PathConfig) -> str:
    """The modem's place, as the configuration has it."""
    modem = path.modem
    return "no modem" if modem is None else f"USB {modem.usb}" if modem.usb is not None else str(modem.port)


def _modem(facts: Facts, path: PathConfig, reported: Status) -> Found:
    age_s, state = reported.get("age_s"), reported.get("state")
    if age_s is None or state is None:
        hint = "tandem modem list: is it plugged in where the configuration says, and who has its port?"
        return _bad(f"it was never heard at {_where(path)}", hint)
    if (
        state in _GONE
        or reported.get("failure") is not None
        or age_s > max(_SILENT_S, _PERIODS * facts.config.period_s)
    ):
        how = {"no_answer": "it does not answer", "port_lost": "it is not plugged in, or its port has gone"}.get(
            state, "it refuses" if reported.get("failure") else "its last answer is old"
        )
        hint = "pull it out and put it in again; tandem modem list; another cable or port of the hub"
        return _bad(f"{how}, at {_where(path)}", hint)
    model = reported.get("model") or "a modem that does not say which"
    return _good(f"{model} (driver {reported.get('driver')}) at {_where(path)}")


def _sim(facts: Facts, path: PathConfig, reported: Status) -> Found:
    look = reported.get("sim")
    if look is None:
        return _bad("the SIM was not looked at", "see the modem's line; or restart a collector older than this")
    if look.get("failure") is not None:
        hint = "take the SIM out and put it in again; tandem modem list"
        return _bad(f"it could not be looked at: {look['failure']}", hint)
    state, named = look.get("state"), look.get("named")
    if state is None:
        return _skip("this modem tells nothing of its SIM")
    if state != READY:
        hint = "the right SIM in this slot, and one that works"
        if state == WANTS_PIN:
            hint = (
                f"./kit fleet secret {facts.config.probe} secret_pin_{path.name} -i DIR, then the probe playbook; "
                "a refused PIN is not tried twice"
            )
        return _bad(str(state), hint)
    if named is False:
        hint = "put the slot's own SIM in, or give the path the hash of this one (tandem modem list --sim)"
        return _bad("another SIM than the configuration names", hint)
    return _good("ready" + (", the one that is named" if named else "; no SIM is named for the slot"))


def _is_served(reported: Status) -> bool:
    """Some modems do not tell the state of RRC: a cell or a radio technology says that they are served."""
    return reported.get("state") in _SERVED or (reported.get("state") == "unknown" and reported.get("rat") is not None)


def _registered(_facts: Facts, path: PathConfig, reported: Status) -> Found:
    if _is_served(reported):
        return _good(f"{reported.get('rat') or 'technology not known'}, {path.operator or 'no operator named'}")
    words = {
        "searching": "it searches for a network",
        "limited": "the network refuses it: emergency calls only",
        "no_service": "it has no service",
    }
    hint = "antenna and place; is the SIM active, and of this operator? then APN and roaming in [path.modem.connection]"
    return _bad(words.get(str(reported.get("state")), "it does not say that it is registered"), hint)


def _levels(_facts: Facts, _path: PathConfig, reported: Status) -> Found:
    heard = {key: reported[key] for key in _NAMES if isinstance(reported.get(key), int | float)}
    if not heard and _is_served(reported):
        return _skip("this modem tells no levels")
    if not heard:
        return _bad("no levels are known", "see the modem's other lines")
    words = ", ".join(f"{_NAMES[key]} {value:g} {_UNITS[key]}" for key, value in heard.items())
    judged = "rsrp_dbm" if "rsrp_dbm" in heard else "rssi_dbm" if "rssi_dbm" in heard else None
    if judged is not None and tone_of("radio", judged, heard[judged]) == "poor":
        limit = scale("radio", judged)
        least = "" if limit is None else f" (poor is below {limit.fair:g} {_UNITS[judged]})"
        hint = "check the antenna's plug; then near a window or outdoors: --accept if it is the place"
        return _bad(words + least, hint)
    return _good(words)


# ---------------------------------------------------------------------------------------------------------------------
# Paths, the server, and what came of it.


def _path(facts: Facts, path: PathConfig) -> Found:
    reported = (facts.status.get("paths") or {}).get(path.name) or {}
    state, interface = reported.get("state"), reported.get("interface")
    where = interface or path.interface or f"USB {path.usb}"
    if state == "up":
        return _good(f"{where} is up")
    words = {
        "down": "is down",
        "no_address": "has no address",
        "ipv6_only_unusable": "has an IPv6 address alone, which cannot be used",
        "colliding": "has the address of another path",
        "no_route": "has no way out",
        None: "is not known",
    }
    hint = f"{_access_point(path)}; mmcli -m any" if path.modem is not None else "ip address; nmcli device"
    return _bad(f"{where} {words.get(state, state)}", hint)


def _access_point(path: PathConfig) -> str:
    """What to look at first where a modem's path carries nothing."""
    if path.modem is None or path.modem.connection is None:
        return "the stick's own page, its APN" if path.modem is not None else "the network"
    name, apn = path.name, path.modem.connection.apn
    return f"is {apn} the APN of this SIM? apn of path {name} in tandem_paths, or tandem_path_settings: {{{name}: {{apn: NAME}}}}"


def _data(facts: Facts, path: PathConfig) -> Found:
    measured = facts.measured
    row = measured.downloads.get(path.name)
    if measured.held is not None:
        return _bad(f"not tried: {measured.held}", "wait for it, or: tandem experiment stop, tandem campaign stop")
    if row is None:
        return _bad("not tried: the path is not up", "see the path's line")
    if not row.get("ok"):
        hint = f"{_access_point(path)}; the SIM's plan at the operator; tandem experiment run traceroute"
        return _bad(f"a download failed: {row.get('failure')}", hint)
    rate = row.get("goodput_bit_per_s")
    reported = "" if not isinstance(rate, int | float) else f", {rate / 1e6:.1f} Mbit/s"
    return _good(f"{(row.get('bytes') or 0) / 1000:.0f} kB came{reported}")


def _mptcp(facts: Facts, path: PathConfig) -> Found:
    measured = facts.measured
    reported = measured.verdicts.get(path.name)
    if reported is None:
        why = measured.verdict_failure or measured.held or "the path carries no data"
        return _bad(f"no verdict: {why}", "tandem experiment run verdict says more")
    primary, join = (reported.get(role) or {} for role in ("primary", "join"))
    verdicts = f"{primary.get('verdict')} as the first path, {join.get('verdict')} as one that joins"
    # Where no other path is native there is nothing to join: that is the other path's line.
    if primary.get("verdict") == "native" and join.get("verdict") in ("native", "untested"):
        return _good(verdicts)
    wrong = join if primary.get("verdict") == "native" else primary
    hint = "another APN or SIM of this operator; if the network is so, it is a finding: --accept mptcp:" + path.name
    return _bad(f"{verdicts}: {wrong.get('detail') or ''}", hint)


def _server(facts: Facts) -> Found:
    server = facts.server
    if server.gateway is None and server.control is None:
        return _good(f"gateway and endpoint answer (version {server.version or 'not known'})")
    wrong = [f"gateway: {server.gateway}"] * (server.gateway is not None)
    wrong += [f"endpoint: {server.control}"] * (server.control is not None)
    hint = "at the server: systemctl status tandem-server.target, its firewall; here: [server] in the configuration"
    return _bad("; ".join(wrong), hint)


def _token(facts: Facts) -> Found:
    config, server = facts.config, facts.server
    hint = "tandem-server probe rotate NAME at the server, its output into token_file here, then restart the collector"
    if server.token is None:
        return _bad("the server could not be asked", "see the server's line")
    if server.token != "good":  # noqa: S105  a state, no secret
        return _bad(server.token, hint)
    if server.probe is not None and server.probe != config.probe:
        return _bad(f"it is {server.probe}'s, this is {config.probe}: two kits' cards or files were swapped", hint)
    return _good("the server knows it" + ("" if server.probe is None else f" as {server.probe}'s"))


def _version(facts: Facts) -> Found:
    server, running = facts.server, facts.running
    if server.expected is None:
        if server.token == "good":  # noqa: S105  a state, no secret
            return _skip(f"{running or 'not known'}; this server does not say which it expects")
        return _bad("the server could not be asked which it expects", "see its line")
    # What stands behind "+" tells builds of one version apart; who expects a version expects any of them.
    if running is not None and server.expected in (running, running.partition("+")[0]):
        return _good(f"{running}, as the server expects")
    hint = "run the probe playbook again (it may have been rolled back: journalctl -u tandem); or [collector] version there"
    return _bad(f"{running or 'not known'}, the server expects {server.expected}", hint)


def _granted(facts: Facts) -> Found | None:
    """What the endpoint grants; nothing is reported where it could not be asked."""
    server = facts.server
    if server.budget is not None:
        hint = "raise the probe's share in the server's configuration ([probes.NAME], [limits]), or wait for tomorrow (UTC)"
        return _bad(f"the server grants no session: {server.budget}", hint)
    was_asked = server.control is None and server.token == "good"  # noqa: S105  a state, no secret
    return _good("the server grants sessions") if was_asked else None


def _metrics(facts: Facts) -> Found:
    """Whether a connection begins without what an earlier one to the same address left (ssthresh above all), at both ends."""
    own, server = facts.no_metrics_save, facts.server
    kept = [
        end
        for end, reported in (("this kernel", own), ("the server's kernel", server.no_metrics_save))
        if reported == "0"
    ]
    if kept:
        what = f"{' and '.join(kept)}: transfers inherit what earlier ones left (net.ipv4.tcp_no_metrics_save is 0)"
        return _bad(what, "the playbook's role mptcp, there; or sysctl -w net.ipv4.tcp_no_metrics_save=1")
    unreported = [
        end for end, reported in (("here", own), ("at the server", server.no_metrics_save)) if reported is None
    ]
    if unreported:
        return _skip(f"whether transfers inherit from earlier ones is not known {' and '.join(unreported)}")
    return _good("no transfer inherits from earlier ones, at both ends")


def _plan(facts: Facts, path: PathConfig) -> Found | None:
    limit, sim = path.day_limit_bytes, facts.sims.get(path.name)
    if limit is None:
        return None
    day = f"at most {limit / 1e6:.0f} MB a day{'' if path.day_bytes is not None else ' (day_bytes is not set)'}"
    if limit == 0:
        day = "day_bytes is 0: only the radio is measured"
    if path.plan is None:
        return _good(f"{day}; no plan is set ([path.plan])")
    if sim is None:
        return _bad("it is not known while the time is not", "see the clock's line", "clock", "collector")
    left, expected = sim.get("left_bytes") or 0, sim.get("expected_bytes") or 0
    words = f"{left / 1e9:.2f} of {path.plan.bytes / 1e9:.2f} GB left until {sim.get('reset')}"
    hint = "a SIM with a plan left; fewer or smaller runs; plan and reset day in [path.plan]"
    if left <= 0:
        return _bad(f"the SIM's plan is used up: {words}", hint)
    if sim.get("sure") and expected > path.plan.bytes * path.plan.warn_share:
        return _bad(f"the SIM's plan will not last: {words}, {expected / 1e9:.2f} GB forecast", hint)
    return _good(f"{day}; {words}")


def _tunnel(facts: Facts) -> Found | None:
    if facts.tunnel is None:
        return None
    answered, detail = facts.tunnel
    hint = "clock first; then wg show, and at the server: tandem-server probe peers, UDP port 51820"
    return _good(detail) if answered else _bad(detail, hint)


# ---------------------------------------------------------------------------------------------------------------------
# The machine itself.

_BEHIND_S = SCALES["health.spool_oldest_s"].good
_CLOCK_OFF_S = 60.0
"""Of the gateway's: a probe sends nothing above it (docs/reference/probe-api.md)."""


def _collector(facts: Facts) -> Found:
    if facts.collector is not None:
        return _bad(facts.collector, "systemctl restart tandem; journalctl -u tandem says why it ended")
    return _good(f"it runs, for {float(facts.status.get('uptime_s') or 0):.0f} s")


def _player(facts: Facts) -> Found:
    """Who plays video; none is no fault."""
    if facts.vlc is None:
        return _skip(
            "no VLC that could be started here: campaigns that ask for it (mohan-dash) play with our own player"
        )
    if facts.vlc:
        hint = "apt-get install --reinstall vlc-bin vlc-plugin-base; or remove vlc-bin: then our own player plays"
        return _bad(f"VLC does not start: {facts.vlc}", hint)
    return _good("VLC starts")


def _clock(facts: Facts) -> Found:
    reported, off_s = facts.status.get("clock") or {}, facts.server.clock_off_s
    if off_s is not None and abs(off_s) > _CLOCK_OFF_S:
        hint = "chronyc makestep; chronyc sources; a time server must be reachable outside of the tunnel"
        return _bad(f"it is {off_s:+.0f} s off the server's", hint)
    if not reported.get("vouched"):
        why = str(reported.get("trouble") or "nobody vouches for the time").partition("; hint: ")[0]
        return _bad(why, "chronyc tracking; chronyc sources: is a time server reached?", "paths")
    source, error = reported.get("source"), reported.get("error_ms")
    if source == "system":
        return _good('trusted as it stands: [clock] source = "system"')
    return _good(f"{source} vouches for it" + ("" if error is None else f", within {error:g} ms"))


def _gps(facts: Facts) -> Found:
    if facts.config.position is None:
        return _skip("position is off in the configuration")
    reported = facts.status.get("position") or {}
    if reported.get("state") in ("fix", "private"):
        used = reported.get("satellites_used")
        return _good("position is known" + ("" if used is None else f", {used} satellites"))
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
    return _bad(*words.get(str(reported.get("state")), ("nothing is known of position", "tandem status")))


def _power(facts: Facts) -> Found:
    health = facts.status.get("health") or {}
    now = {key: health.get(key) for key in ("undervoltage", "throttled")}
    before = {key: health.get(f"{key}_since_boot") for key in now}
    if all(value is None for value in (*now.values(), *before.values())):
        if not health:
            return _bad("nothing is known of it", "see the collector's line")
        return _skip("this machine tells nothing of its supply")
    if now["undervoltage"] or before["undervoltage"]:
        hint = "a stronger supply, a shorter cable, a powered hub for the modems; then restart the probe"
        return _bad(f"the supply's voltage {'is' if now['undervoltage'] else 'was (since boot)'} too low", hint)
    if now["throttled"]:
        return _bad("the processor is slowed down", "cool it; or see to the supply")
    return _good("the supply's voltage was never too low since boot")


def _disk(facts: Facts) -> Found:
    room = facts.disk
    if isinstance(room, str):
        return _bad(f"{facts.config.folder}: {room}", "mount the spool's partition; its owner is the user tandem")
    words = f"{room.free_bytes / 1e9:.2f} of {room.size_bytes / 1e9:.2f} GB free"
    scarce = room.free_inodes_share is not None and room.free_inodes_share < LOW_INODES_SHARE
    if disk_tone(room.free_bytes, room.used_bytes) == "poor" or scarce:
        hint = "make room (tandem traces list shows what waits), or lower [capture] and [spool] budgets"
        return _bad(words + (f", {room.free_inodes} inodes" if scarce else ""), hint)
    for device, reported in (facts.status.get("cards") or {}).items():
        used = life_used_percent(reported)
        if used is not None and used >= WORN_PERCENT:
            hint = "a new card: flash it, and decommission this one"
            return _bad(f"{device} has used up {used} % of its life", hint)
    return _good(words)


def _spool(facts: Facts) -> Found:
    status = facts.status
    counts, health = status.get("spool"), status.get("health") or {}
    if counts is None:
        return _bad("nothing is known of it", "see the collector's line")
    words = f"{counts.get('made', 0)} records made, {counts.get('pending', 0)} wait"
    lost = [f"{counts[k]} {k}" for k in ("rejected", "dropped") if counts.get(k)]
    words += f" ({', '.join(lost)} since it was made)" if lost else ""
    oldest_s, trouble = health.get("spool_oldest_s"), status.get("trouble")
    if trouble:
        return _bad(str(trouble).partition("; hint: ")[0], "see server, token, clock and disk")
    if isinstance(oldest_s, int | float) and oldest_s > _BEHIND_S:
        hint = "leave it on a good network until they are sent; tandem status says why they wait"
        return _bad(f"{words}, the oldest for {oldest_s / 60:.0f} min", hint)
    if counts.get("made") and not counts.get("sent"):
        return _bad(f"{words}: none was sent yet", "tandem status says why they wait")
    return _good(words)


def _uploads(facts: Facts) -> Found:
    """Never fails: where they stay is the owner's choice, which is reported."""
    waiting = (facts.status.get("traces") or {}).get("waiting_bytes") or 0
    go, words = intended(facts.config.traces, facts.config.paths)
    return (_good if go else _skip)(f"{waiting / 1e6:.0f} MB wait; {words}")


CHECKS = (
    Check("collector", _collector),
    Check("modem", _modem, ("unheard",), "modem", settles=True),
    Check("sim", _sim, ("unheard", "modem"), "modem", settles=True),
    Check("registered", _registered, ("unheard", "modem", "sim"), "modem", settles=True),
    Check("levels", _levels, ("unheard", "modem", "registered", "sim"), "modem", settles=True),
    Check("path", _path, ("unheard", "modem", "sim", "registered"), "path", settles=True),
    Check("clock", _clock, ("unheard",), settles=True),
    Check("gps", _gps, ("unheard",), settles=True),
    Check("power", _power, ("unheard",), settles=True),
    Check("disk", _disk, settles=True),
    Check("spool", _spool, ("unheard", "server", "token", "clock", "disk"), settles=True),
    Check("uploads", _uploads, settles=True),
    Check("data", _data, ("path", "registered", "sim", "modem", *_SESSION), "path"),
    Check("mptcp", _mptcp, ("data", "path", *_SESSION), "path"),
    Check("player", _player),
    Check("server", _server, ("paths", "untimely")),
    Check("token", _token, ("server", "paths")),
    Check("version", _version, ("server", "paths", "token", "unnamed")),
    Check("budget", _granted, ("server", "paths", "token")),
    Check("metrics", _metrics),
    Check("budget", _plan, of="path"),
    Check("tunnel", _tunnel, ("clock",)),
)
"""In no order: ``lines.TITLES`` has that. A budget is the server's, and one of each SIM."""

_OF_PATH = {check.name for check in CHECKS if check.of != "kit"} - {"budget"}
