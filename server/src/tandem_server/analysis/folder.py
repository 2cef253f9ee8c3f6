"""A campaign folder, read with tolerance: what is missing or cut becomes a line in ``problems``, not an error.

Layout and keys: docs/reference/campaign-folder.md. An exported one (``tandem-server campaign export``) tells of itself, too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from tandem.schema.manifest import RunKind
from tandem_server.analysis.reading import flag, json_object, mapping, mappings, number, text, whole
from tandem_server.analysis.traces.manifest import captures_in
from tandem_server.analysis.truth import Truth, read

LEDGER = "ledger.json"
_TABLES = {"waiting": "were not analysed yet", "failed": "could not be analysed"}
_OPEN = ("waiting", "missing", "expired", "under_way")


def is_export(campaign: dict[str, Any]) -> bool:
    """Whether ``campaign.json`` is an export's."""
    return bool(mapping(campaign, "export"))


def ledger_lines(folder: Path, probe: str) -> list[str]:
    """What the server lacked when it was exported, a line each."""
    try:
        return lacking(json_object(folder / LEDGER), probe)
    except (OSError, ValueError) as error:
        return [f"{LEDGER} cannot be read: what the server lacked is not known ({error})"]


def lacking(ledger: dict[str, Any], probe: str) -> list[str]:
    """Of one probe."""
    told = mapping(mapping(ledger, "by_probe"), probe)
    states = mapping(told, "by_state")
    out = []
    if open_ones := [f"{count} {state}" for state in _OPEN if (count := whole(states, state))]:
        promised, arrived = whole(told, "records_promised") or 0, whole(told, "records_arrived") or 0
        line = f"{probe}: of {whole(told, 'runs')} runs {', '.join(open_ones)}; {arrived} of {promised} records"
        if files := whole(told, "files_promised"):
            line += f", {whole(told, 'files_received') or 0} of {files} files"
        out.append(f"{line} had arrived at the server")
    tables = mapping(told, "tables")
    if lacks := [f"{n} {words}" for key, words in _TABLES.items() if (n := whole(tables, key))]:
        out.append(f"{probe}: of {sum(n for n in tables.values() if isinstance(n, int))} captures {', '.join(lacks)}")
    for spool in mappings(ledger, "spools"):
        lacks = [f"{n} {key}" for key in ("waiting", "unexplained", "rejected", "dropped") if (n := whole(spool, key))]
        if spool.get("probe") == probe and lacks:
            out.append(f"{probe}: of the {whole(spool, 'made')} records of its spool {', '.join(lacks)}")
    out += [line for line in ledger.get("damaged") or [] if isinstance(line, str) and line.startswith(f"{probe}/")]
    return out


FORMATS = {"campaign.json": "tandem-campaign/1", "collector.json": "tandem-collector/1", "manifest": "tandem-run/1"}

_AND = " + "
TRACES = "traces"
"""Tables of the captures, where somebody analysed them."""


class FolderError(Exception):
    """The folder is no campaign's; one line with the mend."""


@dataclass(frozen=True, slots=True)
class Process:
    """What one program of the campaign used."""

    name: str
    cpu_seconds: float | None
    max_rss_bytes: int | None
    exit: int | None


@dataclass(frozen=True, slots=True)
class Capture:
    """One capture file; ``packets`` None where nobody counted. ``run`` None and ``pair`` known: the pair's runs, which went on at
    once, share it."""

    file: str
    bytes: int
    packets: int | None
    run: str | None
    path: str | None
    cut: bool
    pair: str | None = None


def capture_name(file: str) -> str:
    """A capture's name wherever it lies: folders move, and those that came to a server have ``.gz`` behind them. Of captures that were
    read as one, all their names (``parts_of``)."""
    return _AND.join(Path(one).name.removesuffix(".gz").removesuffix(".zst") for one in captures_in(file))


def parts_of(name: str) -> list[str]:
    """The names of captures that were read as one: of a ``capture_name``."""
    return name.split(_AND)


def known_as(captures: Mapping[str, Capture], name: str) -> Capture | None:
    """The capture of this ``capture_name`` among those known by theirs; of captures that were read as one, what they are together: of
    all their paths. None: one of them is not known, or they are not of one run or pair."""
    if (found := captures.get(name)) is not None or _AND not in name:
        return found
    own = [captures[one] for one in parts_of(name) if one in captures]
    if len(own) < len(parts_of(name)) or len({(one.run, one.pair) for one in own}) > 1:
        return None
    cut = any(one.cut for one in own)
    return Capture(name, sum(one.bytes for one in own), None, own[0].run, None, cut, own[0].pair)


def probe_of(file: str) -> str | None:
    """Whose capture it is, by the folder ``probe/NAME/captures`` that it lies in; None elsewhere."""
    above = Path(captures_in(file)[0]).parts[-4:-1]
    return above[1] if len(above) == 3 and (above[0], above[2]) == ("probe", "captures") else None


@dataclass(slots=True)
class CampaignFolder:
    """What the folder's files say. ``operators`` maps a path's name to its operator, in the order of the campaign's file. ``left_out``:
    runs whose manifests are there and are not read."""

    folder: Path
    probe: str
    campaign: dict[str, Any]
    collector: dict[str, Any] | None
    manifests: list[dict[str, Any]]
    operators: dict[str, str]
    processes: list[Process]
    captures: list[Capture]
    truth: Truth | None
    problems: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    left_out: set[str] = field(default_factory=set)

    @property
    def interrupted(self) -> str | None:
        """Why the campaign ended early, or None."""
        why = text(self.campaign, "stopped")
        if why is None and whole(self.campaign, "ended_utc_ns") is None:
            return "the campaign was cut off: campaign.json was never completed"
        return why

    @property
    def exported(self) -> bool:
        """Whether a server wrote it: then what the collector counted is not known, and ledger.json tells what was missing."""
        return is_export(self.campaign)


def load(folder: Path, probe: str | None = None) -> CampaignFolder:
    """Read everything in ``folder``, of one probe: that which is named, else the campaign's first. FolderError when it is no campaign
    folder or of another version, or has no such probe."""
    if not folder.is_dir():
        raise FolderError(f"{folder}: no such folder; give the folder that a campaign wrote (it holds campaign.json)")
    problems: list[str] = []
    campaign = _optional(folder / "campaign.json", "campaign.json", problems)
    probes = sorted(p.name for p in folder.glob("probe/*") if p.is_dir())
    if campaign is None and not probes:
        raise FolderError(f"{folder}: neither campaign.json nor probe/ in it; give the folder that a campaign wrote")
    campaign = campaign or {}
    if probe is not None and probe not in probes:
        raise FolderError(f"{folder}: no probe/{probe}/ in it; hint: one of {', '.join(probes) or 'none'}")
    named = probe is not None
    probe = probe or text(campaign, "probe") or (probes[0] if probes else "")
    if probe not in probes:
        problems.append(f"probe/{probe}/ is not there: no manifests and no account of the collector")
    others = [p for p in probes if p != probe]
    remarks = [f"other probes' folders are not part of this report: {', '.join(others)}"] if others else []
    own = folder / "probe" / probe
    exported = is_export(campaign)
    if others and not exported and not named:
        problems.append(
            f"the folder has {len(probes)} probes and is no export: only {probe} is read; hint: --probe {others[0]}"
        )
    problems += ledger_lines(folder, probe) if exported else []
    # A server has no collector's account; it may be put there by hand.
    asked = probe in probes and (not exported or (own / "collector.json").is_file())
    collector = _optional(own / "collector.json", "collector.json", problems) if asked else None
    left_out: set[str] = set()
    manifests = _manifests(own / "runs", problems, left_out)
    return CampaignFolder(
        folder,
        probe,
        campaign,
        collector,
        manifests,
        _operators(mapping(mapping(campaign, "probes"), probe) if exported else campaign, manifests),
        _processes(campaign),
        _captures(own, collector, manifests),
        _truth(folder / "truth.jsonl", problems),
        problems,
        remarks,
        left_out,
    )


def _optional(path: Path, kind: str, problems: list[str]) -> dict[str, Any] | None:
    try:
        value = json_object(path)
    except FileNotFoundError:
        problems.append(f"{path.name} is not there")
        return None
    except (ValueError, OSError) as error:
        problems.append(str(error))
        return None
    expected = FORMATS[kind]
    if value.get("format") != expected:
        raise FolderError(
            f"{path}: format {value.get('format')!r}, this program reads {expected!r}; use its own version"
        )
    return value


def _manifests(folder: Path, problems: list[str], left_out: set[str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    why = ""
    for path in sorted(folder.glob("*.json")):
        try:
            manifest = _optional(path, "manifest", problems)
        except FolderError as error:
            why = why or str(error)
            left_out.add(path.stem)
            continue
        if manifest is None:
            continue
        if text(manifest, "id") is None or manifest.get("kind") not in get_args(RunKind):
            problems.append(f"{path.name} is no run's manifest: id or kind is missing")
            continue
        found.append(manifest)
    if left_out:
        problems.append(why if len(left_out) == 1 else f"{why} ({len(left_out)} runs are left out)")
    begun: dict[str | None, int] = {}  # a boot's monotonic times are compared with each other only
    for manifest in found:
        boot, utc = text(manifest, "boot"), whole(manifest, "started_utc_ns") or 0
        begun[boot] = min(utc, begun.get(boot, utc))
    return sorted(
        found,
        key=lambda m: (begun[text(m, "boot")], whole(m, "started_monotonic_ns") or whole(m, "started_utc_ns") or 0),
    )


def _operators(campaign: dict[str, Any], manifests: list[dict[str, Any]]) -> dict[str, str]:
    out = {
        name: text(place, "operator") or name
        for name, place in mapping(campaign, "paths").items()
        if isinstance(place, dict)
    }
    for manifest in manifests:
        for subflow in mappings(mapping(manifest, "result"), "subflows"):
            path, operator = text(subflow, "path"), text(subflow, "operator")
            if path is not None and operator is not None:
                out.setdefault(path, operator)
    return out


def _processes(campaign: dict[str, Any]) -> list[Process]:
    return [
        Process(text(p, "name") or "unnamed", number(p, "cpu_seconds"), whole(p, "max_rss_bytes"), whole(p, "exit"))
        for p in mappings(campaign, "processes")
    ]


def _captures(own: Path, collector: dict[str, Any] | None, manifests: list[dict[str, Any]]) -> list[Capture]:
    listed: dict[str, Capture] = {}
    for manifest in manifests:
        for entry in mappings(manifest, "files"):
            name = text(entry, "name")
            if name is not None and name.startswith("captures/"):
                size, packets = whole(entry, "bytes") or 0, whole(entry, "packets")
                shared = flag(mapping(mapping(manifest, "environment"), "captures"), "shared_by_pair") is True
                run, pair = None if shared else text(manifest, "id"), text(manifest, "pair")
                listed[name] = Capture(name, size, packets, run, _path_in(name, run or pair), False, pair)
    for entry in mappings(collector or {}, "captures"):
        name = text(entry, "file")
        if name is not None:
            listed[name] = Capture(
                name,
                whole(entry, "bytes") or 0,
                whole(entry, "packets"),
                text(entry, "run"),
                text(entry, "path"),
                entry.get("cut") is True,
                text(entry, "pair"),
            )
    if collector is None:  # the account was never written: what lies there still counts
        for path in sorted((own / "captures").glob("*.pcap*")):
            name = f"captures/{path.name}"
            listed.setdefault(name, Capture(name, path.stat().st_size, None, None, None, True))
    return [listed[name] for name in sorted(listed)]


def _path_in(name: str, of: str | None) -> str | None:
    """Of a capture that is named after its run, or after the pair whose runs share it, and its path; None of all paths in one."""
    own = name.removeprefix(f"captures/{of}-")
    return own.removesuffix(".pcap") if own != name else None


def _truth(path: Path, problems: list[str]) -> Truth | None:
    try:
        with path.open("rb") as lines:
            truth = read(lines)
    except FileNotFoundError:
        return None
    except OSError as error:
        problems.append(f"truth.jsonl cannot be read: {error.strerror}")
        return None
    if truth.cut:
        problems.append("truth.jsonl is cut in its last line")
    if truth.strange_lines:
        problems.append(f"truth.jsonl: {truth.strange_lines} lines cannot be read")
    return truth


def missing_files(campaign: CampaignFolder) -> list[str]:
    """Files that a manifest or the collector lists and that are absent or of another size."""
    out: list[str] = []
    own = campaign.folder / "probe" / campaign.probe
    expected = {c.file: c.bytes for c in campaign.captures}
    for manifest in campaign.manifests:
        for entry in mappings(manifest, "files"):
            if (name := text(entry, "name")) is not None and (size := whole(entry, "bytes")) is not None:
                expected[name] = size
        for entry in mappings(manifest, "server_captures") if campaign.exported else ():  # a bench's are at its server
            if (name := text(entry, "name")) is not None:
                expected[name] = whole(entry, "bytes") or 0
    if campaign.exported and flag(campaign.campaign, "traces") is not True:
        expected = {name: size for name, size in expected.items() if not name.startswith("captures/")}
    for name, size in sorted(expected.items()):
        path = own / name
        if ".." in Path(name).parts or not path.is_file():
            out.append(f"{name} is listed and not there")
        elif path.stat().st_size != size:
            out.append(f"{name} has {path.stat().st_size} bytes, listed were {size}")
    return out
