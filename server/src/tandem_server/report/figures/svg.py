"""What matplotlib writes as SVG, made fit for a page: small, without what names the program, marks named, colours that follow the night."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from tandem_server.report.figures.marks import Mark
from tandem_server.report.words import visible

FONT = "DejaVu Sans,Verdana,sans-serif"
_NAMESPACES = {"{http://www.w3.org/2000/svg}": "", "{http://www.w3.org/1999/xlink}": "xlink:"}
_NUMBER = re.compile(r"-?\d*\.\d{2,}(?:e-?\d+)?")
_PLACES = {"d", "x", "y", "width", "height", "transform"}


class Window(NamedTuple):
    """Of a live picture: a panel's frame in points (left, top, width, height), the ends of both axes, whether the vertical one is
    logarithmic, its unit."""

    frame: tuple[float, ...]
    x: tuple[float, float]
    y: tuple[float, float]
    log: bool
    unit: str


def themed(text: str) -> str:
    """For a page: each colour is a variable of the page's style, ``--xRRGGBB``, else what it was."""
    colour = re.compile(r"#([0-9a-f]{6})\b")
    return re.sub(r'style="[^"]*"', lambda style: colour.sub(r"var(--x\1,#\1)", style[0]), text)


def cleaned(text: str, title: str, marks: Mapping[str, Mark], live: list[Window]) -> str:
    """The same picture. ``marks``: by the id of their pieces, which become one group each with ``data-mark`` and ``data-series``."""
    root = ElementTree.fromstring(text)  # noqa: S314  (matplotlib's own)
    used = set(re.findall(r'(?:url\(|href=")#([^)"]+)', text))
    whole = Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "xmlns:xlink": "http://www.w3.org/1999/xlink"})
    size = {key: _short(root.get(key, "")) for key in ("width", "height", "viewBox")}
    named = {"role": "img", "aria-label": title, "font-family": FONT, "stroke-linejoin": "round"}
    whole.attrib |= {"class": "paper live" if live else "paper", **size, **named}
    whole.extend(_pieces(root, used, marks, live))
    return ElementTree.tostring(whole, encoding="unicode")


def _pieces(of: Element, used: set[str], marks: Mapping[str, Mark], live: list[Window]) -> Iterator[Element]:
    """What is within, without groups that say nothing."""
    group: tuple[str, Element] | None = None
    inside: list[Element] = []
    for one in of:
        tag = _local(one.tag)
        if tag in ("metadata", "style") or (live and tag == "clipPath"):  # a window cuts by itself
            continue
        name = one.get("id", "")
        if name in marks:
            if group is None or group[0] != name:
                said = {"data-mark": type(marks[name]).__name__.lower(), "data-series": visible(marks[name].series)}
                group = name, Element("g", said)
                inside.append(group[1])
            group[1].extend(_pieces(one, used, marks, live))
            continue
        made = Element(tag, dict(_attributes(one, used)))
        made.text = visible(one.text) if tag == "text" and one.text else None
        made.extend(_pieces(one, used, marks, live))
        if tag == "a":  # how matplotlib carries a title
            for piece in made:
                SubElement(piece, "title").text = one.get("{http://www.w3.org/1999/xlink}href", "").partition(":")[2]
        if made.get("style") == "fill:none":
            continue
        if tag == "a" or (tag == "g" and not made.attrib) or (tag == "defs" and not len(made)):
            inside.extend(made)
        elif tag != "g" or len(made):
            inside.append(made)
    panel = of.get("id", "")
    yield from _windowed(inside, live[int(panel[6:])]) if live and panel.startswith("panel-") else inside


def _windowed(pieces: list[Element], of: Window) -> list[Element]:
    """Its marks in a window of their own, which can be looked through closer; their words stay outside and keep their form."""
    marks = [piece for piece in pieces if "data-mark" in piece.attrib]
    place = {key: _short(f"{n:f}") for key, n in zip(("x", "y", "width", "height"), of.frame, strict=True)}
    told = {"t0": of.x[0], "t1": of.x[1], "low": of.y[0], "high": of.y[1], "log": int(of.log), "unit": of.unit}
    window = Element("svg", {"class": "window", **place, "viewBox": " ".join(place.values())})
    window.attrib |= {"preserveAspectRatio": "none", **{f"data-{key}": f"{value}" for key, value in told.items()}}
    words = Element("g", {"class": "words"})
    for mark in marks:
        for piece in list(mark):
            for inner in piece.iter():
                inner.attrib.pop("clip-path", None)
            if found := list(piece.iter("text")):
                words.extend(found)
                mark.remove(piece)
    window.extend(marks)
    return [*(piece for piece in pieces if piece not in marks), window, *([words] if len(words) else [])]


def _attributes(of: Element, used: set[str]) -> Iterator[tuple[str, str]]:
    for key, value in of.attrib.items():
        name = _local(key)
        if name == "id" and value not in used:
            if value == "time-axis":
                yield "class", value
        elif name == "style":
            kept = (part.strip().replace(": ", ":") for part in value.split(";"))
            if told := ";".join(part for part in kept if part and not part.startswith("font-family")):
                yield name, told
        elif name in _PLACES:
            if told := re.sub(r"rotate\(-0 [^)]*\)", "", _short(value)):
                yield name, told
        else:
            yield name, value


def _local(name: str) -> str:
    for namespace, prefix in _NAMESPACES.items():
        name = name.replace(namespace, prefix)
    return name


def _short(value: str) -> str:
    """Numbers to a hundredth of a point, no more blanks than needed."""
    value = _NUMBER.sub(lambda n: f"{float(n[0]):.2f}".rstrip("0").rstrip("."), value.strip())
    return re.sub(r"\s*([A-Za-z(),])\s*", r"\1", re.sub(r"\s+", " ", value)) if value[:1] == "M" else value
