"""The machine's own health: disks and cards, memory, temperatures, supply, software, by what the kernel and the firmware say."""

from __future__ import annotations

import contextlib
import logging
import os
import platform
import re
import resource
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

import tandem
from tandem.schema.record import Value

LONGEST = 65_536
"""No file of interest is longer; sysfs gives a page at most."""


@dataclass(frozen=True, slots=True)
class Roots:
    """``sys``, ``proc``, ``etc``: folders; ``vcgencmd``: the program that asks a Raspberry Pi's firmware, absent elsewhere."""

    sys: Path = Path("/sys")
    proc: Path = Path("/proc")
    etc: Path = Path("/etc")
    vcgencmd: Path = Path("/usr/bin/vcgencmd")


def text_of(file: Path) -> str | None:
    """Its text without the ends' whitespace and NULs (device trees end texts with one); None when there is no such file, or none
    now: a driver without an answer says so by an error. What is no text is shown so that a parser refuses it."""
    try:
        with file.open("rb") as opened:
            return opened.read(LONGEST).decode("utf-8", "replace").strip("\0 \t\r\n")
    except OSError:
        return None


# ---------------------------------------------------------------------------------------------------------------------
# The bits by which a Raspberry Pi's firmware tells of a low supply and a slowed processor. Pure. Source: Raspberry Pi
# documentation, ``vcgencmd get_throttled``. Bits 0 to 3 tell of now, 16 to 19 of the time since the boot; the
# kernel's own sensor (``rpi_volt``) clears the latter for those who read through it, so that they then tell of the
# last two seconds.


NAMES = ("undervoltage", "frequency_capped", "throttled", "soft_temperature_limit")
"""Bits 0 to 3; 16 to 19 are the same since the boot."""

_SINCE_BOOT = 16


@dataclass(frozen=True, slots=True)
class Throttled:
    """``now`` and ``since``: the names of the bits that are set."""

    now: frozenset[str]
    since: frozenset[str]


def throttled(text: str) -> Throttled:
    """From ``throttled=0x50005`` (the firmware's answer) or ``50005`` (sysfs); ValueError when it is neither."""
    match = re.fullmatch(r"(?:throttled=)?(?:0x)?([0-9a-fA-F]{1,8})", text)
    if match is None:
        raise ValueError(f"{text[:40]!r} is no answer to get_throttled")
    bits = int(match[1], 16)
    now, since = (frozenset(name for n, name in enumerate(NAMES) if bits >> n + at & 1) for at in (0, _SINCE_BOOT))
    return Throttled(now, since)


# ---------------------------------------------------------------------------------------------------------------------
# What a Raspberry Pi's firmware answers, by ``vcgencmd`` of Raspberry Pi OS. It takes a member of the group ``video``.


def firmware_says(roots: Roots, command: str) -> str | None:
    """None where there is none, or nobody may ask. OSError or ValueError when it does not answer now."""
    try:
        done = subprocess.run([roots.vcgencmd, command], capture_output=True, text=True, timeout=5, check=False)
    except (FileNotFoundError, PermissionError):
        return None
    except subprocess.TimeoutExpired as error:
        raise ValueError(str(error)) from error
    return done.stdout.strip() if done.returncode == 0 else None


def built_on(version: str) -> str | None:
    """The day on which a firmware was built, as ``2023-10-30``, from ``vcgencmd version``, which begins with it; None when it does not."""
    try:
        return datetime.strptime(" ".join(version.split()[:3]), "%b %d %Y").replace(tzinfo=UTC).date().isoformat()
    except ValueError:
        return None


# ---------------------------------------------------------------------------------------------------------------------
# Memory, load and uptime from /proc (Documentation/filesystems/proc.rst).


PROC: dict[str, tuple[str, str, float]] = {
    "memory_available_bytes": ("meminfo", r"^MemAvailable:\s+([0-9]{1,15}) kB$", 1024),
    "load_1min": ("loadavg", r"\A([0-9]{1,7}\.[0-9]{1,4}) ", 1.0),
    "uptime_s": ("uptime", r"\A([0-9]{1,12}\.[0-9]{1,4}) ", 1.0),
}
"""By field of a ``health`` record its file, where in it the number stands, and in which unit. Available is what programs can get without
swapping; uptime counts suspended seconds."""


def proc_value(field: str, text: str) -> float:
    """The field's value in its file's text; ValueError when there is none."""
    file, pattern, unit = PROC[field]
    match = re.search(pattern, text, re.MULTILINE | re.ASCII)
    if match is None:
        raise ValueError("meminfo has no MemAvailable" if file == "meminfo" else f"{text[:40]!r} is no {file}")
    return int(match[1]) * unit if isinstance(unit, int) else float(match[1])


# ---------------------------------------------------------------------------------------------------------------------
# What the state folder is on: room left, the card or disk below it, what that tells of its wear. Source:
# Documentation/driver-api/mmc/mmc-dev-attrs.rst, Documentation/block/stat.rst (512-byte sectors), JESD84-B51
# (extended CSD registers 267 to 269). The kernel reads an eMMC's wear once, when it finds it: at boot. SD cards tell
# none.


SECTOR = 512
_CARD = re.compile(r"mmcblk[0-9]+")
_MOST = 4
"""Cards of one machine that are told of."""


@dataclass(frozen=True, slots=True)
class Room:
    """Of a file system: bytes, and inodes, None where it has no fixed number of them."""

    free_bytes: int
    used_bytes: int
    free_inodes: int | None
    used_inodes: int | None

    @property
    def size_bytes(self) -> int:
        """Free and used; not what is kept for the superuser."""
        return self.free_bytes + self.used_bytes

    @property
    def free_inodes_share(self) -> float | None:
        """Of all inodes; None where it has no fixed number of them."""
        if self.free_inodes is None or self.used_inodes is None or not self.free_inodes + self.used_inodes:
            return None
        return self.free_inodes / (self.free_inodes + self.used_inodes)


def room_of(folder: Path) -> Room:
    """OSError when it cannot be asked."""
    stat = os.statvfs(folder)
    fixed = stat.f_files > 0
    return Room(
        free_bytes=stat.f_bavail * stat.f_frsize,
        used_bytes=(stat.f_blocks - stat.f_bfree) * stat.f_frsize,
        free_inodes=stat.f_favail if fixed else None,
        used_inodes=stat.f_files - stat.f_ffree if fixed else None,
    )


def devices(roots: Roots, folder: Path) -> list[Path]:
    """The block device's folder in sysfs of the one that ``folder`` is on, and those of all SD cards and eMMCs."""
    found: list[Path] = []
    number = folder.stat().st_dev
    own = roots.sys / "dev" / "block" / f"{os.major(number)}:{os.minor(number)}"
    if own.exists():  # not a tmpfs, an overlay, a volume over several disks
        block = own.resolve()
        found.append(block.parent if (block / "partition").exists() else block)
    for card in sorted((roots.sys / "block").glob("mmcblk*")):
        if _CARD.fullmatch(card.name) and card.resolve() not in found:
            found.append(card.resolve())
    return found[:_MOST]


def card_fields(block: Path) -> dict[str, int | str | None]:
    """Fields of a ``card`` record from a block device's folder; ValueError for a file that says something else than it should."""
    device = block / "device"
    read, written = _moved(block / "stat")
    size = _number(block / "size", 10)
    life = codes(text_of(device / "life_time"), 2)
    eol = codes(text_of(device / "pre_eol_info"), 1)
    return {
        "kind": _kind(block.name, text_of(device / "type")),
        "name": (text_of(device / "name") if _CARD.match(block.name) else text_of(device / "model")) or None,
        "made": text_of(device / "date") if _CARD.match(block.name) else None,
        "size_bytes": None if size is None else size * SECTOR,
        "erase_bytes": _number(device / "preferred_erase_size", 10),
        "read_bytes": read,
        "written_bytes": written,
        "life_time_a_code": life[0] if life else None,
        "life_time_b_code": life[1] if life else None,
        "life_used_a_percent": used_percent(life[0]) if life else None,
        "life_used_b_percent": used_percent(life[1]) if life else None,
        "pre_eol_code": eol[0] if eol else None,
    }


def used_percent(code: int) -> int | None:
    """The upper end of the tenth that a life time code tells; 110 when the estimate is exceeded, None when it is not defined."""
    return code * 10 if 1 <= code <= 11 else None


def codes(text: str | None, count: int) -> tuple[int, ...] | None:
    """``0x01 0x02`` → (1, 2); None without text. ValueError for other texts."""
    if text is None:
        return None
    if re.fullmatch(r"0x[0-9a-fA-F]{2}(?: 0x[0-9a-fA-F]{2})*", text) is None or len(text.split()) != count:
        raise ValueError(f"{text[:40]!r} is not {count} codes")
    return tuple(int(word, 16) for word in text.split())


def moved_bytes(stat: str) -> tuple[int, int]:
    """Read and written bytes from the text of a block device's ``stat``: its fields 3 and 7."""
    words = stat.split()
    if len(words) < 11 or not all(re.fullmatch("[0-9]{1,20}", word, re.ASCII) for word in words[:11]):
        raise ValueError(f"{stat[:40]!r} is no block device's stat")
    return int(words[2]) * SECTOR, int(words[6]) * SECTOR


def _moved(file: Path) -> tuple[int | None, int | None]:
    text = text_of(file)
    return (None, None) if text is None else moved_bytes(text)


def _number(file: Path, base: int) -> int | None:
    text = text_of(file)
    if text is None:
        return None
    if re.fullmatch("[0-9]{1,20}", text, re.ASCII) is None:
        raise ValueError(f"{file.name}: {text[:40]!r} is no number")
    return int(text, base)


def _kind(name: str, bus: str | None) -> str:
    """Of a block device by its name; of an mmcblk by what the bus found (SD, or MMC for an eMMC)."""
    if _CARD.match(name):
        return "emmc" if bus == "MMC" else "sd"
    if name.startswith("nvme"):
        return "nvme"
    return "disk" if name.startswith("sd") else "virtual"


# ---------------------------------------------------------------------------------------------------------------------
# The supply and the slowed processor of a Raspberry Pi: which source this machine has, and what it reported so far.


_SYSFS = "devices/platform/soc*/*:firmware/get_throttled"
"""soc/soc:firmware, on a Pi 5 soc@107c000000/soc@107c000000:firmware. Deprecated: the kernel says so in its log, once."""


class Supply:
    """``look`` once a second, ``fields`` once a round."""

    def __init__(self, roots: Roots) -> None:
        self._alarm = next((d / "in0_lcrit_alarm" for d in hwmon(roots) if text_of(d / "name") == "rpi_volt"), None)
        sysfs = sorted(roots.sys.glob(_SYSFS))
        self._sources: list[Callable[[], str | None]] = [
            partial(firmware_says, roots, "get_throttled"),
            *(partial(text_of, file) for file in sysfs[:1]),
        ]
        self._low = False
        self._since: set[str] = set()

    def look(self) -> None:
        """Whether the supply was low in the last two seconds, so that a dip between two rounds is seen too: the kernel's sensor asks
        the firmware every two seconds, and tells what was in between."""
        if self._alarm is not None and text_of(self._alarm) == "1":
            self._low = True

    def fields(self, bits: Throttled | None) -> dict[str, bool | None]:
        """Fields of a ``health`` record; none where there is neither firmware nor alarm. ``bits``: of ``bits()``, None also when it
        failed: the alarm is reported all the same."""
        self.look()
        if bits is None and self._alarm is None:
            return {}
        now = set(bits.now) if bits is not None else set()
        since_look, self._low = self._low, False
        if since_look:
            now.add("undervoltage")
        self._since |= now | (set(bits.since) if bits is not None else set())
        known = NAMES if bits is not None else NAMES[:1]
        return {
            **{name: name in now for name in known},
            **{f"{name}_since_boot": name in self._since for name in known},
        }

    def bits(self) -> Throttled | None:
        """The firmware's; None where there is none. ValueError when its answer cannot be read, OSError when it gives none now."""
        while self._sources:
            text = self._sources[0]()
            if text is not None:
                return throttled(text)
            del self._sources[0]
        return None


def hwmon(roots: Roots) -> list[Path]:
    """The folders of the kernel's sensors, in order."""
    return sorted(roots.sys.glob("class/hwmon/hwmon*"))


# ---------------------------------------------------------------------------------------------------------------------
# The machine's temperatures: the kernel's thermal zones and hwmon sensors. Source: Documentation/driver-
# api/thermal/sysfs-api.rst and hwmon/sysfs-interface.rst: whole millidegrees Celsius.


LOWEST_C, HIGHEST_C = -55.0, 200.0
"""What a sensor may tell; others are disconnected or not yet read (a driver's -273 or 0x7fffffff)."""

PROCESSORS = ("cpu-thermal", "cpu_thermal", "soc-thermal", "soc_thermal", "x86_pkg_temp", "coretemp", "k10temp")
"""Names of the sensor that is the processor's, the best first."""


def degrees(text: str) -> float | None:
    """From millidegrees; None for what no sensor measures. ValueError for what is no number."""
    if re.fullmatch(r"-?[0-9]{1,10}", text) is None:
        raise ValueError(f"{text[:40]!r} is no temperature")
    value = int(text) / 1000
    return value if LOWEST_C <= value <= HIGHEST_C else None


class Temperatures:
    """Which sensors there are is looked up once."""

    def __init__(self, roots: Roots) -> None:
        self._files: dict[str, Path] = {}
        zones: set[str] = set()
        for zone in sorted(roots.sys.glob("class/thermal/thermal_zone*")):
            name = text_of(zone / "type") or zone.name
            zones.add(name.replace("-", "_"))
            self._add(name, zone / "temp")
        for folder in hwmon(roots):
            chip = text_of(folder / "name") or folder.name
            if chip.replace("-", "_") in zones:
                continue  # the kernel shows each thermal zone here too
            for file in sorted(folder.glob("temp*_input")):
                label = text_of(file.with_name(file.name.replace("_input", "_label")))
                number = file.name.removesuffix("_input")
                self._add(chip if number == "temp1" and not label else f"{chip} {label or number}", file)
        named = [next((n for n in self._files if n == p or n.startswith(f"{p} ")), None) for p in PROCESSORS]
        self._processor = next((name for name in named if name is not None), None)

    def _add(self, name: str, file: Path) -> None:
        clean = re.sub(r"[^\w .:/()+-]", "_", name)[:60] or "sensor"
        number = 1
        unique = clean
        while unique in self._files:
            number += 1
            unique = f"{clean} {number}"
        self._files[unique] = file

    def processor(self) -> float | None:
        """The processor's, in °C; None where nothing tells it."""
        return None if self._processor is None else self._read(self._files[self._processor])

    def all(self) -> dict[str, float]:
        """By sensor, those that tell one now."""
        readings = {name: self._read(file) for name, file in self._files.items()}
        return {name: value for name, value in readings.items() if value is not None}

    @staticmethod
    def _read(file: Path) -> float | None:
        text = text_of(file)
        return None if text is None else degrees(text)


# ---------------------------------------------------------------------------------------------------------------------
# What runs here: versions that do not change while the collector lives.


def software_fields(roots: Roots) -> dict[str, str | None]:
    """Fields of a ``software`` record."""
    release = text_of(roots.etc / "os-release")
    return {
        "tandem": tandem.__version__,
        "kernel": platform.release(),
        "python": platform.python_version(),
        "machine": _short(text_of(roots.proc / "device-tree" / "model")) or platform.machine(),
        "system": None if release is None else pretty_name(release),
        "firmware": built_on(firmware_says(roots, "version") or ""),
        "bootloader": _short(text_of(roots.proc / "device-tree" / "chosen" / "bootloader" / "version")),
    }


def pretty_name(release: str) -> str | None:
    """The system's name as os-release(5) has it for people; None when it has none."""
    match = re.search(r"^PRETTY_NAME=([\"']?)(.{1,200}?)\1$", release, re.MULTILINE)
    return None if match is None else _short(match[2])


def _short(text: str | None) -> str | None:
    """At most 200 characters that can be printed; None when nothing is left."""
    return ("".join(c for c in text if c.isprintable())[:200].strip() or None) if text is not None else None


# ---------------------------------------------------------------------------------------------------------------------
# One round over everything that the machine tells of itself; a source that fails stops no other.


log = logging.getLogger(__name__)

_T = TypeVar("_T")


class MachineState:
    """``folder``: the probe's. ``boots``: which boot of this machine it is. Used by one thread."""

    def __init__(self, roots: Roots, folder: Path, boots: int) -> None:
        self._roots, self._folder, self._boots = roots, folder, boots
        self._supply, self._temperatures = Supply(roots), Temperatures(roots)
        self._failing: set[str] = set()
        self._software: dict[str, str | None] | None = None
        self.room: Room | None = None
        """As of the last round; None when the disk could not be asked."""
        self.supply: Mapping[str, bool | None] = {}
        self._sources: dict[str, Callable[[], Mapping[str, Value | None]]] = {
            "disk": self._disk,
            **{PROC[field][0]: partial(self._proc, field) for field in PROC},
            "processor's temperature": lambda: {"processor_temperature_degc": self._temperatures.processor()},
            "supply": self._supplied,
        }
        """What is asked in each round, by the name under which the log has its faults."""

    def look(self) -> None:
        """What is looked at once a second."""
        self._try("supply", self._supply.look)

    def fields(self) -> dict[str, Value | None]:
        """Of a ``health`` record: the machine's, from every source that tells something now."""
        found: dict[str, Value | None] = {"boot_count": self._boots}
        for what, ask in self._sources.items():
            found |= self._try(what, ask) or {}
        return found

    def _disk(self) -> dict[str, Value | None]:
        self.room = None
        room = self.room = room_of(self._folder)
        return {
            "disk_free_bytes": room.free_bytes,
            "disk_used_bytes": room.used_bytes,
            "disk_free_inodes": room.free_inodes,
            "disk_used_inodes": room.used_inodes,
        }

    def _supplied(self) -> Mapping[str, bool | None]:
        self.supply = {}
        self.supply = self._supply.fields(self._try("the firmware's get_throttled", self._supply.bits))
        return self.supply

    def _proc(self, field: str) -> dict[str, Value | None]:
        text = text_of(self._roots.proc / PROC[field][0])
        return {} if text is None else {field: proc_value(field, text)}

    def temperatures(self) -> dict[str, float]:
        """By sensor, in °C."""
        return self._try("temperatures", self._temperatures.all) or {}

    def cards(self) -> dict[str, dict[str, int | str | None]]:
        found = self._try("block devices", lambda: devices(self._roots, self._folder)) or []
        fields_of = {block.name: self._try(block.name, partial(card_fields, block)) for block in found}
        return {name: fields for name, fields in fields_of.items() if fields is not None}

    def software(self) -> dict[str, str | None]:
        if self._software is None:
            self._software = self._try("software", lambda: software_fields(self._roots))
        return self._software or {}

    def _try(self, what: str, ask: Callable[[], _T]) -> _T | None:
        """None when it cannot be asked or says what cannot be: logged when that begins."""
        try:
            answer = ask()
        except (OSError, ValueError) as error:
            if what not in self._failing:
                self._failing.add(what)
                log.warning("health: %s cannot be told: %s", what, error)
            return None
        self._failing.discard(what)
        return answer


# ---------------------------------------------------------------------------------------------------------------------
# This process, and the versions of everything that shapes what is measured.


def cpu_seconds() -> float:
    """User and system time of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def rss_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def peak_rss_bytes() -> int:
    """The most there ever was of it."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def versions() -> dict[str, str]:
    found = {
        "tandem": tandem.__version__,
        "python": platform.python_version(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "sqlite": sqlite3.sqlite_version,
    }
    path = shutil.which("tcpdump", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
    if path is not None:
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=5, check=False)
            match = re.search(r"version (\S+)", done.stdout + done.stderr)
            found["tcpdump"] = match[1] if match else "unknown"
    return found
