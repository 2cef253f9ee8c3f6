"""One run's page: its account → one HTML text that needs nothing else. All text from outside is escaped by the template.

A manifest was sent by a probe: nothing in it is trusted, every text of it goes through ``words.plain``."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from tandem_server.analysis.one_run import RunAccount
from tandem_server.analysis.reading import mapping, number, text, whole
from tandem_server.analysis.recorded import Event, SubflowSeries
from tandem_server.analysis.tables.results import of_manifests
from tandem_server.analysis.tables.view import unit_of
from tandem_server.ledger.runs import RunRow
from tandem_server.report import words
from tandem_server.report.figures.marks import GAP_S, Area, Mark, Moments, Trace
from tandem_server.report.figures.sheet import BAD, OPERATORS, Axis, Panel, Sheet, round_top
from tandem_server.report.page import environment, part_of_this_program
from tandem_server.report.result_tables import shown
from tandem_server.report.words import plain

_NOWHERE = Path("/dev/null/no files of the probe are here")
_EVENTS = 200


def script_hash() -> str:
    """The page's only script, as a Content-Security-Policy names it."""
    script = part_of_this_program("script.js")
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def render(account: RunAccount, *, linked: bool = True) -> str:
    """The whole page. ``linked``: with links to files and other runs as ``serve pages`` has them, relative to ``/runs/``."""
    run, manifest = account.run, account.run.manifest
    started, ended = (whole(manifest, f"{when}_utc_ns") for when in ("started", "ended"))
    events = (
        [] if account.recorded is None else [e for e in account.recorded.events if -5 <= e.t_s <= account.end_s + 5]
    )
    tone, word, lacks = _verdict(account.row)
    sections = ("parameters", "modems", "clock", "usage", "conditions", "environment")
    context = {
        "a": account,
        "run": run,
        "linked": linked,
        "quote": lambda name: quote(name, safe="/"),
        "plain": plain,
        "experiment": plain(text(mapping(manifest, "experiment"), "name") or "run", 60),
        "started_utc_ns": started,
        "duration_s": None if started is None or ended is None else (ended - started) / 1e9,
        "failure": text(mapping(manifest, "failure"), "reason"),
        "headline": _headline(manifest),
        "figures": _figures(manifest),
        "subflows": _subflows(manifest),
        "experiments": shown(of_manifests([manifest], _NOWHERE, {})),
        "tone": tone,
        "word": word,
        "lacks": lacks,
        "plots": _plots(account),
        "events": events[:_EVENTS],
        "more_events": max(0, len(events) - _EVENTS),
        "sections": [(name, found) for name in sections if (found := _flat(mapping(manifest, name)))],
        "goodput": lambda one: number(mapping(one.manifest, "result"), "goodput_bit_per_s"),
        "paths": lambda one: plain(", ".join(p for p in one.manifest.get("paths", []) if isinstance(p, str)), 120),
        "kind": lambda one: {"mptcp": "Multipath TCP", "tcp": "TCP"}.get(one.manifest.get("kind"), "–"),
    }
    return environment().get_template("run.html.j2").render(context)


def encoded(page: str) -> bytes:
    """UTF-8; halves of characters, which JSON can spell and UTF-8 cannot, as question marks."""
    return page.encode("utf-8", "replace")


# --- its manifest in words


_DEEPEST, _MOST, _LISTED = 5, 150, 20
_CC, _SCHEDULER, _PATH_MANAGER = "net.ipv4.tcp_congestion_control", "net.mptcp.scheduler", "net.mptcp.path_manager"
_APART = {"subflows", "subflow_losses"}
"""Of a result: lists that have a table of their own, or are in the manifest alone."""
_FIRST = ("goodput_bit_per_s", "bytes", "duration_s", "connect_ms", "first_byte_ms", "fallback")
_ENDINGS = ("_bit_per_s", "_ms", "_s")
_WHY = {
    "not_sent": "still at the probe",
    "not_heard": "the probe has not told of itself since",
    "refused": "rejected or dropped, as the probe counts",
    "unexplained": "nobody knows why",
    "not_received": "not received yet",
    "on_the_way": "on its way",
    "other_hash": "received with another content",
    "no_manifest": "the manifest may still come",
    "cut_off": "the run was cut off",
}

Pairs = list[tuple[str, str]]


def _headline(manifest: Mapping[str, Any]) -> Pairs:
    """What it was, in short; what is not told is left out."""
    environment, campaign = mapping(manifest, "environment"), mapping(manifest, "campaign")
    its, versions = mapping(environment, "experiment"), mapping(environment, "versions")
    sysctls = {**mapping(environment, "sysctls"), **mapping(its, "sysctls")}
    experiment, paths = mapping(manifest, "experiment"), manifest.get("paths")
    named = [one for one in paths if isinstance(one, str)] if isinstance(paths, list) else []
    number_of, step = whole(campaign, "number"), text(campaign, "step")
    of_step = ", ".join(
        p for p in (f"step {step}" if step else "", f"run {number_of}" if number_of is not None else "") if p
    )
    found: list[tuple[str, Any]] = [
        (
            "Experiment",
            " ".join(_in_words(experiment.get(key), key) for key in ("name", "version") if experiment.get(key)),
        ),
        (
            "Kind",
            {"mptcp": "Multipath TCP", "tcp": "TCP", "any": "the experiment’s own"}.get(str(manifest.get("kind"))),
        ),
        ("Paths, the primary first", ", ".join(named[:_LISTED])),
        ("Pair", " ".join(t for t in (text(manifest, "pair"), text(manifest, "pairing")) if t)),
        ("Begun by", text(manifest, "trigger")),
        ("Campaign", ", ".join(t for t in (text(campaign, "name"), of_step, text(campaign, "label")) if t)),
        ("Seed", manifest.get("seed")),
        ("Software", text(versions, "tandem")),
        ("Kernel", text(versions, "kernel") or text(its, "kernel")),
        ("Scheduler", text(its, "scheduler") or text(sysctls, _SCHEDULER)),
        ("Path manager", text(its, "path_manager") or text(sysctls, _PATH_MANAGER)),
        ("Congestion control of the probe", text(sysctls, _CC)),
        ("Boot", text(manifest, "boot")),
    ]
    return [(name, _in_words(value)) for name, value in found if value not in (None, "")]


def _figures(manifest: Mapping[str, Any]) -> Pairs:
    """The result's own numbers and words, with units; its lists are tables."""
    result = {key: value for key, value in mapping(manifest, "result").items() if key not in _APART}
    units = {k: v for k, v in mapping(mapping(manifest, "experiment"), "units").items() if isinstance(v, str)}
    ordered = {key: result[key] for key in [*(k for k in _FIRST if k in result), *result] if result[key] is not None}
    return [(_title(name), value) for name, value in _flat(ordered, units) if value != words.ABSENT]


def _title(name: str) -> str:
    """A result's key as words: its unit stands behind the figure."""
    ending = next((end for end in _ENDINGS if name.endswith(end)), "")
    return name.removesuffix(ending).replace("_", " ")


def _flat(told: Mapping[str, Any], units: Mapping[str, str] | None = None) -> Pairs:
    """Names and values of an object and of those in it, at most ``_MOST``."""
    out: Pairs = []
    for name, key, value in _leaves(told, "", 0):
        if len(out) == _MOST:
            return [*out, ("…", "more is in the manifest")]
        out.append((plain(name, 120), _in_words(value, key, (units or {}).get(key))))
    return out


def _leaves(told: Mapping[str, Any], before: str, depth: int) -> Iterator[tuple[str, str, Any]]:
    for key, value in told.items():
        name = f"{before}{key}"
        if isinstance(value, dict) and depth < _DEEPEST:
            yield from _leaves(value, f"{name} · ", depth + 1)
        else:
            yield name, str(key), value


def _in_words(value: Any, name: str = "", declared: str | None = None) -> str:  # noqa: ANN401  any JSON value
    """A value in words; ``name`` ends in its unit, where it has one and none is ``declared``."""
    if value is None:
        return words.ABSENT
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, list):
        listed = [_in_words(one, name, declared) for one in value[:_LISTED] if not isinstance(one, list | dict)]
        if value and not listed:
            return f"{len(value)} entries, in the manifest"
        more = len(value) - len(listed)
        return ", ".join([*listed, *([f"{more} more in the manifest"] if more else [])]) or "none"
    if isinstance(value, dict):
        return f"{len(value)} values, in the manifest"
    if name.endswith("_utc_ns"):
        return words.moment(whole({"t": value}, "t"))
    measured = number({"v": value}, "v")
    return "no number that there is" if measured is None else _with_unit(measured, unit_of(name, declared))


def _with_unit(value: float, unit: str) -> str:
    """A number and its unit, both as people read them."""
    if unit == "bit/s":
        return f"{words.mega(value)} Mbit/s"
    if unit == "B":
        return words.size(value)
    if unit == "share":
        return words.percent(value, 1)
    written = str(int(value)) if value.is_integer() else f"{value:.4g}" if abs(value) < 1000 else f"{value:.1f}"
    return written if unit in ("", "1") else f"{written} {plain(unit, 20)}"


def _subflows(manifest: Mapping[str, Any]) -> list[list[str]]:
    """Rows: path, operator, bytes, share, median RTT, delay of the join."""
    rows = mapping(manifest, "result").get("subflows")
    keys = ("path", "operator", "bytes", "share", "rtt_ms_median", "join_delay_ms")
    units = {"share": "share", "rtt_ms_median": "ms"}
    listed = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return [[_in_words(row.get(key), key, units.get(key)) for key in keys] for row in listed[:64]]


def _verdict(row: RunRow | None) -> tuple[str, str, list[str]]:
    """The ledger's word: tone (``good``, ``bad`` or none), a line, and what is missing."""
    if row is None:
        return "", "What arrived is not known.", []
    promised, arrived, files, received = row.counts
    counts = f"{words.count(arrived)} of {words.count(promised)} records and {received} of {files} files are here."
    lacks = [
        f"{plain(lack.name)}: {words.count(lack.count)} of its records missing, {_WHY[lack.why]} ({plain(lack.detail)})"
        if lack.what == "records"
        else f"{plain(lack.name)}: {_WHY[lack.why]} ({plain(lack.detail)})"
        for lack in row.missing[:40]
    ]
    said = {
        "complete": ("good", f"Complete. {counts}"),
        "expired": ("", "It began before what the database keeps: its records are no longer asked for."),
        "under_way": ("", "It is under way."),
        "waiting": ("", f"Not all of it is here yet. {counts}"),
        "missing": ("bad", f"Something is missing. {counts}"),
    }
    return *said[row.state], lacks


# --- what it draws: each subflow's goodput, share and round-trip time over one time, with the events of that time


_MARKED = {
    "handover", "signal_drop", "signal_rise", "mobility_start", "mobility_stop",
    "path_lost", "path_restored", "subflow_lost", "subflow_restored", "modem_lost", "modem_restored",
}  # fmt: skip
"""Kinds that are lines in the plots; the table has all."""
_NAMES = 12
Names = dict[int, tuple[str, str]]


def _plots(account: RunAccount) -> Sheet | None:
    """Goodput, share, round-trip time at the sender; None without records of subflows."""
    if account.recorded is None:
        return None
    flows = account.recorded.subflows
    at_probe = [s for s in flows if s.end == "probe" and np.isfinite(s.goodput_bit_per_s).any()]
    # In an upload the probe is the sender; the page shows what the server read where it read anything.
    sender = [s for s in flows if s.end == "server" and np.isfinite(s.rtt_ms).any()]
    rtt_of, where = (sender, "server") if sender else ([s for s in flows if s.end == "probe"], "probe")
    names = _named([s for s in flows if len(s.t_s)])
    gap_s = max(GAP_S, 2.5 * (account.step_s or 0.0))
    x = Axis("seconds since the run began", low=0, high=account.end_s)
    # A hole that is filled hands over in one sample what waited behind it: an axis up to there would hide everything else.
    rates = {id(s): s.goodput_bit_per_s / 1e6 for s in at_probe}
    top = round_top([float(np.nanquantile(v, 0.98)) for v in rates.values()])
    goodput = [Trace(names[id(s)][0], s.t_s, rates[id(s)], gap_s) for s in at_probe]
    rtt = [Trace(names[id(s)][0], s.t_s, s.rtt_ms, gap_s) for s in rtt_of if np.isfinite(s.rtt_ms).any()]
    panels = [
        Panel("Goodput of each subflow", goodput, x, Axis("Mbit/s", low=0, high=top), height=190),
        Panel(
            "Share of each subflow", list(_shares(at_probe, names, gap_s)), x, Axis("%", low=0, high=100), height=110
        ),
        Panel(f"Round-trip time of each subflow, at the {where}", rtt, x, Axis("ms", log=True), height=170),
    ]
    events = _marks(account.recorded.events, account.end_s)
    kept = [Panel(p.title, [*p.marks, *events], p.x, p.y, height=p.height) for p in panels if p.marks]
    hues = dict(names.values()) | {mark.series: BAD for mark in events}
    return Sheet(kept, hues=hues, live=True) if kept else None


def _shares(flows: Sequence[SubflowSeries], names: Names, gap_s: float) -> Sequence[Mark]:
    """Stacked: each subflow's part of what all of them got at that time; nothing of one that carried everything."""
    if len(flows) < 2:
        return []
    t = np.unique(np.concatenate([s.t_s for s in flows]))
    rates = np.array([np.interp(t, s.t_s, np.nan_to_num(s.goodput_bit_per_s), left=0.0, right=0.0) for s in flows])
    total = rates.sum(axis=0)
    busy = total > 0
    share = np.divide(rates, total, out=np.zeros_like(rates), where=busy) * 100
    top = np.cumsum(share, axis=0)
    breaks = np.flatnonzero((np.diff(t) > gap_s) | (busy[1:] != busy[:-1])) + 1
    marks = []
    for part in np.split(np.arange(len(t)), breaks):
        if len(part) > 1 and busy[part[0]]:
            for n, s in enumerate(flows):
                low = top[n - 1][part] if n else np.zeros(len(part))
                marks.append(Area(names[id(s)][0], t[part], low, top[n][part]))
    return marks


def _marks(events: Sequence[Event], end_s: float) -> list[Mark]:
    by_name: dict[str, list[float]] = {}
    for event in events:
        if event.kind in _MARKED and 0 <= event.t_s <= end_s:
            name = f"{plain(event.kind).replace('_', ' ')} {plain(event.path or '')}".strip()
            known = name in by_name or len(by_name) < _NAMES
            by_name.setdefault(name if known else "further events", []).append(event.t_s)
    return [Moments(name, times) for name, times in by_name.items()]


def _named(flows: Sequence[SubflowSeries]) -> dict[int, tuple[str, str]]:
    """By ``id`` of each: what it is called, and its colour. The two ends number subflows in ways of their own: alike are the first of a
    path at either end, the second, and so on."""
    places: dict[int, tuple[str, int]] = {}
    counted: dict[tuple[str, str], int] = {}
    for s in sorted(flows, key=lambda s: (s.path or "", s.end, s.subflow)):
        at = (s.end, s.path or "")
        places[id(s)] = (s.path or "", counted.get(at, 0))
        counted[at] = counted.get(at, 0) + 1
    several = {path for (_, path), count in counted.items() if count > 1}
    operator = {s.path or "": s.operator for s in flows if s.operator}
    order = sorted(set(places.values()))
    out = {}
    for which, (path, nth) in places.items():
        of = operator.get(path)
        name = plain(path or "of no known path") + (f" ({plain(of)})" if of and of != path else "")
        name += f", subflow {nth + 1}" if path in several else ""
        out[which] = (name, OPERATORS[min(order.index((path, nth)), len(OPERATORS) - 1)])
    return out
