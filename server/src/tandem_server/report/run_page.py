"""One run's page: its account → one HTML text that needs nothing else. All text from outside is escaped by the template."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from urllib.parse import quote

from tandem_server.analysis.one_run import RunAccount
from tandem_server.analysis.reading import mapping, number, text, whole
from tandem_server.analysis.tables.results import of_manifests
from tandem_server.report import run_facts
from tandem_server.report.page import environment, part_of_this_program
from tandem_server.report.result_cells import shown
from tandem_server.report.run_plots import plots
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
    tone, word, lacks = run_facts.verdict(account.row)
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
        "headline": run_facts.headline(manifest),
        "figures": run_facts.figures(manifest),
        "subflows": run_facts.subflows(manifest),
        "experiments": shown(of_manifests([manifest], _NOWHERE, {})),
        "tone": tone,
        "word": word,
        "lacks": lacks,
        "plots": plots(account),
        "events": events[:_EVENTS],
        "more_events": max(0, len(events) - _EVENTS),
        "sections": [(name, found) for name in sections if (found := run_facts.flat(mapping(manifest, name)))],
        "goodput": lambda one: number(mapping(one.manifest, "result"), "goodput_bit_per_s"),
        "paths": lambda one: plain(", ".join(p for p in one.manifest.get("paths", []) if isinstance(p, str)), 120),
        "kind": lambda one: {"mptcp": "Multipath TCP", "tcp": "TCP"}.get(one.manifest.get("kind"), "–"),
    }
    return environment().get_template("run.html.j2").render(context)


def encoded(page: str) -> bytes:
    """UTF-8; halves of characters, which JSON can spell and UTF-8 cannot, as question marks."""
    return page.encode("utf-8", "replace")
