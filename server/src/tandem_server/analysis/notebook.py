"""A campaign as pandas tables, for notebooks: ``tandem_server.analysis.load(DIR)``. The only module that imports pandas.

Absent is ``<NA>`` in every column, also of whole numbers: the columns' types are pandas' nullable ones. What each column means, with its
unit, is the table ``columns``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

try:
    import pandas as pd
except ImportError as error:  # named here: a person at a notebook sees what to do
    raise ImportError("tables need pandas; hint: pip install 'tandem-server[notebook]'") from error

from tandem.schema.metrics import COMMON_FIELDS, COMMON_TAGS, MEASUREMENTS
from tandem_server.analysis import pool as pools
from tandem_server.analysis import radio_packets as columns
from tandem_server.analysis.captures import Packets, of_campaign
from tandem_server.analysis.evaluate import AFTER_NS, BEFORE_NS, Evaluation, evaluate
from tandem_server.analysis.folder import CampaignFolder
from tandem_server.analysis.material import setting
from tandem_server.analysis.mobility_classes import RunClasses
from tandem_server.analysis.pool import Kit, Pool
from tandem_server.analysis.reading import flag, mapping, number, text, whole
from tandem_server.analysis.records import DATABASE, REGISTRY, Source, folder_database, in_ledger_of, records_of
from tandem_server.analysis.tables.view import Table
from tandem_server.analysis.traces.manifest import ManifestError

RECORDS = {
    "radio": "radio",
    "events": "event",
    "round_trips": "round_trip",
    "subflows": "subflow",
    "connections": "connection",
}
"""Table by measurement (tandem.schema.metrics)."""
_TYPES = {"int": "Int64", "float": "Float64", "str": "string", "bool": "boolean"}
_TIMES = (
    ("t_s", "float", "s", "since the campaign’s start"),
    ("utc", "time", "", "the record’s time on the wall clock"),
)
RUNS = (
    ("run", "str", "", "id"),
    ("probe", "str", "", "that made it"),
    ("campaign", "str", "", "that it belongs to"),
    ("step", "str", "", "of the campaign"),
    ("arm", "str", "", "what was asked of it and not of the step’s other arms"),
    ("pair", "str", "", "of runs that belong together"),
    ("pairing", "str", "", "sequential, simultaneous or single"),
    ("experiment", "str", "", "name"),
    ("kind", "str", "", "mptcp or tcp"),
    ("path", "str", "", "the only path of TCP, the primary one of MPTCP"),
    ("operator", "str", "", "of that path"),
    ("label", "str", "", "given by hand"),
    ("mobility", "str", "", "static, low, high, or moving at an unknown speed"),
    ("events_per_five_minutes", "float", "1", "signal drops and handovers of all modems, in the five minutes about it"),
    ("mobility_by_events", "str", "", "static, low or high, by that frequency; absent without a fit"),
    ("t_s", "float", "s", "of its beginning, since the campaign’s start"),
    ("end_s", "float", "s", "of its end"),
    ("utc", "time", "", "of its beginning"),
    ("duration_s", "float", "s", "from the run’s beginning to its end"),
    ("bytes", "int", "B", "payload, as the result tells it"),
    ("goodput_bit_per_s", "float", "bit/s", "as the result tells it"),
    ("fallback", "bool", "", "an MPTCP run that fell back to TCP"),
    ("usage_bytes", "int", "B", "both ways over all paths, as the interfaces counted"),
    ("failure", "str", "", "why, when the network failed"),
    ("in_ledger", "bool", "", "whether its manifest arrived at the server; absent where that is not known"),
)
LEDGER = (
    ("run", "str", "", "id"),
    ("probe", "str", "", "that made it"),
    ("here", "bool", "", "whether its manifest is in the folder"),
    ("in_ledger", "bool", "", "whether the server has it; absent where that is not known"),
)


@dataclass
class Campaign:
    """``tables``: the result tables of every experiment by name, a row an observation with its ``run``. ``missing``: what did not arrive,
    a line each. ``pool``: the kits, each with its evaluation; ``evaluation``: all that a report is made of, of several kits of the one
    whose time lines it shows. ``runs``, ``ledger``, ``radio_packets`` and the records tell the ``probe``; ``t_s`` is each kit's own."""

    folder: Path
    runs: pd.DataFrame
    radio: pd.DataFrame
    events: pd.DataFrame
    round_trips: pd.DataFrame
    subflows: pd.DataFrame
    connections: pd.DataFrame
    tables: dict[str, pd.DataFrame]
    ledger: pd.DataFrame
    radio_packets: pd.DataFrame
    columns: pd.DataFrame
    missing: list[str]
    evaluation: Evaluation = field(repr=False)
    classes: RunClasses = field(repr=False)
    pool: Pool = field(repr=False)
    radio_packets_account: dict[str, int] = field(default_factory=dict)

    def __repr__(self) -> str:
        names = ("runs", *RECORDS, "radio_packets", "ledger")
        counts = [f"{name} {len(getattr(self, name))}" for name in names]
        counts += [f"tables[{name!r}] {len(table)}" for name, table in self.tables.items()]
        return f"<campaign {self.folder}: {', '.join(counts)}; {len(self.missing)} things missing>"


def load(folders: Sequence[Path], source: Source | None = None, probe: str | None = None) -> Campaign:
    """See ``tandem_server.analysis.load``."""
    kits: list[Kit] = []
    records: list[dict[str, pd.DataFrame]] = []
    for campaign in pools.load(folders, probe):
        with _opened(campaign, source) as found:
            e = evaluate(campaign, found, in_ledger_of(campaign, campaign.folder / REGISTRY))
            records.append({table: _records(e, found, measurement) for table, measurement in RECORDS.items()})
        kits.append(Kit(e, packets=_packets(e)))
    pool = pools.pool(kits)
    joined, flat = pool.joined, pool.results.flat
    return Campaign(
        folders[0],
        _frame([row for kit in kits for row in _runs(kit.evaluation, pool)], RUNS),
        **{table: pd.concat([own[table] for own in records], ignore_index=True) for table in RECORDS},
        tables={table.name: _values(table) for table in flat},
        ledger=_frame([row for kit in kits for row in _ledger(kit.evaluation)], LEDGER),
        radio_packets=_frame([] if joined is None else joined.rows, columns.COLUMNS),
        columns=_columns(flat),
        missing=pool.missing,
        evaluation=pool.shown,
        classes=pool.classes,
        pool=pool,
        radio_packets_account={} if joined is None else dict(joined.account),
    )


def _opened(campaign: CampaignFolder, source: Source | None) -> AbstractContextManager[Source | str]:
    """The records: as given, of the folder's files, or of its database."""
    source = source or records_of(campaign.folder, campaign.probe)
    if source is not None:
        return contextlib.nullcontext(source)
    store = mapping(campaign.campaign, "store")
    name, url = text(store, "database") or "tandem", text(store, "url") or "http://127.0.0.1:8086"
    return folder_database(campaign.folder / DATABASE, name, url)


def _packets(e: Evaluation) -> Packets | None:
    """Where captures were analysed into the folder's traces/; what cannot be read is said in ``missing``."""
    try:
        return of_campaign(e)
    except (ImportError, ManifestError) as error:
        e.missing.append(f"radio_packets: {error}")
        return None


def _records(e: Evaluation, source: Source | str, measurement: str) -> pd.DataFrame:
    """Every tag and field that the schema has of a measurement, in order of time."""
    wanted = _of_schema(measurement)
    if isinstance(source, str):
        return _frame([], wanted)
    started, ended = (whole(e.campaign.campaign, f"{at}_utc_ns") for at in ("started", "ended"))
    span = (None if started is None else started - BEFORE_NS, None if ended is None else ended + AFTER_NS)
    out: list[dict[str, Any]] = []
    for piece in source.pieces(measurement, e.campaign.probe, span):
        operator = {"operator": e.campaign.operators.get(piece.tags.get("path", ""))}
        times = zip(e.clock.times(piece).tolist(), piece.utc_ns.tolist(), piece.rows(), strict=True)
        out += ({**operator, **row, "t_s": t_s, "utc": utc_ns} for t_s, utc_ns, row in times)
    return _frame(sorted(out, key=lambda one: one["utc"]), wanted)


def _of_schema(measurement: str) -> tuple[tuple[str, str, str, str], ...]:
    kind = MEASUREMENTS[measurement]
    tags = [(name, "str", "", "tag") for name in (*kind.tags, *COMMON_TAGS)]
    if "operator" not in kind.tags:
        tags.append(("operator", "str", "", "of the path"))
    return (*_TIMES, *tags, *((f.name, f.kind, f.unit, f.source) for f in (*kind.fields, *COMMON_FIELDS)))


def _runs(e: Evaluation, pool: Pool) -> Iterator[Mapping[str, Any]]:
    manifests, classes = {str(m["id"]): m for m in e.campaign.manifests}, pool.classes
    for run in (run for run in pool.results.runs if run.id in manifests):
        of = setting(e, run, manifests[run.id])
        yield {
            "run": run.id,
            "probe": e.campaign.probe,
            **{
                key: getattr(run, key) or None
                for key in ("campaign", "step", "arm", "pair", "pairing", "experiment", "kind", "path")
            },
            "operator": e.campaign.operators.get(run.path),
            "label": of.label or None,
            "mobility": of.mobility,
            "events_per_five_minutes": None
            if (judged := classes.runs.get(run.id)) is None
            else judged.per_five_minutes,
            "mobility_by_events": None if judged is None else judged.mobility,
            "t_s": of.start_s,
            "end_s": of.end_s,
            "utc": run.started_utc_ns,
            "duration_s": run.duration_s,
            "bytes": whole(run.result, "bytes"),
            "goodput_bit_per_s": number(run.result, "goodput_bit_per_s"),
            "fallback": flag(run.result, "fallback"),
            "usage_bytes": run.usage,
            "failure": run.failure,
            "in_ledger": None if e.in_ledger is None else run.id in e.in_ledger,
        }


def _ledger(e: Evaluation) -> Iterator[Mapping[str, Any]]:
    here = {str(m["id"]) for m in e.campaign.manifests}
    for run in sorted(here | (e.in_ledger or set())):
        yield {
            "run": run,
            "probe": e.campaign.probe,
            "here": run in here,
            "in_ledger": None if e.in_ledger is None else run in e.in_ledger,
        }


def _values(table: Table) -> pd.DataFrame:
    """A result table's observations; texts and numbers as they are."""
    frame = pd.DataFrame(table.values, columns=list(table.value_columns)).convert_dtypes()
    if "started_utc_ns" in frame:
        frame["utc"] = pd.to_datetime(frame.pop("started_utc_ns"), unit="ns", utc=True)
    return frame


def _columns(tables: Sequence[Table]) -> pd.DataFrame:
    told = [("runs", *c) for c in RUNS] + [("ledger", *c) for c in LEDGER]
    told += [(columns.TABLE, *c) for c in columns.COLUMNS]
    told += [(table, *column) for table, measurement in RECORDS.items() for column in _of_schema(measurement)]
    for table in tables:
        known = {c.key: c for c in table.columns}
        for key in table.value_columns:
            column = known.get(key)
            told.append((table.name, key, "", column.unit if column else "", column.title if column else ""))
    return pd.DataFrame(told, columns=["table", "column", "kind", "unit", "what"]).astype("string")


def _frame(
    rows: Collection[Mapping[str, Any]] | Iterator[Mapping[str, Any]], columns: Sequence[tuple[str, str, str, str]]
) -> pd.DataFrame:
    """Of the columns' types; what has another type is absent."""
    found = list(rows)
    made = {}
    for name, kind, *_ in columns:
        values = [row.get(name) for row in found]
        if kind == "time":
            made[name] = pd.to_datetime(pd.Series(values, dtype="Int64"), unit="ns", utc=True)
        else:
            made[name] = pd.Series([_typed(value, kind) for value in values], dtype=_TYPES[kind])
    return pd.DataFrame(made)


def _typed(value: object, kind: str) -> str | int | float | bool | None:
    if kind == "str":
        return value if isinstance(value, str) else None
    if kind == "bool":
        return value if isinstance(value, bool) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if kind == "int":
        return int(value) if float(value).is_integer() else None  # a database may hand whole numbers back as floats
    return float(value)
