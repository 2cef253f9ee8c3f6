"""What a path's interface is made worse by, and the kernel's queueing that does it."""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import shutil
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

HANDLE = 0x7100
"""Of our qdisc at an interface's root; by it an earlier life's is known."""

_ROOT = f"{HANDLE:x}:"

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
    """No shape: one line that says what to give."""


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


def _command(text: str, *more: str) -> Command:
    return (*text.split(), *more)


def ifb_name(index: int) -> str:
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
            _command(f"ip link add {ifb} type ifb"),
            _command(f"ip link set {ifb} up"),
            *_way(shape.down, ifb),
            _command(f"tc qdisc add dev {interface} handle ffff: ingress"),
            # u32 that matches everything: matchall is missing in more kernels. The redirect begins last, when the way is ready.
            _command(
                f"tc filter add dev {interface} parent ffff: protocol all prio 1 u32 match u32 0 0"
                f" action mirred egress redirect dev {ifb}"
            ),
        ]
    return commands


def _way(way: Way, device: str) -> list[Command]:
    """Root qdisc of one direction: HTB with a queue of bounded time, or netem, or netem inside HTB. Inside, since a delay before the
    rate would shape what netem's own queue lets out in bursts."""
    netem = _netem(way)
    if way.bit_per_s is None:
        return [_command(f"tc qdisc add dev {device} root handle {_ROOT}", *netem)]
    rate, burst = f"{way.bit_per_s:.0f}bit", f"{max(_SMALLEST_BURST_BYTES, int(way.bit_per_s / 8 * 0.002))}b"
    htb = f"htb rate {rate} ceil {rate} burst {burst} cburst {burst} quantum {_PACKET_BYTES}"
    inner = netem or ("bfifo", "limit", str(_queue_bytes(way)))
    return [
        _command(f"tc qdisc add dev {device} root handle {_ROOT} htb default 1"),
        _command(f"tc class add dev {device} parent {_ROOT} classid {_ROOT}1 {htb}"),
        _command(f"tc qdisc add dev {device} parent {_ROOT}1 handle {HANDLE + 1:x}:", *inner),
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
    commands = [
        f"tc qdisc del dev {interface} root" if interface is not None and up else "",
        f"tc qdisc del dev {interface} ingress" if interface is not None and ifb is not None else "",
        f"ip link del {ifb}" if ifb is not None else "",
    ]
    return [_command(command) for command in commands if command]


# Shaping done and undone in this network namespace, by iproute2's ``tc`` and ``ip``. Takes CAP_NET_ADMIN.

log = logging.getLogger(__name__)

_TIMEOUT_S = 10


class ShapingError(RuntimeError):
    """It cannot be shaped so; one line that names what is missing, with a hint. ``retry``: it may be otherwise in a while."""

    def __init__(self, reason: str, *, retry: bool = False) -> None:
        super().__init__(reason)
        self.retry = retry


def run(command: Command) -> str:
    """Run it; its output. ShapingError with what its refusal means."""
    program = shutil.which(command[0], path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
    if program is None:
        raise ShapingError(f"the program {command[0]} is missing; hint: install the package iproute2")
    try:
        done = subprocess.run([program, *command[1:]], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise ShapingError(f"{' '.join(command)}: no answer in {_TIMEOUT_S} s") from error
    if done.returncode != 0:
        raise ShapingError(meaning(command, " ".join(done.stderr.split()) or f"exit {done.returncode}"))
    return done.stdout


def meaning(command: Command, refusal: str) -> str:
    """In plain words, what the refusal of a command means."""
    lower = refusal.lower()
    if "not permitted" in lower:
        return f"{' '.join(command)}: {refusal}; hint: run as root, or with the capability NET_ADMIN"
    parts = (
        ("netem", "delay and loss need netem", "CONFIG_NET_SCH_NETEM"),
        ("htb", "a rate needs HTB", "CONFIG_NET_SCH_HTB"),
        ("ifb", "shaping what is received needs IFB", "CONFIG_IFB"),
        ("ingress", "shaping what is received needs the ingress qdisc", "CONFIG_NET_SCH_INGRESS"),
        ("mirred", "shaping what is received needs u32 and mirred", "CONFIG_NET_CLS_U32 and CONFIG_NET_ACT_MIRRED"),
    )
    unknown = ("unknown", "not supported", "no such file", "failed to load", "not found")
    if any(word in lower for word in unknown):
        for word, what, option in parts:
            if word in command:
                return (
                    f"{what}, which this kernel has not ({refusal}); hint: a kernel with {option}, or shape without it"
                )
    return f"{' '.join(command)}: {refusal}"


def missing(shape: Shape) -> str | None:
    """What this machine lacks for ``shape``, found on an IFB of its own that carries nothing; None when nothing."""
    trial = f"{PREFIX}-try"
    try:
        run(_command(f"ip link add {trial} type ifb"))
    except ShapingError as error:
        if shape.down.shaped or "not permitted" in str(error) or "missing" in str(error):
            return str(error)
        return None  # only what is sent is shaped, and there is nothing to try it on
    try:
        for way in (Shape(up_bit_per_s=1e6), Shape(up_delay_ms=1.0) if shape.needs_netem else None):
            if way is not None:
                for command in (*apply_commands(way, trial, 0), _command(f"tc qdisc del dev {trial} root")):
                    run(command)
    except ShapingError as error:
        return str(error)
    finally:
        with contextlib.suppress(ShapingError):  # gone with its namespace at the latest
            run(_command(f"ip link del {trial}"))
    return None


class Shaping:
    """The shaping of one run. ``apply`` is all or nothing; ``remove`` may be called at any time, and again."""

    def __init__(self) -> None:
        self._applied: dict[str, tuple[str, int, Shape]] = {}

    def apply(self, shapes: Mapping[str, Shape], interfaces: Mapping[str, str | None]) -> None:
        """Shape each path on its interface; ShapingError with nothing left behind."""
        try:
            for path, shape in shapes.items():
                self._one(path, interfaces.get(path), shape)
        except BaseException:
            self.remove()
            raise

    def _one(self, path: str, interface: str | None, shape: Shape) -> None:
        try:
            index = 0 if interface is None else socket.if_nametoindex(interface)
        except OSError:
            index = 0
        if interface is None or index == 0:
            what = "it has no interface now" if interface is None else f"there is no interface {interface}"
            raise ShapingError(f"path {path}: {what}; hint: try again when it is up", retry=True)
        other = foreign(_qdiscs(interface), up=shape.up.shaped, down=shape.down.shaped)
        if other is not None:
            raise ShapingError(f"{interface} has another program's {other} already; hint: take that away first")
        self._applied[path] = (interface, index, shape)
        for command in apply_commands(shape, interface, index):
            run(command)

    def state(self) -> dict[str, dict[str, Any]]:
        """By path, for the manifest: ``interface``, ``asked``, and ``held``, whether it is there still."""
        return {
            path: {"interface": interface, "asked": asdict(shape), "held": _held(interface, shape)}
            for path, (interface, _, shape) in self._applied.items()
        }

    def remove(self) -> list[str]:
        """Take everything down; what could not be taken down, one line each (an interface that is gone took its own along)."""
        problems: list[str] = []
        for path, (interface, index, shape) in list(self._applied.items()):
            ifb = ifb_name(index) if shape.down.shaped else None
            problems += _remove(_name(index), up=shape.up.shaped, ifb=ifb)
            if interface != _name(index):
                log.info("path %s: %s was shaped and is gone", path, interface)
            del self._applied[path]
        return problems


def clean() -> list[str]:
    """Take down what an earlier life left in this network namespace; the interfaces that it was on."""
    found: dict[str, tuple[bool, str | None]] = {}
    gone: list[str] = []
    for row in _json(("ip", "-j", "link", "show")):
        name = str(row.get("ifname", ""))
        index = index_of(name)
        if index is not None:
            interface = _name(index)
            if interface is None:
                gone.append(name)
            else:
                found[interface] = (False, name)
    for row in _qdiscs(None):
        device = str(row.get("dev", ""))
        if row.get("handle") == _ROOT and index_of(device) is None:
            found[device] = (True, found.get(device, (False, None))[1])
    problems: list[str] = []
    for interface, (up, ifb) in found.items():
        problems += _remove(interface, up=up, ifb=ifb)
    for name in gone:
        problems += _remove(None, up=False, ifb=name)
    for problem in problems:
        log.warning("shaping of an earlier life stays: %s", problem)
    return sorted({*found, *gone})


def foreign(qdiscs: list[dict[str, Any]], *, up: bool, down: bool) -> str | None:
    """The qdisc that somebody else made at one interface where ours would go; None when there is none. The kernel's own have handle 0."""
    for row in qdiscs:
        kind, handle = row.get("kind"), row.get("handle")
        if down and kind in ("ingress", "clsact"):
            return f"{kind} qdisc"
        if up and row.get("root") and handle != "0:":
            return f"{kind} qdisc"
    return None


def _remove(interface: str | None, *, up: bool, ifb: str | None) -> list[str]:
    problems = []
    for command in remove_commands(interface, up=up, ifb=ifb):
        try:
            run(command)
        except ShapingError as error:
            # Half of it may never have been made, or went with its interface: then there is nothing left to take down.
            if not any(
                word in str(error)
                for word in ("Cannot find", "No such", "handle of zero", "Invalid handle", "Invalid argument")
            ):
                problems.append(str(error))
    return problems


def _held(interface: str, shape: Shape) -> bool:
    try:
        rows = _qdiscs(interface)
    except ShapingError:
        return False
    up = any(r.get("root") and r.get("handle") == _ROOT for r in rows)
    down = any(r.get("kind") == "ingress" for r in rows)
    return (up or not shape.up.shaped) and (down or not shape.down.shaped)


def _name(index: int) -> str | None:
    try:
        return socket.if_indextoname(index)
    except OSError:
        return None


def _qdiscs(interface: str | None) -> list[dict[str, Any]]:
    where = () if interface is None else ("dev", interface)
    return _json(("tc", "-j", "qdisc", "show", *where))


def _json(command: Command) -> list[dict[str, Any]]:
    text = run(command).strip()
    try:
        rows = json.loads(text) if text else []
    except ValueError as error:
        raise ShapingError(f"{' '.join(command)}: an answer that is no JSON: {text[:60]!r}") from error
    return [row for row in rows if isinstance(row, dict) and row]
