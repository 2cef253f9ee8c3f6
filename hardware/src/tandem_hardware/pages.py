"""The tables of the field guide that are made of the sources: filled in where a page has ``<!-- generated: NAME -->`` (by
``templates/NAME.md.j2``) when the site is built or a guide is printed."""

from __future__ import annotations

import functools
import re
from itertools import chain, cycle, groupby, islice

from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateNotFound

from tandem import campaigns
from tandem.schema.status_led import STATES, LedState
from tandem_hardware import bom, builds, case
from tandem_hardware.power import budget
from tandem_hardware.power_cli import duty
from tandem_hardware.sources import HARDWARE, SourceError

_BLOCK = re.compile(r"<!-- generated: ([a-z0-9-]+) -->")
SHOWN_MS, CELL_MS = 4000, 100
"""How much time is shown, the same for all, so that they can be compared; and of each character."""
_COUNTS = ("no", "one", "two", "three", "four", "five")


def figures(part: bom.Part, between: str, *names: str) -> str:
    """Of a part, "" where there are none; what is an estimate after ≈."""
    if all(getattr(part, name) is None for name in names):
        return ""
    values = ["–" if getattr(part, name) is None else f"{getattr(part, name):g}" for name in names]
    if part.estimates.issuperset(names):
        return f"≈ {between.join(values)}"
    return between.join(f"≈ {one}" if name in part.estimates else one for name, one in zip(names, values, strict=True))


def looks(state: LedState) -> str:
    """For whoever cannot tell the colours: "two short flashes every 2 s"."""
    if not state.blinks:
        return "steady" if any(on for on, _ in state.pattern) else "dark"
    kinds = groupby("long" if on >= 500 else "short" for on, _ in state.pattern)
    flashes = ", ".join(f"{_COUNTS[len(list(group))]} {kind}" for kind, group in kinds)
    return f"{flashes} every {state.period_ms / 1000:g}\N{NO-BREAK SPACE}s"


def bars(state: LedState) -> str:
    """Lit or dark, a character each tenth of a second: lit for at least half of it."""
    period = chain.from_iterable([on] * ms for times in state.pattern for on, ms in zip((1, 0), times, strict=True))
    lit = list(islice(cycle(period), SHOWN_MS))
    return "".join("█" if 2 * sum(lit[at : at + CELL_MS]) >= CELL_MS else "·" for at in range(0, SHOWN_MS, CELL_MS))


def environment(**known: object) -> Environment:
    """Jinja's, with the filters of ``templates/``; ``known``: what all of them may use."""
    made = Environment(loader=FileSystemLoader(HARDWARE / "templates"), autoescape=False, undefined=StrictUndefined)  # noqa: S701
    made.filters.update(figures=figures, bars=bars, looks=looks)
    made.filters["cell"] = lambda text: text.replace("|", "\\|")
    made.filters["sentence"] = lambda text: f"{text[:1].upper()}{text[1:]}." if text else ""
    made.globals.update(known)
    return made


@functools.cache
def of_sources() -> Environment:
    """Jinja's, with all that the templates tell of; budgets are under the campaign of builds.toml. SourceError."""
    parts = bom.load()
    known = builds.load(parts)
    share = duty(campaigns.load(known.campaign), known.hours_on).share
    budgets = [budget(parts, known, one, 1.0 if one.always_on else share) for one in known.builds.values()]
    cases = {build: (of := case.layout(build), case.air_mm2(of, parts)) for build in case.CASES}
    return environment(parts=parts, builds=known, budgets=budgets, cases=cases, lights=STATES)


def with_blocks(name: str, text: str, made: Environment | None = None) -> str:
    """``text`` of the page ``name`` with each block filled, by default of the sources. SourceError: a block that no template makes."""

    def fill(found: re.Match[str]) -> str:
        known = made or of_sources()
        try:
            return known.get_template(f"{found[1]}.md.j2").render().rstrip()
        except TemplateNotFound as error:
            line = text.count("\n", 0, found.start()) + 1
            names = ", ".join(sorted(name.removesuffix(".md.j2") for name in known.list_templates()))
            raise SourceError(f"{name}:{line}: nothing makes a block {found[1]!r}; hint: one of {names}") from error

    return _BLOCK.sub(fill, text)


def on_page_markdown(markdown: str, *, page: object, **_: object) -> str:
    """The same for MkDocs, of whose hooks (``mkdocs.yml``) this module is one."""
    return with_blocks(str(page), markdown)
