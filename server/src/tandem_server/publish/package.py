"""The package itself: what goes into it, in which order, and what stops it. It is made beside its place, and moved there when whole."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import tandem_server
from tandem.schema.manifest import FORMAT
from tandem.schema.metrics import MEASUREMENTS
from tandem.schema.trace import is_name
from tandem_server.analysis.evaluate import AFTER_NS, BEFORE_NS
from tandem_server.analysis.folder import LEDGER
from tandem_server.analysis.reading import json_object, mapping, mappings, text, whole
from tandem_server.analysis.records import DATABASE, Source, folder_database
from tandem_server.durable import sha256_of, whole_file, write_whole
from tandem_server.publish import captures, tables
from tandem_server.publish.homes import NOTHING, Home, Spans, came_near, cut_spans
from tandem_server.publish.identities import REWRITTEN, Check, Finding, Names, Rewriter
from tandem_server.publish.metadata import Described, describe

CAMPAIGN = "campaign.json"
_KEPT = (
    *(
        "format",
        "scenario",
        "seed",
        "duration_s",
        "started_utc_ns",
        "started_monotonic_ns",
        "boot",
        "ended_utc_ns",
        "stopped",
    ),
    *("paths", "processes", "versions", "export", "probes", "traces"),
)
"""Of campaign.json; what is not named here is left behind."""
_FILES = ("files", "server_captures")
"""Of a manifest."""
_STATE = ".publishing"


class Refused(ValueError):  # noqa: N818  (it reads as what it is)
    """The folder cannot be published as it is: one line with its hint."""


class Identities(Exception):  # noqa: N818  (likewise)
    """Identities are in the folder; ``places``: a line each, with file, line and column."""

    def __init__(self, places: list[str]) -> None:
        super().__init__(f"{len(places)} places tell an identity")
        self.places = places


@dataclass(frozen=True, slots=True)
class Asked:
    """``homes``: what is cut. None of them and ``places``: nothing; not ``places``: whatever tells a place is absent. ``words``: as the
    package is described (title, licence, creators, url)."""

    folder: Path
    out: Path
    homes: tuple[Home, ...]
    places: bool
    captures: bool
    words: dict[str, Any]
    key: bytes = field(repr=False)


@dataclass(slots=True)
class Published:
    """``left_out``: runs that may have been at a home; ``hours_cut``: of all probes, within the campaign; ``packets``: in its captures;
    ``far_homes``: which, from 1 as they were told, no probe came near."""

    folder: Path
    files: int = 0
    bytes: int = 0
    probes: int = 0
    runs: int = 0
    left_out: int = 0
    hours_cut: float = 0.0
    packets: int = 0
    far_homes: list[int] = field(default_factory=list)


@dataclass(slots=True)
class _Probe:
    name: str
    new: str
    cut: Spans
    records: tables.Records
    gone: set[str] = field(default_factory=set)
    """Ids of runs and names of files that are left out."""


def publish(asked: Asked, said: Callable[[str], None], written: str) -> Published:
    """Make the package; ``written``: the day, ISO 8601. Refused, Identities; SourceError, OSError as they come: the same again goes on."""
    if asked.out.exists():
        raise Refused(f"{asked.out} is there already; hint: --out of a new folder: what was published stays as it is")
    try:
        campaign = json_object(asked.folder / CAMPAIGN)
    except FileNotFoundError as error:
        raise Refused(
            f"{asked.folder}: no {CAMPAIGN} in it; hint: a folder of tandem-server campaign export"
        ) from error
    except ValueError as error:
        raise Refused(f"{asked.folder}/{error}; hint: export the campaign again") from error
    if campaign.get("format") != "tandem-campaign/1":
        raise Refused(
            f"{asked.folder}/{CAMPAIGN}: format {campaign.get('format')!r}; hint: this version reads tandem-campaign/1"
        )
    draft = asked.out.with_name(asked.out.name + ".part")
    _begin(asked, draft)
    with ExitStack() as stack:
        try:
            made = _Publishing(asked, campaign, draft, said, stack)
            made.fill()
        except (Identities, Refused):
            shutil.rmtree(draft)
            raise
    described = Described(made.campaign, asked.words, written, made.told, homes=bool(asked.homes), places=asked.places)
    made.told.files, made.told.bytes = describe(draft, described)
    (draft / _STATE).unlink()
    draft.rename(asked.out)
    return made.told


def _begin(asked: Asked, draft: Path) -> None:
    """A draft of the same things is gone on with, another one is made anew."""
    listed = [
        (str(path.relative_to(asked.folder)), status.st_size, status.st_mtime_ns)
        for path in sorted([asked.folder / CAMPAIGN, *(asked.folder / "probe").rglob("*")])
        if path.is_file() and (status := path.stat())
    ]
    homes = [(one.latitude_deg, one.longitude_deg, one.radius_m) for one in asked.homes]
    told = json.dumps([tandem_server.__version__, homes, asked.places, asked.captures, listed])
    state = hmac.new(asked.key, told.encode(), hashlib.sha256).hexdigest()
    if draft.is_dir():
        if (draft / _STATE).is_file() and (draft / _STATE).read_text() == state:
            return
        shutil.rmtree(draft)
    draft.mkdir(parents=True)
    write_whole(draft / _STATE, state.encode())


class _Publishing:
    def __init__(
        self, asked: Asked, campaign: dict[str, Any], draft: Path, said: Callable[[str], None], stack: ExitStack
    ) -> None:
        self._asked, self._draft, self._said = asked, draft, said
        names = sorted(path.name for path in (asked.folder / "probe").glob("*") if path.is_dir())
        if not names:
            raise Refused(f"{asked.folder}: no probe/ in it; hint: a folder of tandem-server campaign export")
        self._new = {name: f"probe-{n}" for n, name in enumerate(names, 1)}
        hosts = frozenset(_hosts(asked.folder))
        key = hmac.digest(
            asked.key, f"package {campaign.get('scenario')} {campaign.get('started_utc_ns')}".encode(), hashlib.sha256
        )
        self._rewriter = Rewriter(key, self._new, hosts, places=asked.places)
        own = {name for name in names if name not in self._new.values() and not name.isalpha()}
        self._check = Check(Names(hosts, own))
        self._found: list[str] = []
        self._packets: dict[Path, int] = {}
        self.told = Published(asked.out, probes=len(names), far_homes=[*range(1, len(asked.homes) + 1)])
        self.campaign = self._campaign(campaign)
        self._probes = [self._probe(name, campaign, stack) for name in names]

    def fill(self) -> None:
        """Everything but what describes it."""
        for probe in self._probes:
            self._plan(probe)
            self._records(probe)
            for path, manifest in self._runs(probe):
                self._run(probe, path, manifest)
        self.told.packets = sum(self._packets.values())
        self._others()
        if not self._found:
            self._said("check")
            self._found = list(self._faults())
        if self._found:
            raise Identities(self._found)

    def _probe(self, name: str, campaign: dict[str, Any], stack: ExitStack) -> _Probe:
        store: Source | None = None
        if not (self._asked.folder / "probe" / name / "records").is_dir():
            place = mapping(campaign, "store")
            url, database = text(place, "url") or "http://127.0.0.1:8086", text(place, "database") or "tandem"
            found = stack.enter_context(folder_database(self._asked.folder / DATABASE, database, url))
            if isinstance(found, str):
                raise Refused(f"{found}; hint: publish a folder that tandem-server campaign export wrote")
            store = found
        start, end = (whole(campaign, f"{at}_utc_ns") for at in ("started", "ended"))
        if start is None or end is None:
            raise Refused(
                f"{self._asked.folder}/{CAMPAIGN}: it was never completed; hint: export again, or play it to its end"
            )
        records = tables.Records(self._asked.folder, name, store, (start - BEFORE_NS, end + AFTER_NS))
        cut = NOTHING
        if self._asked.homes:
            fixes = records.fixes()
            if not len(fixes.utc_ns):
                raise Refused(
                    f"probe {name}: no position was recorded, so what it recorded at a home cannot be told apart;"
                    " hint: --without-places, or leave this probe out of the export (--probe)"
                )
            cut = cut_spans(self._asked.homes, fixes, self._asked.key)
            near = [n for n, one in enumerate(self._asked.homes, 1) if came_near(one, fixes)]
            self.told.far_homes = [n for n in self.told.far_homes if n not in near]
            within = cut.bounds.clip(start, end)
            self.told.hours_cut += float((within[:, 1] - within[:, 0]).sum()) / 3.6e12
        return _Probe(name, self._new[name], cut, records)

    def _runs(self, probe: _Probe) -> Iterator[tuple[Path, dict[str, Any]]]:
        for path in sorted((self._asked.folder / "probe" / probe.name / "runs").glob("*.json")):
            try:
                manifest = json_object(path)
            except ValueError as error:
                raise Refused(f"{path.parent}/{error}; hint: export it again, or remove it") from error
            if text(manifest, "format") != FORMAT:
                raise Refused(
                    f"{path}: format {text(manifest, 'format')!r}: where it may name somebody is known of {FORMAT!r} only;"
                    " hint: publish with the version that wrote it, or remove the run"
                )
            if text(manifest, "id") not in probe.gone:
                yield path, manifest

    def _plan(self, probe: _Probe) -> None:
        """Which runs may have been at a home: those without a time too."""
        for _, manifest in self._runs(probe) if self._asked.homes else ():
            start, end = whole(manifest, "started_utc_ns"), whole(manifest, "ended_utc_ns")
            if start is None or end is None or probe.cut.touch(start, end):
                files = [file for key in _FILES for file in mappings(manifest, key)]
                probe.gone |= {str(manifest.get("id")), *(str(file.get("name")) for file in files)}
                self.told.left_out += 1

    def _records(self, probe: _Probe) -> None:
        out, cells = self._draft / "probe" / probe.new / "records", None
        for name in MEASUREMENTS:
            if name == "position" and not self._asked.places:
                continue
            self._said(f"{probe.new} {name}")
            if name == "event" and self._asked.homes:
                cells = tables.cells_in(out)
            found = tables.write_days(probe.records, name, out, probe.cut, self._rewriter, cells, self._check)
            for file, where, one in found:
                self._note(f"probe/{probe.name}/records/{file}: {where}", one)

    def _run(self, probe: _Probe, path: Path, manifest: dict[str, Any]) -> None:
        self.told.runs += 1
        own, out = path.parent.parent, self._draft / "probe" / probe.new
        files = {key: [*self._files(probe, own, out, mappings(manifest, key))] for key in _FILES if key in manifest}
        self._json(path, out / "runs" / path.name, {**manifest, **files})

    def _files(self, probe: _Probe, own: Path, out: Path, listed: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Those of ``listed`` that come into the package, as they are there."""
        for file in listed:
            name, told = str(file.get("name")), {}
            if name in probe.gone or not is_name(name) or not (own / name).is_file():
                continue
            if name.startswith("captures/") and self._asked.captures:
                told = {"packets": self._capture(own / name, out / name)}
                self._packets[out / name] = told["packets"]  # runs of a pair may share it
            elif name.startswith("results/"):
                self._json(own / name, out / name)
            else:
                continue
            yield {**file, **told, "bytes": (out / name).stat().st_size, "sha256": sha256_of(out / name)}

    def _capture(self, path: Path, out: Path) -> int:
        """How many packets it has then."""
        try:
            if out.is_file():  # of the pair's other run, or of a publishing that was stopped
                with out.open("rb") as made:
                    return sum(1 for _ in captures.Reader(made))
            with path.open("rb") as source, whole_file(out) as to:
                kept = captures.rewrite(source, to, self._rewriter.address)
        except captures.CaptureError as error:
            raise Refused(f"{path}: {error}") from error
        return kept

    def _json(
        self, path: Path, out: Path, value: dict[str, Any] | None = None, drop: Callable[[Any], bool] | None = None
    ) -> None:
        """A JSON or JSONL file, checked and rewritten; ``value``: what to write in its place; ``drop``: lines to leave out."""
        if out.is_file():
            return
        name, key = path.relative_to(self._asked.folder), ""
        with path.open(encoding="utf-8") as source, whole_file(out) as to:
            lines = source if value is None and path.suffix == ".jsonl" else [source.read()]
            for number, line in enumerate(lines, 1):
                for n, one in enumerate(line.splitlines()):
                    key = self._line(f"{name}:{number + n}", one, key)
                try:
                    told = json.loads(line) if value is None else value
                except json.JSONDecodeError as error:
                    raise Refused(
                        f"{path}:{number + error.lineno - 1}: no JSON; hint: export again, or remove it"
                    ) from error
                if drop is None or not drop(told):
                    indent = None if path.suffix == ".jsonl" else 1
                    to.write(f"{json.dumps(self._rewriter.json(told), indent=indent, ensure_ascii=False)}\n".encode())

    def _line(self, where: str, line: str, key: str) -> str:
        for found in self._check.json_line(line, key):
            if isinstance(found, str):
                return found
            self._note(f"{where}:{found.column}", found)
        return key

    def _note(self, where: str, found: Finding) -> None:
        if found.kind not in REWRITTEN:
            self._found.append(f"{where}: {found.kind}")

    def _campaign(self, campaign: dict[str, Any]) -> dict[str, Any]:
        told = {key: campaign[key] for key in _KEPT if key in campaign}
        if export := mapping(told, "export"):
            told["export"] = {
                **export,
                "probes": sorted(self._new.get(name, name) for name in export.get("probes") or []),
            }
        if probes := mapping(told, "probes"):
            told["probes"] = {self._new[name]: one for name, one in probes.items() if name in self._new}
        first = self._new.get(str(campaign.get("probe")), next(iter(self._new.values())))
        made: dict[str, Any] = self._rewriter.json({**told, "probe": first})
        return made

    def _others(self) -> None:
        """What is of the campaign and not of a run."""
        folder, draft = self._asked.folder, self._draft
        gone = {name for probe in self._probes for name in probe.gone}
        published = {
            "places": "cut" if self._asked.homes else "kept" if self._asked.places else "absent",
            "runs_left_out": self.told.left_out,
        }
        self._json(folder / CAMPAIGN, draft / CAMPAIGN, {**self.campaign, "published": published})
        if (folder / LEDGER).is_file():
            ledger = json_object(folder / LEDGER)
            ledger["by_probe"] = {self._new.get(name, name): one for name, one in mapping(ledger, "by_probe").items()}
            ledger["probes"] = [
                {**one, "name": self._new.get(str(one.get("name")))} for one in mappings(ledger, "probes")
            ]
            ledger["runs"] = [one for one in mappings(ledger, "runs") if one.get("id") not in gone]
            damaged = [
                line.partition("/") for line in ledger.get("damaged") or [] if not any(name in line for name in gone)
            ]
            ledger["damaged"] = [f"{self._new.get(name, name)}/{file}" for name, _, file in damaged]
            self._json(folder / LEDGER, draft / LEDGER, ledger)
        truth = folder / "truth.jsonl"
        if truth.is_file():
            self._json(truth, draft / truth.name, drop=lambda one: any(_within(p.cut, one) for p in self._probes))
        # A collector's own account counts what a cut took away.
        for probe in self._probes if not self._asked.homes else ():
            own = Path("probe", probe.name, "collector.json")
            if (folder / own).is_file():
                self._json(folder / own, draft / "probe" / probe.new / own.name)

    def _faults(self) -> Iterator[str]:
        """What the whole package must not have, of whatever came into it."""
        for path in sorted(self._draft.rglob("*")):
            name, key = path.relative_to(self._draft), ""
            if path.suffix == ".parquet":
                yield from (f"{name}: {where}: {one.kind}" for where, one in tables.faults(path, self._check))
            elif path.suffix == ".pcap":
                with path.open("rb") as file:
                    yield from (f"{name}: packet {number}: {kind}" for number, kind in captures.faults(file))
            elif path.suffix in (".json", ".jsonl"):
                with path.open(encoding="utf-8") as file:
                    for number, line in enumerate(file, 1):
                        for found in self._check.json_line(line, key):
                            if isinstance(found, str):
                                key = found
                            else:
                                yield f"{name}:{number}:{found.column}: {found.kind}"


def _within(cut: Spans, line: Any) -> bool:  # noqa: ANN401  any JSON value
    at = whole(line, "utc_ns") if isinstance(line, dict) else None
    return at is not None and cut.touch(at, at)


def _hosts(folder: Path) -> Iterator[str]:
    """Names of the server, as manifests and configurations of the collector tell its addresses."""
    for path in folder.glob("probe/*/config.toml"):
        yield from _named(re.findall(r"\"(\w+://[^\"]+)\"", path.read_text(encoding="utf-8", errors="replace")))
    for path in folder.glob("probe/*/runs/*.json"):
        try:
            told = mapping(mapping(json_object(path), "parameters"), "server")
        except ValueError:
            continue  # told where it is read again
        yield from _named([url for url in told.values() if isinstance(url, str)])


def _named(urls: list[str]) -> Iterator[str]:
    for url in urls:
        host = urlsplit(url).hostname if "://" in url else None
        if host and re.search("[A-Za-z]", host) and ":" not in host and host != "localhost":
            yield host
