"""The page: evaluated campaign → one HTML text that needs nothing else. All text from outside is escaped by the template."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from tandem_server.analysis import scores
from tandem_server.analysis.evaluate import Evaluation
from tandem_server.analysis.material import classes_of
from tandem_server.analysis.mobility_classes import RunClasses
from tandem_server.analysis.pool import Pool
from tandem_server.analysis.radio_packets import Joined
from tandem_server.analysis.reading import text, whole
from tandem_server.analysis.runs import PAPER, run_rtt_ms, table
from tandem_server.analysis.summary import versions
from tandem_server.report import accounts, radio_effects, run_bars, timeline, words
from tandem_server.report.arms import Compared
from tandem_server.report.figures.section import Drawn, by_paper, figures
from tandem_server.report.figures.sheet import Sheet, picture
from tandem_server.report.figures.svg import themed
from tandem_server.report.result_cells import shown, substituted
from tandem_server.report.tiles import tiles


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


def render(
    e: Evaluation,
    drawn: Sequence[Drawn] | None = None,
    joined: Joined | None = None,
    classes: RunClasses | None = None,
    arms: Sequence[Compared] = (),
    pool: Pool | None = None,
) -> str:
    """The whole page. ``drawn``: the papers' figures where they are drawn already; ``joined``: where captures were analysed. ``pool``: of
    several kits, of which ``e`` is the one whose time lines are shown."""
    kits = [e] if pool is None else [kit.evaluation for kit in pool.kits]
    results = e.results if pool is None else pool.results
    operators = list(dict.fromkeys([*e.campaign.operators.values(), *(s.operator for s in e.recorded.radio.values())]))
    colours = timeline.Colours(operators)
    drawn = figures(e) if drawn is None else drawn
    truth = e.campaign.truth
    played = [t.change_db for t in truth.drops] if truth else []
    found = [ev.change_db for ev in e.events("signal_drop") if ev.change_db is not None]
    context: dict[str, Any] = {
        "e": e,
        "pool": pool if pool is not None and pool.several else None,
        "missing": e.missing if pool is None else pool.missing,
        "remarks": [line for kit in kits for line in kit.campaign.remarks] + ([] if pool is None else pool.marks),
        "results": results,
        "experiments": shown(results),
        "substituted": substituted(results),
        "scenario": text(e.campaign.campaign, "scenario"),
        "seed": whole(e.campaign.campaign, "seed"),
        "truth": truth,
        "operators": operators,
        "named": operators if pool is None else pool.material.named(),
        "tiles": tiles(e),
        "commute": timeline.commute(e, colours),
        "detail": timeline.detail(e, colours),
        "around": timeline.around(e),
        "pairs": timeline.pairs_of(e.runs).values(),
        "bars": run_bars.bars(e.runs, colours),
        "most_pairs": run_bars.MOST,
        "pairings": run_bars.PAIRINGS,
        "table": table([run for kit in kits for run in kit.runs]),
        "paper": PAPER,
        "run_rtt_ms": run_rtt_ms,
        "truth_drops": len(played),
        "drops_played": scores.by_size(played),
        "drops_found": scores.by_size(found),
        "polls": accounts.by_path(e.campaign.collector or {}, "polls", accounts.POLLS),
        "usage": accounts.by_path(e.campaign.collector or {}, "usage", accounts.USAGE),
        "settings": accounts.settings(e.campaign.collector or {}),
        "versions": versions(e),
        "started_utc_ns": whole(e.campaign.campaign, "started_utc_ns"),
        "bench": truth is not None,
        "papers": by_paper(drawn),
        "lacking": [one for one in drawn if not one.svg],
        "joined": None if joined is None else radio_effects.told(joined),
        "classes": classes or classes_of(e),
        "arms": arms,
    }
    return environment().get_template("page.html.j2").render(context)
