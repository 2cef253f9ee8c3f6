"""``hardware/bom.md``: the bill of materials to read, made of bom.csv and builds.toml. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from tandem_hardware.bom import Part
from tandem_hardware.builds import Build, Builds

MARK = "≈"
"""Before a figure that is an estimate."""


def page(parts: Mapping[str, Part], builds: Builds) -> str:
    """The whole page."""
    lines = [
        "# Bill of materials",
        "",
        "Made by `./kit hardware` from `bom.csv` and `builds.toml`: change those. "
        f"{MARK} marks an estimate: a figure whose source was not read. Weigh, measure and price your own parts; write what you "
        "find into `bom.csv` with its source.",
        "",
    ]
    for build in builds.builds.values():
        lines += _build(parts, build)
    lines += _unused(parts, builds)
    lines += _alternatives(parts)
    lines += _sources(parts, builds)
    return "\n".join(lines).rstrip() + "\n"


def _build(parts: Mapping[str, Part], build: Build) -> list[str]:
    mine = [part for part in parts.values() if build.name in part.quantities]
    price = sum(part.quantities[build.name] * (part.price_eur or 0) for part in mine)
    mass = sum(part.quantities[build.name] * (part.mass_g or 0) for part in mine)
    lines = [
        f"## {build.title} (`{build.name}`)",
        "",
        f"{build.whom} {build.note}".strip(),
        "",
        "| n | part | id | for | fed by | idle / typical / peak, W | mass, g | length × width × height, mm | EUR each |",
        "|--:|---|---|---|---|---|--:|---|--:|",
    ]
    for part in mine:
        feed = build.fed_by.get(part.id)
        by = "" if feed is None else feed.by + (" (USB)" if feed.usb else "")
        lines.append(
            f"| {part.quantities[build.name]} | {_named(part)} | `{part.id}` | {_cell(part.function)} | {by} "
            f"| {_three(part, ('idle_w', 'typical_w', 'peak_w'), ' / ')} | {_figure(part, 'mass_g')} "
            f"| {_three(part, ('length_mm', 'width_mm', 'height_mm'), ' × ')} | {_figure(part, 'price_eur')} |"
        )
    dates = sorted({part.price_date for part in mine if part.price_date})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}" if dates else "no date"
    unpriced = [part.id for part in mine if part.price_eur is None]
    lines += ["", f"Together: {MARK} {price:.0f} EUR (prices of {when}), {MARK} {mass:.0f} g." + (
        f" Without a price: {', '.join(unpriced)}." if unpriced else ""
    ), ""]  # fmt: skip
    return lines


def _unused(parts: Mapping[str, Part], builds: Builds) -> list[str]:
    loose = [part for part in parts.values() if not any(name in part.quantities for name in builds.builds)]
    lines = ["## In no build", ""]
    lines += [f"- `{part.id}`: {_named(part)}, {part.function}. {_sentence(part.note)}".rstrip() for part in loose]
    return [*lines, ""] if loose else []


def _alternatives(parts: Mapping[str, Part]) -> list[str]:
    lines = ["## Alternatives and notes", "", "In brackets: the driver and the USB id that it knows.", ""]
    for part in parts.values():
        told = [_sentence(part.note)] if part.note else []
        if part.driver:
            told.insert(0, f"Driver `{part.driver}`, USB id `{part.usb_id}`.")
        if part.alternatives:
            told.append(f"In its place: {'; '.join(part.alternatives)}.")
        if told:
            lines.append(f"- `{part.id}`: {' '.join(told)}")
    return [*lines, ""]


def _sources(parts: Mapping[str, Part], builds: Builds) -> list[str]:
    lines = ["## Sources", ""]
    lines += [f"- `{part.id}`, power: {part.power_source}." for part in parts.values() if part.power_source]
    lines += [f"- `{part.id}`, size: {part.size_source}." for part in parts.values() if part.size_source]
    lines += [f"- `{name}`, what it gives to USB: {usb.source}." for name, usb in builds.usb.items()]
    lines.append(
        f"- batteries, {builds.efficiency:.0%} of what they hold comes out at 5 V: {builds.efficiency_source}."
    )
    return lines


def _named(part: Part) -> str:
    told = _cell(part.part)
    return told if not part.mpn or part.mpn in part.part else f"{told} ({part.mpn})"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _figure(part: Part, name: str) -> str:
    value = getattr(part, name)
    if value is None:
        return ""
    return f"{MARK} {value:g}" if name in part.estimates else f"{value:g}"


def _three(part: Part, names: tuple[str, str, str], between: str) -> str:
    found = [_figure(part, name) or "–" for name in names]
    if all(one == "–" for one in found):
        return ""
    if all(one.startswith(MARK) for one in found):
        return f"{MARK} {between.join(one[len(MARK) + 1 :] for one in found)}"
    return between.join(found)
