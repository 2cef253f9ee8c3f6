"""Every key of a campaign file, and the hint for a mistake in it. Data only."""

from __future__ import annotations

import re

from tandem.schema.metrics import EVENT_KINDS
from tandem.schema.toml_file import Key

_YEAR_S = 366 * 86400.0
TRIGGERS: dict[str, tuple[str, ...]] = {
    "always": (),
    "mobility_start": (),
    "event": ("event",),
    "speed_class": ("speed_class",),
    "place": ("latitude_deg", "longitude_deg", "radius_m"),
    "window": ("between",),
    "periodic": ("every_s",),
    "poisson": ("mean_s",),
    "hand": (),
}
"""What each kind of trigger needs beside ``on``."""

SPEED_CLASSES = ("still", "low", "high")


def _name(value: str) -> str | None:
    return None if re.fullmatch(r"[a-z0-9](?:[a-z0-9_-]{0,61}[a-z0-9])?", value) else f"{value!r} is no name"


def minutes(value: str) -> tuple[int, int] | None:
    """``HH:MM-HH:MM`` as minutes of the day; None when it is not that."""
    match = re.fullmatch(r"([01][0-9]|2[0-3]):([0-5][0-9])-([01][0-9]|2[0-3]):([0-5][0-9])", value, re.ASCII)
    if match is None:
        return None
    start, end = int(match[1]) * 60 + int(match[2]), int(match[3]) * 60 + int(match[4])
    return None if start == end else (start, end)


def _between(value: str) -> str | None:
    return None if minutes(value) else f"{value!r} is no span of the day"


_NAMED = "use lower-case letters, digits and inner '-' and '_', at most 63"
_SPAN = 'as in "02:00-05:00", local time'
_SECONDS = "seconds, 0 to 31622400"


def seconds(name: str, default: float | None, minimum: float = 0.0, *, above: bool = False) -> Key:
    """A key in seconds, at most a year."""
    hint = _SECONDS if not minimum and not above else f"seconds, {'above ' if above else ''}{minimum:g} to 31622400"
    return Key(name, "number", hint, default=default, minimum=minimum, maximum=_YEAR_S, above=above)


TOP = (
    Key(
        "format", "text", 'write format = "tandem-campaign-file/1"', required=True, choices=("tandem-campaign-file/1",)
    ),
    Key("name", "text", _NAMED, required=True, check=_name),
    Key("title", "text", "one line for people", required=True),
    Key("reference", "text", "the paper, or what else it repeats", default=""),
    Key("seed", "whole", "a whole number from 0", default=1, minimum=0, maximum=2**63 - 1),
    seconds("quiet_s", 0.0),
    Key("timezone", "text", "an IANA name, as in America/Los_Angeles; leave it out for the probe's own zone"),
    Key("hold_maintenance", "truth", "true or false", default=True),
    Key("on_interrupt", "text", "repeat or count", default="repeat", choices=("repeat", "count")),
    Key("allow_substitutes", "truth", "true or false", default=False),
)
TOP_TABLES = ("roles", "requires", "budget", "base", "assume", "step", "form")

STEP = (
    Key("name", "text", _NAMED, required=True, check=_name),
    Key("experiment", "text", "the name of an experiment (tandem experiment list)", required=True, check=_name),
    Key("repetitions", "whole", "1 to 1000000", default=1, minimum=1, maximum=1_000_000),
    Key("order", "text", "blocks, shuffled or listed", default="blocks", choices=("blocks", "shuffled", "listed")),
    Key("priority", "whole", "0 to 100; the highest goes first", default=50, minimum=0, maximum=100),
    Key("optional", "truth", "true or false", default=False),
    Key("seconds", "number", "how long a run takes, above 0 to 86400", minimum=0, maximum=86400, above=True),
    Key("bytes", "whole", "bytes that a run moves over each path, 0 to 10^12", minimum=0, maximum=10**12),
)
STEP_TABLES = ("parameters", "arms", "shape", "sysctl", "trigger", "conditions")

TRIGGER = (
    Key("on", "text", f"one of {', '.join(TRIGGERS)}", required=True, choices=tuple(TRIGGERS)),
    seconds("gap_s", 0.0),
    seconds("within_s", 5.0, above=True),
    Key("speed_class", "text", "still, low or high", choices=SPEED_CLASSES),
    Key("latitude_deg", "number", "degrees, -90 to 90", minimum=-90, maximum=90),
    Key("longitude_deg", "number", "degrees, -180 to 180", minimum=-180, maximum=180),
    Key("radius_m", "number", "metres, 10 to 1000000", minimum=10, maximum=1_000_000),
    Key("between", "text", _SPAN, check=_between),
    seconds("every_s", None, 1.0),
    seconds("mean_s", None, 1.0),
    Key("expected_per_day", "number", "runs a day, above 0 to 86400", minimum=0, maximum=86400, above=True),
)
"""``labels``, a list of texts, and ``event``, one kind or a list of kinds, stand beside these."""

EVENT = Key("event", "text", "a kind of event, or a list of kinds, as in handover", choices=EVENT_KINDS)

CONDITIONS = (
    Key("mobile", "truth", "true or false"),
    Key("speed_class", "text", "still, low or high", choices=SPEED_CLASSES),
    Key("paths_up", "whole", "1 to 8", minimum=1, maximum=8),
    Key("between", "text", _SPAN, check=_between),
)

BUDGET = (
    Key("path_bytes", "whole", "bytes of each path from reset to reset, 1 to 10^15", minimum=1, maximum=10**15),
    Key("day_bytes", "whole", "bytes of each path in a day, 1 to 10^15", minimum=1, maximum=10**15),
    Key("day_runs", "whole", "runs in a day, 1 to 100000", minimum=1, maximum=100_000),
    Key("reset_day", "whole", "the day of the month on which the plan begins anew, 1 to 31", default=1, minimum=1, maximum=31),
)  # fmt: skip
"""``role``, a table of bytes by role, stands beside these."""

REQUIRES = (Key("scheduler", "text", "as the paper names it, as in minsrtt", check=_name),)
"""``controllers``, a list of texts, and ``substitutes``, a table, stand beside it."""


def _numbers(hint: str, low: float, high: float, *names: str) -> tuple[Key, ...]:
    return tuple(Key(name, "number", hint, minimum=low, maximum=high) for name in names)


SHAPE = (
    *_numbers("bit/s, 10000 to 10^10", 10_000, 10**10, "rate_bit_per_s", "down_bit_per_s", "up_bit_per_s"),
    *_numbers("ms, 0 to 10000", 0, 10_000, "rtt_ms", "down_delay_ms", "up_delay_ms"),
    *_numbers("percent, 0 to 100", 0, 100, "down_loss_percent", "up_loss_percent"),
    Key("queue_ms", "number", "ms, 1 to 10000", minimum=1, maximum=10_000),
)
"""What a path is shaped to, seen from the probe: down is what it receives. ``rate_bit_per_s`` is both ways; ``rtt_ms`` is added to the
round trip, half in each direction; with them the ones for a single direction are refused."""


def _three(value: str) -> str | None:
    """As the kernel takes them: least, default and most bytes of a buffer."""
    words = value.split()
    sizes = [int(word) for word in words if re.fullmatch(r"[0-9]{4,10}", word, re.ASCII)]
    good = len(words) == len(sizes) == 3 and sizes == sorted(sizes) and sizes[0] >= 4096 and sizes[2] <= 1 << 30
    return None if good else f"{value!r} is no three sizes"


_SWITCH = "0 or 1"
_SIZES = 'three sizes in bytes, rising, 4096 to 1073741824, as in "4096 131072 33554432"'
SYSCTLS = (
    *(
        Key(name, "whole", _SWITCH, minimum=0, maximum=1)
        for name in (
            *("net.ipv4.tcp_no_metrics_save", "net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_moderate_rcvbuf"),
            *("net.ipv4.tcp_sack", "net.ipv4.tcp_timestamps", "net.mptcp.checksum_enabled"),
        )
    ),
    Key("net.ipv4.tcp_ecn", "whole", "0 to 2", minimum=0, maximum=2),
    Key("net.mptcp.stale_loss_cnt", "whole", "0 to 1000", minimum=0, maximum=1000),
    Key("net.mptcp.blackhole_timeout", "whole", "seconds, 0 to 86400", minimum=0, maximum=86400),
    Key("net.ipv4.tcp_rmem", "text", _SIZES, check=_three),
    Key("net.ipv4.tcp_wmem", "text", _SIZES, check=_three),
)
"""What of the probe's kernel a step may set for its runs: how a connection behaves, and nothing that opens a way in or out."""

ASSUME = SHAPE[:1]
"""How fast a path is thought to be, for the estimate."""

CONTRADICTING = (("rate_bit_per_s", ("down_bit_per_s", "up_bit_per_s")), ("rtt_ms", ("down_delay_ms", "up_delay_ms")))

FORM = (
    Key("repetitions", "whole", "1 to 1000000", minimum=1, maximum=1_000_000),
    Key("quiet_s", "number", _SECONDS, minimum=0, maximum=_YEAR_S),
    Key("immediate", "truth", "true: every step begins as soon as it may", default=False),
    Key("allow_substitutes", "truth", "true or false"),
)
FORM_TABLES = ("step", "base", "assume", "budget")
"""``step``: a table of steps by name, whose steps also take ``skip`` and ``without``."""
