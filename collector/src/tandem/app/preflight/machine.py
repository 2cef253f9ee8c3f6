"""Lines of the machine itself: collector, clock, GPS, power, disk, spool. Pure."""

from __future__ import annotations

from tandem.app.config import Config
from tandem.app.health.reports import LOW_INODES_SHARE, WORN_PERCENT
from tandem.app.preflight.facts import Disk, Vlc
from tandem.app.preflight.lines import Line, Name, fails, passes, skipped
from tandem.app.preflight.modems import Status, unheard
from tandem.app.traces.policy import intended
from tandem.schema.grades import SCALES, disk_tone

_BEHIND_S = SCALES["health.spool_oldest_s"].good
_CLOCK_OFF_S = 60.0
"""Of the gateway's: a probe sends nothing above it (docs/reference/probe-api.md)."""


def collector_line(trouble: str | None, status: Status) -> Line:
    """``trouble``: why it does not answer; None when it does."""
    if trouble is not None:
        return fails("collector", trouble, "systemctl restart tandem; journalctl -u tandem says why it ended")
    return passes("collector", f"it runs, for {float(status.get('uptime_s') or 0):.0f} s")


def machine_lines(config: Config, status: Status, disk: Disk, clock_off_s: float | None) -> list[Line]:
    """All but the collector's own."""
    return [
        _clock(config, status, clock_off_s),
        _gps(config, status),
        _power(status),
        _disk(config, disk, status),
        _spool(status),
        _uploads(config, status),
    ]


def player_line(vlc: Vlc | None) -> Line:
    """Who plays video. ``vlc`` None: none is installed, which is no fault."""
    if vlc is None:
        return skipped(
            "player",
            "no VLC that could be started here: campaigns that ask for it (mohan-dash) play with our own player",
        )
    if vlc.trouble is not None:
        mend = "apt-get install --reinstall vlc-bin vlc-plugin-base; or remove vlc-bin: then our own player plays"
        return fails("player", f"VLC does not start: {vlc.trouble}", mend)
    return passes("player", "VLC starts")


def _clock(config: Config, status: Status, off_s: float | None) -> Line:
    told = status.get("clock") or {}
    paths = tuple(("path", path.name) for path in config.paths)
    if off_s is not None and abs(off_s) > _CLOCK_OFF_S:
        mend = "chronyc makestep; chronyc sources; a time server must be reachable outside of the tunnel"
        return fails("clock", f"it is {off_s:+.0f} s off the server's", mend, None, unheard(status))
    if not told.get("vouched"):
        why = str(told.get("trouble") or "nobody vouches for the time").partition("; hint: ")[0]
        return fails(
            "clock",
            why,
            "chronyc tracking; chronyc sources: is a time server reached?",
            None,
            [*unheard(status), paths],
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
    return fails("gps", finding, mend, None, unheard(status))


def _power(status: Status) -> Line:
    health = status.get("health") or {}
    now = {key: health.get(key) for key in ("undervoltage", "throttled")}
    before = {key: health.get(f"{key}_since_boot") for key in now}
    if all(value is None for value in (*now.values(), *before.values())):
        if not health:
            return fails("power", "nothing is told of it", "see the collector's line", None, unheard(status))
        return skipped("power", "this machine tells nothing of its supply")
    mend = "a stronger supply, a shorter cable, a powered hub for the modems; then restart the probe"
    if now["undervoltage"] or before["undervoltage"]:
        return fails(
            "power", f"the supply's voltage {'is' if now['undervoltage'] else 'was (since boot)'} too low", mend
        )
    if now["throttled"]:
        return fails("power", "the processor is slowed down", "cool it; or see to the supply")
    return passes("power", "the supply's voltage was never too low since boot")


def _disk(config: Config, disk: Disk, status: Status) -> Line:
    room = disk.room
    if disk.trouble is not None or room is None:
        return fails(
            "disk", f"{config.folder}: {disk.trouble}", "mount the spool's partition; its owner is the user tandem"
        )
    words = f"{room.free_bytes / 1e9:.2f} of {room.size_bytes / 1e9:.2f} GB free"
    inodes = (room.free_inodes or 0) + (room.used_inodes or 0)
    scarce = room.free_inodes is not None and inodes > 0 and room.free_inodes < LOW_INODES_SHARE * inodes
    if disk_tone(room.free_bytes, room.used_bytes) == "poor" or scarce:
        mend = "make room (tandem traces list shows what waits), or lower [capture] and [spool] budgets"
        return fails("disk", words + (f", {room.free_inodes} inodes" if scarce else ""), mend)
    worn = _worn(status)
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
        *unheard(status),
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
