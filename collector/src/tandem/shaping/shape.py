"""What a path is shaped to, and the commands of ``tc`` and ``ip`` that do it. Pure: nothing here is run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

HANDLE = 0x7100
"""Of our qdisc at an interface's root; by it an earlier life's is known."""

PREFIX = "tshape"
"""``tshapeN`` is the IFB that takes what the interface with index N receives."""

_RANGES: dict[str, tuple[float, float, str]] = {
    "down_bit_per_s": (10_000, 10_000_000_000, "bit/s"),
    "up_bit_per_s": (10_000, 10_000_000_000, "bit/s"),
    "down_delay_ms": (0, 10_000, "ms"),
    "up_delay_ms": (0, 10_000, "ms"),
    "down_loss_percent": (0, 100, "%"),
    "up_loss_percent": (0, 100, "%"),
    "queue_ms": (1, 10_000, "ms"),
}
QUEUE_MS = 200.0
_SMALLEST_QUEUE_BYTES = 32_000
_SMALLEST_BURST_BYTES = 3_200
_PACKET_BYTES = 1514
_LARGEST_QUEUE_PACKETS = 100_000


class ShapeError(ValueError):
    """The wish cannot be: one line with the mend."""


@dataclass(frozen=True, slots=True)
class Shape:
    """One path, seen from the probe: down is what it receives. Rates in bit/s of whole frames, as the interface counts them; None: as
    the network gives. Delays are one way; loss is of single packets, independent. ``queue_ms``: how long the queue of a limited rate may
    become before packets are dropped at its end."""

    down_bit_per_s: float | None = None
    up_bit_per_s: float | None = None
    down_delay_ms: float = 0.0
    up_delay_ms: float = 0.0
    down_loss_percent: float = 0.0
    up_loss_percent: float = 0.0
    queue_ms: float = QUEUE_MS

    @property
    def needs_netem(self) -> bool:
        """Whether the kernel must be able to delay or lose."""
        return any((self.down_delay_ms, self.up_delay_ms, self.down_loss_percent, self.up_loss_percent))

    @property
    def down(self) -> Way:
        """What is received."""
        return Way(self.down_bit_per_s, self.down_delay_ms, self.down_loss_percent, self.queue_ms)

    @property
    def up(self) -> Way:
        """What is sent."""
        return Way(self.up_bit_per_s, self.up_delay_ms, self.up_loss_percent, self.queue_ms)


@dataclass(frozen=True, slots=True)
class Way:
    """One direction of a shape."""

    bit_per_s: float | None
    delay_ms: float
    loss_percent: float
    queue_ms: float

    @property
    def shaped(self) -> bool:
        """Whether anything is done to it."""
        return self.bit_per_s is not None or self.delay_ms > 0 or self.loss_percent > 0


def shape_of(given: Mapping[str, Any], where: str) -> Shape:
    """From plain values; ShapeError names the first thing wrong, ``where`` it is."""
    names = [f.name for f in fields(Shape)]
    values: dict[str, float] = {}
    for name, value in given.items():
        if name not in names:
            raise ShapeError(f"{where}: unknown {name!r}; known: {', '.join(names)}")
        if value is None:
            continue
        low, high, unit = _RANGES[name]
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ShapeError(f"{where}.{name}: {value!r} is no number of {unit}")
        if not low <= value <= high:
            raise ShapeError(f"{where}.{name}: {value:g} {unit} is not from {low:g} to {high:g} {unit}")
        values[name] = float(value)
    shape = Shape(**values)
    if not shape.up.shaped and not shape.down.shaped:
        raise ShapeError(f"{where}: nothing is shaped; give one of {', '.join(names[:-1])}")
    return shape


Command = tuple[str, ...]
"""A program, ``tc`` or ``ip``, and its arguments."""


def ifb_name(index: int) -> str:
    """The IFB of the interface with this index."""
    return f"{PREFIX}{index}"


def index_of(name: str) -> int | None:
    """The index of the interface whose IFB this is; None: it is none of ours."""
    number = name.removeprefix(PREFIX)
    return int(number) if name.startswith(PREFIX) and number.isascii() and number.isdigit() else None


def apply_commands(shape: Shape, interface: str, index: int) -> list[Command]:
    """What shapes ``interface``, in order; it must have no shaping of ours yet."""
    commands: list[Command] = []
    if shape.up.shaped:
        commands += _way(shape.up, interface)
    if shape.down.shaped:
        ifb = ifb_name(index)
        commands += [
            ("ip", "link", "add", ifb, "type", "ifb"),
            ("ip", "link", "set", ifb, "up"),
            *_way(shape.down, ifb),
            ("tc", "qdisc", "add", "dev", interface, "handle", "ffff:", "ingress"),
            # u32 that matches everything: matchall is missing in more kernels. The redirect begins last, when the way is ready.
            ("tc", "filter", "add", "dev", interface, "parent", "ffff:", "protocol", "all", "prio", "1", "u32", "match", "u32", "0",
             "0", "action", "mirred", "egress", "redirect", "dev", ifb),
        ]  # fmt: skip
    return commands


def _way(way: Way, device: str) -> list[Command]:
    """Root qdisc of one direction: HTB with a queue of bounded time, or netem, or netem inside HTB. Inside, since a delay before the
    rate would shape what netem's own queue lets out in bursts."""
    root = f"{HANDLE:x}:"
    netem = _netem(way)
    if way.bit_per_s is None:
        return [("tc", "qdisc", "add", "dev", device, "root", "handle", root, *netem)]
    rate = f"{way.bit_per_s:.0f}bit"
    burst = max(_SMALLEST_BURST_BYTES, int(way.bit_per_s / 8 * 0.002))
    htb = (
        "htb",
        "rate",
        rate,
        "ceil",
        rate,
        "burst",
        f"{burst}b",
        "cburst",
        f"{burst}b",
        "quantum",
        str(_PACKET_BYTES),
    )
    queue = ("bfifo", "limit", str(_queue_bytes(way)))
    return [
        ("tc", "qdisc", "add", "dev", device, "root", "handle", root, "htb", "default", "1"),
        ("tc", "class", "add", "dev", device, "parent", root, "classid", f"{root}1", *htb),
        ("tc", "qdisc", "add", "dev", device, "parent", f"{root}1", "handle", f"{HANDLE + 1:x}:", *(netem or queue)),
    ]


def _queue_bytes(way: Way) -> int:
    return max(_SMALLEST_QUEUE_BYTES, int((way.bit_per_s or 0) / 8 * way.queue_ms / 1000))


def _netem(way: Way) -> Command:
    if not way.delay_ms and not way.loss_percent:
        return ()
    # netem counts its queue in packets: what is under way during the delay, and the queue of the rate behind it
    rate = way.bit_per_s if way.bit_per_s is not None else 1e9
    under_way = rate / 8 * (way.delay_ms + way.queue_ms) / 1000 / _PACKET_BYTES
    words: Command = ("netem", "limit", str(min(_LARGEST_QUEUE_PACKETS, max(100, math.ceil(under_way)))))
    if way.delay_ms:
        words += ("delay", f"{way.delay_ms * 1000:.0f}us")
    if way.loss_percent:
        words += ("loss", f"{way.loss_percent:g}%")
    return words


def remove_commands(interface: str | None, *, up: bool, ifb: str | None) -> list[Command]:
    """What takes it down again; ``interface`` None: it is not there any more."""
    commands: list[Command] = []
    if interface is not None and up:
        commands.append(("tc", "qdisc", "del", "dev", interface, "root"))
    if interface is not None and ifb is not None:
        commands.append(("tc", "qdisc", "del", "dev", interface, "ingress"))
    if ifb is not None:
        commands.append(("ip", "link", "del", ifb))
    return commands
