"""A campaign folder's records as Parquet (docs/reference/campaign-folder.md, "records/"), and which span of a long campaign is one drive.

A reader of its own: the bench shares none with what it tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tandem_bench.scenario.model import LONGEST_S, SHORTEST_S
from tandem_bench.scenario.toml_table import ScenarioError

RECORDS = "records"
_NS = 10**9
_DAY_NS = 86_400 * _NS
STOP_S = 180.0
"""A stop shorter than this is part of the drive."""
AROUND_S = 60.0
"""Played before the kit begins to move and after it has stopped."""
_SILENT_S = 300.0
"""Radio that pauses for longer is of another drive, where no movement was told."""
_NAMED = 3

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Span:
    """UTC nanoseconds."""

    begin_ns: int
    end_ns: int

    @property
    def seconds(self) -> float:
        """Its length."""
        return (self.end_ns - self.begin_ns) / _NS

    def __str__(self) -> str:
        begun = datetime.fromtimestamp(self.begin_ns / _NS, UTC)
        return f"{begun:%Y-%m-%dT%H:%M:%SZ} ({self.seconds / 60:.0f} min)"


def has_records(folder: Path, probe: str) -> bool:
    """Whether the records of the probe lie in the folder."""
    return (folder / "probe" / probe / RECORDS).is_dir()


def rows(
    folder: Path, probe: str, measurement: str, columns: Sequence[str], begin_ns: int, end_ns: int
) -> Iterator[Row]:
    """Records of [begin, end) with ``utc_ns`` and those of the ``columns`` that the files have, day by day, in order of time.
    ScenarioError without pyarrow, or for a file that is none."""
    try:
        import pyarrow as pa  # here: large, and needed for exports only
        import pyarrow.parquet as pq
    except ImportError:
        raise ScenarioError(folder, None, "records as Parquet need pyarrow", "hint: pip install pyarrow") from None
    for file in sorted((folder / "probe" / probe / RECORDS / measurement).glob("*.parquet")):
        if not _within(file.stem, begin_ns, end_ns):
            continue
        try:
            there = set(pq.read_schema(file).names)
            wanted = ["utc_ns", *(name for name in dict.fromkeys(columns) if name in there)]
            table = pq.read_table(
                file, columns=wanted, filters=[("utc_ns", ">=", begin_ns), ("utc_ns", "<", end_ns)]
            ).sort_by("utc_ns")
        except (pa.ArrowException, OSError) as error:
            what = " ".join(str(error).split())[:120]
            raise ScenarioError(file, None, f"cannot be read: {what}", "hint: export the campaign again") from None
        for batch in table.to_batches(max_chunksize=8192):
            yield from batch.to_pylist()


def _within(day: str, begin_ns: int, end_ns: int) -> bool:
    try:
        day_ns = int(datetime.fromisoformat(f"{day}T00:00:00+00:00").timestamp()) * _NS
    except ValueError:
        return False
    return day_ns < end_ns and day_ns + _DAY_NS > begin_ns


def probe_of(file: Path, campaign: dict[str, Any], wanted: str | None) -> tuple[str, dict[str, Any]]:
    """Whose drive it is, and its paths. ScenarioError where there are several and none is named."""
    told = campaign.get("probes")
    probes = {name: one for name, one in told.items() if isinstance(one, dict)} if isinstance(told, dict) else {}
    if not probes and isinstance(campaign.get("probe"), str):
        probes = {campaign["probe"]: campaign}
    known = ", ".join(sorted(probes)) or "none"
    if wanted is not None and wanted not in probes:
        raise ScenarioError(file, None, f"there is no probe {wanted}", f"hint: --probe with one of {known}")
    if wanted is None and len(probes) > 1:
        raise ScenarioError(file, None, f"several probes: {known}", f"hint: --probe {min(probes)}")
    name = wanted or next(iter(probes), "")
    paths = probes.get(name, {}).get("paths")
    return name, paths if isinstance(paths, dict) else {}


def drive(folder: Path, probe: str, whole: Span, at_ns: int | None) -> tuple[Span, str]:
    """The drive that goes on at ``at_ns`` or begins next after it, else the longest; and what is to be said of the choice."""
    found = _drives(folder, probe, whole)
    if not found:
        raise ScenarioError(
            folder, None, f"no {SHORTEST_S:g} s of radio of {probe}", "hint: an export with its records"
        )
    chosen = max(found, key=lambda one: one.seconds)
    if at_ns is not None:
        later = [one for one in found if one.end_ns > at_ns]
        if not later:
            known = ", ".join(map(str, found[-_NAMED:]))
            raise ScenarioError(folder, None, "no drive goes on then or later", f"hint: the last ones are {known}")
        chosen = later[0]
    others = f"; {len(found) - 1} others: --at T takes another" if len(found) > 1 else ""
    cut = ""
    if chosen.seconds > LONGEST_S:
        chosen = Span(chosen.begin_ns, chosen.begin_ns + int(LONGEST_S * _NS))
        cut = f", cut to {LONGEST_S / 60:.0f} min"
    return chosen, f"the drive of {probe} from {chosen}{cut}{others}"


def _drives(folder: Path, probe: str, whole: Span) -> list[Span]:
    """Spells of movement by the events, short stops left in; where none is told, spells of radio."""
    events = rows(folder, probe, "event", ("kind",), whole.begin_ns, whole.end_ns)
    moving = list(_moving(((row["utc_ns"], row.get("kind")) for row in events), whole.end_ns))
    heard = list(
        _joined(
            ((row["utc_ns"],) * 2 for row in rows(folder, probe, "radio", (), whole.begin_ns, whole.end_ns)), _SILENT_S
        )
    )
    spells = heard
    if moving:
        around = int(AROUND_S * _NS)
        wide = ((one.begin_ns - around, one.end_ns + around) for one in _joined(moving, STOP_S))
        spells = [
            Span(max(begin, radio.begin_ns), min(end, radio.end_ns))
            for begin, end in wide
            for radio in heard
            if begin < radio.end_ns and end > radio.begin_ns
        ]
    return [one for one in spells if one.seconds >= SHORTEST_S]


def _moving(events: Iterable[tuple[int, object]], end_ns: int) -> Iterator[tuple[int, int]]:
    begun: int | None = None
    for at_ns, kind in events:
        if kind == "mobility_start":
            begun = at_ns if begun is None else begun
        elif kind == "mobility_stop" and begun is not None:
            yield begun, at_ns
            begun = None
    if begun is not None:
        yield begun, end_ns


def _joined(spells: Iterable[tuple[int, int]], gap_s: float) -> Iterator[Span]:
    begun: int | None = None
    until = 0
    for begin, end in spells:
        if begun is not None and begin - until > gap_s * _NS:
            yield Span(begun, until)
            begun = None
        begun, until = (begin, end) if begun is None else (begun, max(until, end))
    if begun is not None:
        yield Span(begun, until)
