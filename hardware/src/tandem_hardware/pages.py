"""What is written of the sources: bom.md, power.svg, case/parts.scad, and the blocks between ``<!-- generated: NAME -->`` and
``<!-- end -->`` of every Markdown page here, by ``templates/NAME.md.j2``."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateNotFound

from tandem.schema.status_led import STATES
from tandem_hardware import bom, builds, case, led
from tandem_hardware.power import budget
from tandem_hardware.power_cli import duty, read_campaign
from tandem_hardware.sources import HARDWARE, SourceError

_BLOCK = re.compile(r"(<!-- generated: ([a-z0-9-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_NUMBER = re.compile(rb"((?<![#\w])-?\d+(?:\.\d+)?)")


def figures(part: bom.Part, between: str, *names: str) -> str:
    """Of a part, "" where there are none; what is an estimate after ≈."""
    if all(getattr(part, name) is None for name in names):
        return ""
    values = ["–" if getattr(part, name) is None else f"{getattr(part, name):g}" for name in names]
    if part.estimates.issuperset(names):
        return f"≈ {between.join(values)}"
    return between.join(f"≈ {one}" if name in part.estimates else one for name, one in zip(names, values, strict=True))


def environment(**known: object) -> Environment:
    """Jinja's, with the filters of ``templates/``; ``known``: what all of them may use."""
    made = Environment(loader=FileSystemLoader(HARDWARE / "templates"), autoescape=False, undefined=StrictUndefined)  # noqa: S701
    made.filters.update(figures=figures, bars=led.bars, looks=led.looks)
    made.filters["cell"] = lambda text: text.replace("|", "\\|")
    made.filters["sentence"] = lambda text: f"{text[:1].upper()}{text[1:]}." if text else ""
    made.globals.update(known)
    return made


def with_blocks(path: Path, text: str, made: Environment) -> str:
    """``text`` with each block's body made anew. SourceError: a block that no template makes."""

    def fill(found: re.Match[str]) -> str:
        try:
            body = made.get_template(f"{found[2]}.md.j2").render()
        except TemplateNotFound as error:
            line = text.count("\n", 0, found.start()) + 1
            names = ", ".join(sorted(name.removesuffix(".md.j2") for name in made.list_templates()))
            raise SourceError(
                f"{path.name}:{line}: nothing makes a block {found[2]!r}; hint: one of {names}"
            ) from error
        return f"{found[1]}{body.rstrip()}\n{found[3]}"

    return _BLOCK.sub(fill, text)


def pages(only: Sequence[str] = ()) -> Iterator[tuple[Path, bytes]]:
    """Each file that is written here, with its bytes as its sources make it; those with one of ``only`` in their path. SourceError."""
    parts = bom.load()
    known = builds.load(parts)

    def wanted(path: Path) -> bool:
        return not only or any(name in path.relative_to(HARDWARE).as_posix() for name in only)

    if wanted(path := case.FOLDER / "parts.scad"):
        yield path, case.parts_scad(parts).encode()
    if only and not any(map(wanted, _written())):
        return
    case.check(parts)
    share = duty(read_campaign(known.campaign), known.hours_on).share
    budgets = [budget(parts, known, one, 1.0 if one.always_on else share) for one in known.builds.values()]
    cases = {build: (of := case.layout(build), case.printed_g(build), case.air_mm2(of, parts)) for build in case.CASES}
    made = environment(parts=parts, builds=known, budgets=budgets, cases=cases, lights=STATES)
    for path in filter(wanted, _written()):
        if path.suffix == ".svg":
            from tandem_hardware.power_plot import draw

            yield path, draw(budgets, known.hours_on, "svg")
        elif path.name == "bom.md":
            yield path, made.get_template("bom.md.j2").render().encode() + b"\n"
        else:
            yield path, with_blocks(path, path.read_text(encoding="utf-8"), made).encode()


def _written() -> list[Path]:
    return [HARDWARE / "bom.md", HARDWARE / "power.svg", *sorted({*HARDWARE.rglob("*.md")} - {HARDWARE / "bom.md"})]


def same(kept: bytes, fresh: bytes) -> bool:
    """The same text; numbers of a drawing may be 0.75 points apart, since fonts differ between machines."""
    if not fresh.startswith(b"<?xml"):
        return kept == fresh
    was, now = (_NUMBER.split(one) for one in (kept, fresh))
    near = all(abs(float(a) - float(b)) <= 0.75 for a, b in zip(was[1::2], now[1::2], strict=False))
    return was[::2] == now[::2] and near


def generate(only: Sequence[str] = ()) -> int:
    """Write each file that is not as its sources make it. Exit status: 0."""
    for path, fresh in pages(only):
        if not (path.exists() and same(path.read_bytes(), fresh)):
            part = path.with_name(f"{path.name}.tmp")
            part.write_bytes(fresh)
            part.replace(path)
            sys.stderr.write(f"hardware: written: {path.relative_to(HARDWARE)}\n")
    return 0


def check(only: Sequence[str] = ()) -> int:
    """Say what is not as its sources make it. Exit status: 1 when something is not."""
    wrong = [path for path, fresh in pages(only) if not (path.exists() and same(path.read_bytes(), fresh))]
    for path in wrong:
        name = path.relative_to(HARDWARE)
        sys.stderr.write(f"hardware/{name}: not as its sources make it; hint: ./kit hardware, look at it, commit it\n")
    return 1 if wrong else 0
