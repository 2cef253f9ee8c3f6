"""Lines of paths, data, Multipath TCP, server, token, budget and version. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tandem.app.config import Config
from tandem.app.config_schema import PathConfig
from tandem.app.preflight.facts import Measured, Server, Tunnel
from tandem.app.preflight.lines import Line, Name, fails, passes, skipped
from tandem.app.preflight.modems import COLLECTOR, Status, unheard

_SERVER: tuple[Name, ...] = (("server", None),)
_TOKEN: tuple[Name, ...] = (("token", None),)
_CLOCK: tuple[Name, ...] = (("clock", None),)
_BUDGET: tuple[Name, ...] = (("budget", None),)


def path_lines(config: Config, status: Status) -> list[Line]:
    """Whether each path is up."""
    states = status.get("paths") or {}
    return [_path(path, states.get(path.name) or {}, unheard(status)) for path in config.paths]


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


def measured_lines(config: Config, measured: Measured, server: Server) -> list[Line]:
    """What came over each path, and what becomes of Multipath TCP there."""
    # The endpoint's control channel opens what is measured; a gateway that is down hinders none of it.
    hinders = (
        (COLLECTOR, measured.unanswered),
        (_TOKEN, server.token not in (None, "good")),
        (_BUDGET, server.budget is not None),
        (_SERVER, server.control is not None),
        (_CLOCK, server.untimely),
    )
    shared = [cause for cause, so in hinders if so]
    return [line for path in config.paths for line in (_data(path, measured, shared), _mptcp(path, measured, shared))]


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


def server_lines(config: Config, server: Server, running: str | None) -> list[Line]:
    """Server, token, version and what the endpoint grants. ``running``: the collector's version."""
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
    lines.append(_version(server, running, [*after, _TOKEN, *([COLLECTOR] if running is None else [])]))
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


def metrics_line(own: str | None, server: Server) -> Line:
    """Whether a connection begins without what an earlier one to the same address left (ssthresh above all), at both ends. ``own``: of this
    kernel, None where it has no such sysctl or hides it."""
    kept = [end for end, told in (("this kernel", own), ("the server's kernel", server.no_metrics_save)) if told == "0"]
    if kept:
        what = f"{' and '.join(kept)}: transfers inherit what earlier ones left (net.ipv4.tcp_no_metrics_save is 0)"
        return fails("metrics", what, "the playbook's role mptcp, there; or sysctl -w net.ipv4.tcp_no_metrics_save=1")
    untold = [end for end, told in (("here", own), ("at the server", server.no_metrics_save)) if told is None]
    if untold:
        return skipped("metrics", f"whether transfers inherit from earlier ones is not told {' and '.join(untold)}")
    return passes("metrics", "no transfer inherits from earlier ones, at both ends")


def plan_lines(config: Config, sims: Mapping[str, Mapping[str, Any]]) -> list[Line]:
    """What each SIM may carry."""
    return [_plan(path, sims.get(path.name)) for path in config.paths if path.day_limit_bytes is not None]


def _plan(path: PathConfig, sim: Mapping[str, Any] | None) -> Line:
    limit = path.day_limit_bytes or 0
    day = f"at most {limit / 1e6:.0f} MB a day{'' if path.day_bytes is not None else ' (day_bytes is not told)'}"
    if limit == 0:
        day = "day_bytes is 0: only the radio is measured"
    if path.plan is None:
        return passes("budget", f"{day}; no plan is told ([path.plan])", path.name)
    if sim is None:
        return fails(
            "budget", "it is not known while the time is not", "see the clock's line", path.name, [_CLOCK, COLLECTOR]
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


def tunnel_lines(tunnel: Tunnel | None) -> list[Line]:
    """The way by which people reach the kit, where it has one."""
    if tunnel is None:
        return []
    if tunnel.answered:
        return [passes("tunnel", tunnel.detail)]
    mend = "clock first; then wg show, and at the server: tandem-server probe peers, UDP port 51820"
    return [fails("tunnel", tunnel.detail, mend, None, [_CLOCK])]
