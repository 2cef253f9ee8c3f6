"""What is made of the sources: power.svg and case/parts.scad, which are committed; and the tables of the field guide, which are filled in
where a page has ``<!-- generated: NAME -->`` (by ``templates/NAME.md.j2``) when the site is built or a guide is printed."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Iterator, Sequence
from itertools import chain, cycle, groupby, islice
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateNotFound

from tandem.schema.status_led import STATES, LedState
from tandem_hardware import bom, builds, case
from tandem_hardware.power import Budget, budget
from tandem_hardware.power_cli import duty, read_campaign
from tandem_hardware.sources import FIELD, HARDWARE, ROOT, SourceError

POWER = FIELD / "pictures" / "power.svg"
_BLOCK = re.compile(r"<!-- generated: ([a-z0-9-]+) -->")
_NUMBER = re.compile(rb"((?<![#\w])-?\d+(?:\.\d+)?)")
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
def _sources() -> tuple[dict[str, bom.Part], builds.Builds, list[Budget]]:
    """Parts, builds, and the power budget of each build under the campaign of builds.toml. SourceError."""
    parts = bom.load()
    known = builds.load(parts)
    share = duty(read_campaign(known.campaign), known.hours_on).share
    return parts, known, [budget(parts, known, one, 1.0 if one.always_on else share) for one in known.builds.values()]


@functools.cache
def of_sources() -> Environment:
    """Jinja's, with all that the templates tell of. SourceError."""
    parts, known, budgets = _sources()
    cases = {build: (of := case.layout(build), case.printed_g(build), case.air_mm2(of, parts)) for build in case.CASES}
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


def pages(only: Sequence[str] = ()) -> Iterator[tuple[Path, bytes]]:
    """Each committed file that is written here, with its bytes as its sources make it; those with one of ``only`` in their path.
    SourceError: also where a part does not fit into its case."""

    def wanted(path: Path) -> bool:
        return not only or any(name in path.relative_to(ROOT).as_posix() for name in only)

    if wanted(path := case.FOLDER / "parts.scad"):
        yield path, case.parts_scad(bom.load()).encode()
    if wanted(POWER):
        from tandem_hardware.power_plot import draw

        parts, known, budgets = _sources()
        case.check(parts)
        yield POWER, draw(budgets, known.hours_on, "svg")


def same(kept: bytes, fresh: bytes) -> bool:
    """The same text; numbers of a drawing may be 0.75 points apart, since fonts differ between machines."""
    if not fresh.startswith(b"<?xml"):
        return kept == fresh
    was, now = (_NUMBER.split(one) for one in (kept, fresh))
    near = all(abs(float(a) - float(b)) <= 0.75 for a, b in zip(was[1::2], now[1::2], strict=False))
    return was[::2] == now[::2] and near


def write_whole(path: Path, content: bytes) -> None:
    """A reader finds the old file or the new."""
    part = path.with_name(f"{path.name}.tmp")
    part.write_bytes(content)
    part.replace(path)


def generate(only: Sequence[str] = ()) -> int:
    """Write each file that is not as its sources make it. Exit status: 0."""
    for path, fresh in pages(only):
        if not (path.exists() and same(path.read_bytes(), fresh)):
            write_whole(path, fresh)
            sys.stderr.write(f"hardware: written: {path.relative_to(ROOT)}\n")
    return 0


def check(only: Sequence[str] = ()) -> int:
    """Say what is not as its sources make it. Exit status: 1 when something is not."""
    wrong = [path for path, fresh in pages(only) if not (path.exists() and same(path.read_bytes(), fresh))]
    for path in wrong:
        name = path.relative_to(ROOT)
        sys.stderr.write(f"{name}: not as its sources make it; hint: ./kit hardware, look at it, commit it\n")
    return 1 if wrong else 0
