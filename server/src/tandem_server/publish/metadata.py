"""What describes a package: Croissant 1.0, RO-Crate 1.3, the schema's units and ranges, check sums, a page for people."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tandem_server
from tandem.schema.metrics import COMMON_FIELDS, MEASUREMENTS, Field
from tandem_server.analysis.record_files import TIME, tags_of
from tandem_server.durable import sha256_of, write_whole
from tandem_server.utc import SECOND, utc

if TYPE_CHECKING:
    from tandem_server.publish.package import Published

LICENCES = {
    "CC0-1.0": "Creative Commons Zero v1.0 Universal",
    "CC-BY-4.0": "Creative Commons Attribution 4.0 International",
    "CC-BY-SA-4.0": "Creative Commons Attribution Share Alike 4.0 International",
    "CC-BY-NC-4.0": "Creative Commons Attribution Non Commercial 4.0 International",
    "CC-BY-NC-SA-4.0": "Creative Commons Attribution Non Commercial Share Alike 4.0 International",
    "ODbL-1.0": "Open Data Commons Open Database License v1.0",
    "ODC-By-1.0": "Open Data Commons Attribution License v1.0",
    "PDDL-1.0": "Open Data Commons Public Domain Dedication & License 1.0",
    "CDLA-Permissive-2.0": "Community Data License Agreement Permissive 2.0",
    "CDLA-Sharing-1.0": "Community Data License Agreement Sharing 1.0",
    "Apache-2.0": "Apache License 2.0",
    "MIT": "MIT License",
}
"""Those of SPDX's list that data sets have, with their names."""

CROISSANT, CRATE, SCHEMA, SUMS, README = (
    "croissant.json",
    "ro-crate-metadata.json",
    "schema.json",
    "SHA256SUMS",
    "README.md",
)
_WHAT = {
    CROISSANT: "this data set in Croissant",
    SCHEMA: "every column of the records with type, unit, range and source",
    README: "the data set, for people",
    "campaign.json": "when and what was played",
    "ledger.json": "what had not arrived when it was exported",
    "truth.jsonl": "what the bench did, with times",
}
_TYPES = {"int": "sc:Integer", "float": "sc:Float", "str": "sc:Text", "bool": "sc:Boolean"}
_MEDIA = {
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".parquet": "application/vnd.apache.parquet",
    ".pcap": "application/vnd.tcpdump.pcap",
    ".md": "text/markdown",
}
_PARQUET = "application/x-parquet"
"""As Croissant's readers know it."""


@dataclass(frozen=True, slots=True)
class Described:
    """``words``: title, licence, url, and the creators' names, each with its ORCID's URL or "". ``written``: the day, ISO 8601."""

    campaign: dict[str, Any]
    words: dict[str, Any]
    written: str
    told: Published
    homes: bool
    places: bool

    @property
    def title(self) -> str:
        """As it was asked, else of the campaign's name."""
        return self.words.get("title") or f"Tandem campaign {self.campaign.get('scenario')}"

    @property
    def span(self) -> str:
        """From when to when it went, ISO 8601."""
        return "/".join(utc(self.campaign[f"{at}_utc_ns"], SECOND) for at in ("started", "ended"))

    @property
    def description(self) -> str:
        """One paragraph."""
        places = "Positions and cells are as recorded."
        if self.homes:
            places = f"Whatever was recorded when a probe may have been at a home is cut, and {self.told.left_out} runs with it."
        elif not self.places:
            places = "Positions are absent, and numbers of cells stand for others."
        return (
            f"Two mobile networks measured at once with Multipath TCP by Tandem {tandem_server.__version__}, {self.span};"
            f" probes: {self.told.probes}, runs: {self.told.runs}."
            f" Radio, events, connections and subflows as records; runs with their results. {places}"
            " Identities of subscribers, devices and hosts are absent; public addresses and the probes' names stand for others."
        )


@dataclass(frozen=True, slots=True)
class _File:
    name: str
    bytes: int
    sha256: str


def describe(folder: Path, described: Described) -> tuple[int, int]:
    """Write it all, the check sums last; how many files the package has, and their bytes. OSError."""
    there = [name for name in MEASUREMENTS if any(folder.glob(f"probe/*/records/{name}/*.parquet"))]
    for name in (SCHEMA, README, CROISSANT, CRATE, SUMS):
        (folder / name).unlink(missing_ok=True)
    write_whole(folder / SCHEMA, _json({name: _schema(name) for name in there}))
    write_whole(folder / README, _readme(described).encode())
    files = [
        _file(folder, path) for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.startswith(".")
    ]
    write_whole(folder / CROISSANT, _json(_croissant(described, files, there)))
    files.append(_file(folder, folder / CROISSANT))
    write_whole(folder / CRATE, _json(_crate(described, files, there)))
    files.append(_file(folder, folder / CRATE))
    write_whole(folder / SUMS, "".join(f"{one.sha256}  {one.name}\n" for one in files).encode())
    return len(files) + 1, sum(one.bytes for one in files) + (folder / SUMS).stat().st_size


def _file(folder: Path, path: Path) -> _File:
    return _File(path.relative_to(folder).as_posix(), path.stat().st_size, sha256_of(path))


def _json(told: Any) -> bytes:  # noqa: ANN401  any JSON value
    return f"{json.dumps(told, indent=1, ensure_ascii=False)}\n".encode()


def _what(name: str) -> str:
    """A file, in a few words."""
    probe, _, rest = name.removeprefix("probe/").partition("/")
    kind, _, file = rest.partition("/")
    if kind == "records":
        measurement, _, day = file.partition("/")
        return f"{probe}, UTC day {day.removesuffix('.parquet')}: {MEASUREMENTS[measurement].purpose}"
    return {
        "runs": f"a run of {probe}: parameters, environment, result",
        "results": f"results of a run of {probe}",
        "captures": f"packet headers of {probe}",
        "collector.json": f"what the collector of {probe} counted",
    }.get(kind) or _WHAT.get(name, "of the campaign")


def _schema(measurement: str) -> dict[str, Any]:
    """``columns``: in a file's order. A tag is text; absent is null everywhere."""
    kind = MEASUREMENTS[measurement]
    columns: list[dict[str, Any]] = [
        {"name": TIME, "type": "int", "unit": "ns", "what": "since 1970, UTC", "minimum": 0, "maximum": None}
    ]
    columns += [
        {"name": tag, "type": "str", "unit": "", "what": "tag", "minimum": None, "maximum": None}
        for tag in tags_of(measurement)
    ]
    columns += [
        {"name": f.name, "type": f.kind, "unit": f.unit, "what": f.source, "minimum": f.minimum, "maximum": f.maximum}
        for f in _fields(measurement)
    ]
    return {"purpose": kind.purpose, "files": f"probe/*/records/{measurement}/*.parquet", "columns": columns}


def _fields(measurement: str) -> list[Field]:
    fields = {f.name: f for f in (*MEASUREMENTS[measurement].fields, *COMMON_FIELDS)}
    return [f for name, f in fields.items() if name not in tags_of(measurement)]


def _in_words(column: dict[str, Any]) -> str:
    """``dBm; 3GPP TS 36.214 5.1.1; -157 to -30``."""
    low, high = column["minimum"], column["maximum"]
    span = (
        ""
        if low is None and high is None
        else f"{'' if low is None else low} to {'' if high is None else high}".strip()
    )
    return "; ".join(part for part in (column["unit"], column["what"], span) if part)


def _croissant(described: Described, files: list[_File], there: list[str]) -> dict[str, Any]:
    words, campaign = described.words, described.campaign
    sets = [
        {
            "@type": "cr:FileSet",
            "@id": f"{name}-files",
            "name": f"{name}-files",
            "description": f"A file for each probe and UTC day: {MEASUREMENTS[name].purpose}.",
            "encodingFormat": _PARQUET,
            "includes": f"probe/*/records/{name}/*.parquet",
        }
        for name in there
    ]
    # Parquet is in the sets; everything else is listed with its sum.
    objects = [
        {
            "@type": "cr:FileObject",
            "@id": one.name,
            "name": one.name,
            "description": _what(one.name),
            "contentUrl": one.name,
            "contentSize": f"{one.bytes} B",
            "encodingFormat": _MEDIA.get(Path(one.name).suffix, "application/octet-stream"),
            "sha256": one.sha256,
        }
        for one in files
        if not one.name.endswith(".parquet")
    ]
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": described.title,
        "description": described.description,
        "license": _licence_url(words["licence"]),
        "url": words["url"] or "./",
        "creator": [
            {"@type": "sc:Person", "name": name, **({"url": orcid} if orcid else {})}
            for name, orcid in words["creators"].items()
        ],
        "datePublished": described.written,
        "version": "1.0.0",
        "temporalCoverage": described.span,
        "citeAs": _citation(described),
        "keywords": ["Multipath TCP", "LTE", "5G", "mobile networks", str(campaign.get("scenario"))],
        "distribution": [*sets, *objects],
        "recordSet": [_record_set(name) for name in there],
    }


def _record_set(measurement: str) -> dict[str, Any]:
    schema = _schema(measurement)
    return {
        "@type": "cr:RecordSet",
        "@id": measurement,
        "name": measurement,
        "description": schema["purpose"],
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{measurement}/{column['name']}",
                "name": f"{measurement}/{column['name']}",
                "description": _in_words(column),
                "dataType": _TYPES[column["type"]],
                "source": {"fileSet": {"@id": f"{measurement}-files"}, "extract": {"column": column["name"]}},
            }
            for column in schema["columns"]
        ],
    }


def _crate(described: Described, files: list[_File], there: list[str]) -> dict[str, Any]:
    words = described.words
    licence = _licence_url(words["licence"])
    people = [
        {"@id": orcid or f"#creator-{n}", "@type": "Person", "name": name}
        for n, (name, orcid) in enumerate(words["creators"].items(), 1)
    ]
    variables = [
        {
            "@id": f"#{name}/{column['name']}",
            "@type": "PropertyValue",
            "name": f"{name}/{column['name']}",
            "description": _in_words(column),
            **({"unitText": column["unit"]} if column["unit"] else {}),
            **{
                key: column[of]
                for key, of in (("minValue", "minimum"), ("maxValue", "maximum"))
                if column[of] is not None
            },
        }
        for name in there
        for column in _schema(name)["columns"]
    ]
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": described.title,
        "description": described.description,
        "datePublished": described.written,
        "temporalCoverage": described.span,
        "license": {"@id": licence},
        **(dict.fromkeys(("author", "publisher"), _compact([{"@id": one["@id"]} for one in people])) if people else {}),
        **({"url": words["url"]} if words["url"] else {}),
        "hasPart": _compact([{"@id": one.name} for one in files]),
        "variableMeasured": _compact([{"@id": one["@id"]} for one in variables]),
    }
    return {
        "@context": "https://w3id.org/ro/crate/1.3/context",
        "@graph": [
            {
                "@id": CRATE,
                "@type": "CreativeWork",
                "about": {"@id": "./"},
                "conformsTo": {"@id": "https://w3id.org/ro/crate/1.3"},
            },
            root,
            {
                "@id": licence,
                "@type": "CreativeWork",
                "name": LICENCES[words["licence"]],
                "description": f"{words['licence']} of SPDX's list of licences",
            },
            *people,
            *(
                {
                    "@id": one.name,
                    "@type": "File",
                    "name": one.name,
                    "description": _what(one.name),
                    "contentSize": str(one.bytes),
                    "encodingFormat": _MEDIA.get(Path(one.name).suffix, "application/octet-stream"),
                    "sha256": one.sha256,
                }
                for one in files
            ),
            *variables,
        ],
    }


def _compact(listed: list[dict[str, Any]]) -> Any:  # noqa: ANN401  a list, or what is alone in it
    """As RO-Crate wants values that are alone."""
    return listed[0] if len(listed) == 1 else listed


def _licence_url(licence: str) -> str:
    return f"https://spdx.org/licenses/{licence}"


def _citation(described: Described) -> str:
    who = "; ".join(described.words["creators"])
    where = described.words["url"] or ""
    return " ".join(
        part for part in (f"{who}." if who else "", f"{described.title}.", f"{described.written}.", where) if part
    )


def _readme(described: Described) -> str:
    words = described.words
    return f"""# {described.title}

{described.description}

Licence: {words["licence"]} ({LICENCES[words["licence"]]}, {_licence_url(words["licence"])})
Cite as: {_citation(described)}

| file | what |
|---|---|
| `{CROISSANT}`, `{CRATE}` | the data set described: Croissant 1.0, RO-Crate 1.3 |
| `{SCHEMA}` | every column of the records with type, unit, range and source |
| `{SUMS}` | SHA-256 of every other file: `sha256sum -c {SUMS}` |
| `probe/NAME/records/MEASUREMENT/DAY.parquet` | records of a UTC day |
| `probe/NAME/runs/ID.json`, `results/` | a run each: parameters, environment, result; what is too long for it |
| `probe/NAME/captures/` | packet headers of TCP, without payload |
| `campaign.json` | when and what was played |

It is a campaign folder of Tandem: `tandem-server report DIR` draws the figures of it, `tandem_server.analysis.load(DIR)` reads it as
pandas tables, `tandem-server analyse DIR/probe --out DIR/traces` makes tables of the captures.
"""


_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{
        term: f"cr:{term}"
        for term in (
            *(
                "citeAs",
                "column",
                "equivalentProperty",
                "extract",
                "field",
                "fileProperty",
                "fileObject",
                "fileSet",
                "format",
                "includes",
            ),
            *(
                "isLiveDataset",
                "jsonPath",
                "key",
                "md5",
                "parentField",
                "path",
                "recordSet",
                "references",
                "regex",
                "repeated",
                "replace",
            ),
            *("samplingRate", "separator", "source", "subField", "transform"),
        )
    },
}
"""Croissant 1.0's own."""
