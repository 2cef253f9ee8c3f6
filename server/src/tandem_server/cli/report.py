"""``tandem-server report``: summary.json and report.html of a campaign folder, or one run's page."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import shutil
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tandem_server.analysis import folder as campaign_folder
from tandem_server.analysis import pool
from tandem_server.analysis.arms import compare, table
from tandem_server.analysis.captures import Packets, cut_captures, of_campaign
from tandem_server.analysis.evaluate import AFTER_NS, BEFORE_NS, Evaluation, evaluate
from tandem_server.analysis.mobility_classes import Fit, from_json
from tandem_server.analysis.one_run import account_of
from tandem_server.analysis.pool import BY
from tandem_server.analysis.radio_packets import COLUMNS, TABLE, Joined, as_csv
from tandem_server.analysis.reading import mapping, text, whole
from tandem_server.analysis.records import (
    DATABASE,
    REGISTRY,
    Source,
    folder_database,
    in_ledger_of,
    records_of,
)
from tandem_server.analysis.run_samples import RunSamples, SampledSource
from tandem_server.analysis.summary import pool_summary, summary
from tandem_server.cli.command import (
    Actions,
    ConfigError,
    EnvironmentLacks,
    add_command,
    add_config,
    found_config_file,
    hinted,
)
from tandem_server.cli.configuration import ServerConfig, load
from tandem_server.cli.stores import open_influx, open_registry, reader_or_why
from tandem_server.durable import write_whole
from tandem_server.report.arms import PREFIX, Compared, compared, files
from tandem_server.report.figures.figure import Drawn, draw, write_figures
from tandem_server.report.page import render
from tandem_server.report.result_tables import csv_files, in_text
from tandem_server.report.run_page import encoded
from tandem_server.report.run_page import render as render_run
from tandem_server.report.words import visible

GIVEN = "given:"
"""Begins what a fit from elsewhere was fitted on."""


def add(commands: Actions[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = add_command(
        commands,
        "report",
        _report,
        "write summary.json, report.html and the result tables of a campaign folder",
        "Write DIR/summary.json, DIR/mobility.json, DIR/report.html, DIR/figures/ and DIR/tables/*.csv from"
        " the folder's files and the database; a"
        " private database in DIR/server/influxdb is started for it when none answers. Where captures were analysed into DIR/traces radio"
        " events are joined to their packets: DIR/tables/radio_packets.csv and .parquet (docs/reference/captures.md)."
        " Exit status 0 when everything arrived, 1 when"
        " something is missing (it says what), 2 when DIR is no campaign folder. Figures of the captures are drawn where"
        " tandem-server analyse DIR/probe --out DIR/traces was run before."
        " With --run ID: the page of one run, as serve pages shows it.",
        config=False,
    )
    parser.add_argument(
        "folders",
        nargs="*",
        type=Path,
        metavar="DIR",
        help="the folder that a campaign wrote (holds campaign.json); further ones are pooled with it, and the report goes into the first",
    )
    parser.add_argument(
        "--probe",
        metavar="P",
        help="of a folder with several probes: this one alone (default: of an export all, pooled; of another folder its first)",
    )
    parser.add_argument(
        "--by",
        choices=BY,
        help="part the papers' figures and the result tables by kit, by the operators of the kits' paths, or by the city that"
        " probes.NAME.city in campaign.json, else the kit's configuration, names",
    )
    parser.add_argument("--run", metavar="ID", help="instead of a folder: one run of this server's ledger, as one page")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="where the page goes, and figures/ beside it (default: DIR/report.html; with --run ID.html)",
    )
    add_config(parser, "DIR/server/server.toml")
    parser.add_argument(
        "--tables", type=Path, metavar="FOLDER", help="where the tables go as CSV (default: DIR/tables)"
    )
    parser.add_argument(
        "--mobility",
        type=Path,
        metavar="FILE",
        help="judge the runs' mobility by the frequency of events as another campaign's mobility.json says, and not by what this"
        " campaign's own labelled runs say",
    )
    parser.add_argument(
        "--records",
        action="store_true",
        help="of a folder that is no export: keep its records in it too, as an export has them (DIR/probe/NAME/records)",
    )
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--json", action="store_true", help="print the summary")
    shown.add_argument("--print-tables", action="store_true", help="print the result tables")


def _report(args: Namespace) -> int:
    if (args.run is None) == (not args.folders):
        raise ConfigError("a folder or a run; hint: tandem-server report DIR, or report --run ID")
    if args.run is not None:
        return _report_run(load(args.config), args.run, args.out)
    given = _fit(args.mobility)
    try:
        kits = [_kit(campaign, args.config, keep=args.records) for campaign in pool.load(args.folders, args.probe)]
    except campaign_folder.FolderError as error:
        raise ConfigError(str(error)) from error
    found, folder = pool.pool(kits, args.by, given), args.folders[0]
    page = args.out or folder / "report.html"
    drawn = draw(found.material, args.by or "", found.parts, len(found.marks))
    arms = compare(found.results.runs, found.bins, found.out_of_order)
    shown = compared(arms)
    whole = found.several or args.by is not None
    shown_json = _json(pool_summary(found, arms) if whole else summary(found.shown, found.joined, found.classes, arms))
    _write_whole(folder / "mobility.json", f"{_json(found.classes.as_json())}\n".encode())
    _write_whole(folder / "summary.json", f"{shown_json}\n".encode())
    _write_figures(page.parent / "figures", drawn, shown)
    _write_whole(page, render(found, drawn, shown).encode())
    _write_tables(args.tables or folder / "tables", csv_files(found.results, [table(arms)]), found.joined)
    if args.json:
        print(shown_json)
    else:
        if args.print_tables:
            as_text = in_text(found.results, [one.table for one in shown])
            print("\n".join(map(visible, as_text.split("\n"))), end="")
        print(page)
    for line in found.marks:
        print(f"tandem-server report: note: {line}", file=sys.stderr)
    for line in found.missing:
        print(f"tandem-server report: missing: {line}", file=sys.stderr)
    return 1 if found.missing else 0


def _kit(campaign: campaign_folder.CampaignFolder, named: Path | None, *, keep: bool) -> pool.Kit:
    """Evaluated, with what was analysed of its captures."""
    config = None if campaign.exported else _config(campaign.folder, named)
    store = mapping(campaign.campaign, "store")
    with _source(campaign, config, text(store, "url"), text(store, "database")) as source:
        ledger = in_ledger_of(campaign, config.registry.file if config else campaign.folder / REGISTRY)
        evaluation = evaluate(campaign, source, ledger)
        if keep and isinstance(source, SampledSource):
            _keep_records(campaign, source)
    return pool.Kit(evaluation, *_packets(evaluation))


def _config(folder: Path, named: Path | None) -> ServerConfig | None:
    own = folder / "server" / "server.toml"
    if named is None and not own.is_file():
        # A folder that brings its database needs no other; one from the field is read out of this server's.
        named = None if (folder / "server").is_dir() else found_config_file()
        return None if named is None else load(named)
    return load(named or own)


@contextlib.contextmanager
def _source(
    campaign: campaign_folder.CampaignFolder, config: ServerConfig | None, url: str | None, database: str | None
) -> Iterator[Source | str]:
    """The campaign's records in the folder, else its database, or why there is none."""
    own = records_of(campaign.folder, campaign.probe)
    if own is not None:
        yield own
        return
    samples = RunSamples(config.traces.folder if config else campaign.folder / "server" / "traces")
    if config is not None and config.store.kind != "private":
        with contextlib.closing(open_influx(config)) as client:
            yield SampledSource(client, samples)
        return
    place = config.store.folder if config else campaign.folder / DATABASE
    name = config.store.database if config else database or "tandem"
    where = url or f"http://127.0.0.1:{config.store.port if config else 8086}"
    with folder_database(place, name, where, config.store.binary if config else None) as source:
        yield source if isinstance(source, str) else SampledSource(source.store, samples)


def _keep_records(campaign: campaign_folder.CampaignFolder, source: SampledSource) -> None:
    """Beside the folder's other files, so that they are read without the database from now on."""
    start, end = (whole(campaign.campaign, f"{at}_utc_ns") for at in ("started", "ended"))
    if start is None or end is None:
        return  # it was cut off, and says so
    export = importlib.import_module("tandem_server.export.records")
    folder = campaign.folder / "probe" / campaign.probe / "records"
    draft = folder.with_name("records.part")  # half of them would be taken for all by the next report
    try:
        fetched = export.RecordExport(source.store, source.samples, campaign.probe, draft, lambda _: None)
        fetched.fetch(start - BEFORE_NS, end + AFTER_NS)
        draft.rename(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _packets(e: Evaluation) -> tuple[Packets | None, list[str]]:
    """Of the captures, where they were analysed into DIR/traces; and which of them are cut."""
    try:
        return of_campaign(e), cut_captures(e.campaign)
    except ImportError as error:
        raise EnvironmentLacks(str(error)) from error


def _fit(file: Path | None) -> tuple[Fit, str] | None:
    if file is None:
        return None
    try:
        found, on = from_json(json.loads(file.read_bytes()))
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}; hint: name a mobility.json") from error
    except ValueError as error:
        raise ConfigError(f"{file}: {error}; hint: name the mobility.json of a report on labelled runs") from error
    return found, on if on.startswith(GIVEN) else f"{GIVEN} {file.name}: {on}"


def _json(what: dict[str, Any]) -> str:
    return json.dumps(what, indent=1, ensure_ascii=False, allow_nan=False)


def _write_figures(folder: Path, drawn: list[Drawn], shown: list[Compared]) -> None:
    try:
        write_figures(folder, drawn)
        for old in folder.glob(f"{PREFIX}*"):  # an earlier report's
            old.unlink()
        for name, content in files(shown).items():
            _write_whole(folder / name, content)
    except OSError as error:
        for draft in folder.glob("*.tmp"):
            draft.unlink()
        raise EnvironmentLacks(
            f"{folder}: {error.strerror}; hint: make room, or name another place with --out FILE"
        ) from error


def _write_tables(folder: Path, contents: dict[str, str], joined: Joined | None) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EnvironmentLacks(f"{folder}: {error.strerror}; hint: name another place with --tables FOLDER") from error
    for name, content in contents.items():
        _write_whole(folder / name, content.encode())
    if joined is None:
        for kind in ("csv", "parquet"):  # an earlier report's, whose captures' tables are gone
            (folder / f"{TABLE}.{kind}").unlink(missing_ok=True)
        return
    _write_whole(folder / f"{TABLE}.csv", as_csv(joined).encode())
    importlib.import_module("tandem_server.analysis.traces.tables").write_table(
        folder / f"{TABLE}.parquet", joined.rows, {name: kind for name, kind, *_ in COLUMNS}
    )


def _report_run(config: ServerConfig, run: str, out: Path | None) -> int:
    """Write the page to ``out`` (by default ``ID.html`` here). 0, or 1 when something promised is missing, or records cannot be read."""
    with contextlib.ExitStack() as held:
        registry = held.enter_context(open_registry(config, read_only=True))
        store = reader_or_why(config)
        if not isinstance(store, str):
            held.callback(store.close)
        account = account_of(registry, store, run, config.store.retention_days, RunSamples(config.traces.folder))
    if account is None:
        raise ConfigError(f"no manifest of run {run!r} has arrived; hint: tandem-server ledger lists runs")
    page = out or Path(f"{account.run.id}.html")
    _write_whole(page, encoded(render_run(account, linked=False)))
    print(page)
    for line in account.trouble:
        print(f"tandem-server report: missing: {line}", file=sys.stderr)
    return 1 if account.trouble or account.row is None or account.row.missing else 0


def _write_whole(path: Path, content: bytes) -> None:
    """Whole or not at all; EnvironmentLacks."""
    with hinted("free space, or give write permission on the folder", OSError):
        write_whole(path, content)
