"""The page: evaluated campaign → one HTML text that needs nothing else. All text from outside is escaped by the template."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from statistics import fmean, median
from typing import Any

import numpy as np
from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from tandem_server.analysis import scores
from tandem_server.analysis.estimates import quantile
from tandem_server.analysis.evaluate import Evaluation
from tandem_server.analysis.events import FACTOR, HELD_S, LARGE_DB
from tandem_server.analysis.pool import Pool
from tandem_server.analysis.radio_packets import GAP_S, Joined
from tandem_server.analysis.reading import mapping, number, text, whole
from tandem_server.analysis.runs import run_rtt_ms
from tandem_server.analysis.summary import versions
from tandem_server.report import timeline, words
from tandem_server.report.arms import Compared
from tandem_server.report.figures.figure import Drawn, by_paper
from tandem_server.report.figures.sheet import Sheet, picture
from tandem_server.report.figures.svg import themed
from tandem_server.report.result_tables import shown, substituted


def part_of_this_program(name: str) -> str:
    """A template, the script or the style sheet."""
    return files("tandem_server.report").joinpath(name).read_text(encoding="utf-8")


@functools.cache
def environment() -> Environment:
    """Of all pages: everything is escaped but what is part of this program."""
    made = Environment(
        loader=FunctionLoader(part_of_this_program),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: words.visible(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for name in ("count", "fixed", "mega", "percent", "size", "moment", "clock", "cell"):
        made.filters[name] = getattr(words, name)
    # These two are part of this program, not from outside: they go into the page as they are.
    own = {name: Markup(part_of_this_program(file)) for name, file in (("style", "style.css"), ("script", "script.js"))}  # noqa: S704
    made.globals.update(own)
    made.globals.update(drawn=_drawn, themed=_themed)
    return made


def _themed(svg: str) -> Markup:
    """Numbers and escaped texts only (``figures/svg.py``); its colours follow the page's."""
    return Markup(themed(svg))  # noqa: S704


def _drawn(sheet: Sheet, title: str) -> Markup:
    return _themed(picture(sheet, title, pdf=False).svg)


def render(pool: Pool, drawn: Sequence[Drawn], arms: Sequence[Compared] = ()) -> str:
    """The whole page, with the papers' figures."""
    e, joined = pool.shown, pool.joined
    operators = list(dict.fromkeys([*e.campaign.operators.values(), *(s.operator for s in e.recorded.radio.values())]))
    colours = timeline.Colours(operators)
    truth = e.campaign.truth
    played = [t.change_db for t in truth.drops] if truth else []
    found = [ev.change_db for ev in e.events("signal_drop") if ev.change_db is not None]
    context: dict[str, Any] = {
        "e": e,
        "pool": pool if pool.several else None,
        "missing": pool.missing,
        "remarks": [*(line for kit in pool.kits for line in kit.campaign.remarks), *pool.marks],
        "results": pool.results,
        "experiments": shown(pool.results),
        "substituted": substituted(pool.results),
        "scenario": text(e.campaign.campaign, "scenario"),
        "seed": whole(e.campaign.campaign, "seed"),
        "truth": truth,
        "operators": operators,
        "named": pool.material.named(),
        "still": _still(e),
        "punctual": _punctual(e),
        "commute": timeline.commute(e, colours),
        "detail": timeline.detail(e, colours),
        "around": timeline.around(e),
        "pairs": timeline.pairs_of(e.runs).values(),
        "bars": timeline.bars(e.runs, colours),
        "most_pairs": timeline.MOST_PAIRS,
        "pairings": timeline.PAIRINGS,
        "run_rtt_ms": run_rtt_ms,
        "truth_drops": len(played),
        "drops_played": scores.by_size(played),
        "drops_found": scores.by_size(found),
        "polls": _by_path(e.campaign.collector or {}, "polls", _POLLS),
        "usage": _by_path(e.campaign.collector or {}, "usage", _USAGE),
        "settings": _settings(e.campaign.collector or {}),
        "versions": versions(e),
        "started_utc_ns": whole(e.campaign.campaign, "started_utc_ns"),
        "bench": truth is not None,
        "papers": by_paper(drawn),
        "lacking": [one for one in drawn if not one.svg],
        "joined": None if joined is None else _effects(joined),
        "classes": pool.classes,
        "arms": arms,
    }
    return environment().get_template("page.html.j2").render(context)


# --- the collector's own account; what it did not write down is None


_POLLS = ("made", "late", "failed", "late_ms_p50", "late_ms_p99", "late_ms_max")
"""How punctual the polls of one path were."""
_USAGE = ("received_bytes", "sent_bytes", "control_bytes")
"""Over one path's interface; the last of these carried records and control."""


def _by_path(collector: Mapping[str, Any], what: str, columns: Sequence[str]) -> dict[str, dict[str, float | None]]:
    """One row a path."""
    return {
        path: {key: number(entry, key) if key.startswith("late_ms") else whole(entry, key) for key in columns}
        for path, entry in mapping(collector, what).items()
        if isinstance(entry, dict)
    }


def _settings(collector: Mapping[str, Any]) -> dict[str, str]:
    """The kernel's and the collector's settings as recorded."""
    return {
        str(k): "not recorded" if v is None else str(v) for k, v in sorted(mapping(collector, "environment").items())
    }


# --- what radio events did to connections


_MEDIANS = (
    ("t_r_s", "t_R, s", "{:.1f}"),
    ("rtt_before_ms", "RTT before, ms", "{:.0f}"),
    ("rtt_peak_normalised", "peak RTT over the handshake’s", "{:.1f}"),
    ("goodput_loss", "goodput lost, subflow", "{:.0%}"),
    ("connection_loss", "goodput lost, connection", "{:.0%}"),
    ("share_change", "change of its share", "{:+.0%}"),
)
"""Column, head, and how its median is written."""
_Effect = Mapping[str, Any]
_KINDS: tuple[tuple[str, Callable[[_Effect], bool]], ...] = (
    (f"drop up to {LARGE_DB:g} dB", lambda r: r["kind"] == "signal_drop" and (r["size_db"] or 0) <= LARGE_DB),
    (f"drop over {LARGE_DB:g} dB", lambda r: r["kind"] == "signal_drop" and (r["size_db"] or 0) > LARGE_DB),
    ("handover", lambda r: r["kind"] == "handover"),
    ("any, both modems’", lambda r: r["both_modems"]),
)


def _effects(joined: Joined) -> dict[str, Any]:
    """``rows``: kind, how many, then for each of ``heads`` the median with its number of values. ``why``: how often t_R is lacking, by
    reason."""
    rows = []
    for name, mine in _KINDS:
        if own := [row for row in joined.rows if mine(row)]:
            rows.append((name, len(own), [_middle([row[key] for row in own], form) for key, _, form in _MEDIANS]))
    why: dict[str, int] = {}
    for row in joined.rows:
        if row["why"]:
            reason = row["why"].replace("_", " ")
            why[reason] = why.get(reason, 0) + 1
    heads = [head for _, head, _ in _MEDIANS]
    rule = {"gap_s": GAP_S, "factor": FACTOR, "held_s": HELD_S}
    return {"heads": heads, "rows": rows, "why": why, "account": joined.account, **rule}


def _middle(values: Sequence[float | None], form: str) -> str:
    known = [value for value in values if value is not None]
    return f"{form.format(median(known))} (n={len(known)})" if known else "–"


# --- the headline


def _still(e: Evaluation) -> dict[str, Any] | None:
    """Means over the MPTCP runs that had the links for themselves while still; ``ratio`` and ``offered`` None where no capacity is known.
    None without such a run."""
    alone = [r for r in e.runs if r.kind == "mptcp" and r.pairing != "simultaneous" and r.activity == "still"]
    goodputs = [r.goodput_bit_per_s for r in alone if r.goodput_bit_per_s is not None]
    if not goodputs:
        return None
    ratios = [r.ratio for r in alone if r.ratio is not None]
    offered = [r.capacity_bit_per_s or 0.0 for r in alone if r.ratio is not None]
    means: dict[str, float | None] = (
        {"ratio": fmean(ratios), "offered": fmean(offered)} if ratios else {"ratio": None, "offered": None}
    )
    return {"runs": len(goodputs), "goodput": fmean(goodputs), **means}


def _punctual(e: Evaluation) -> tuple[int, float | None]:
    """How many polls were made, and the 99 % quantile of their lateness, ms."""
    polls = [p for p in mapping(e.campaign.collector or {}, "polls").values() if isinstance(p, dict)]
    made = sum(whole(p, "made") or 0 for p in polls) or sum(len(s.t_s) for s in e.recorded.radio.values())
    worst = max((v for p in polls if (v := number(p, "late_ms_p99")) is not None), default=None)
    if worst is None:
        late = [s.late_ms[np.isfinite(s.late_ms)] for s in e.recorded.radio.values()]
        worst = quantile(np.concatenate([np.empty(0), *late]).tolist(), 0.99)
    return made, worst
